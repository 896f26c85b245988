import { describe, expect, it } from 'vitest';
import type { Json, Output } from '../../support/airbyte/connector.ts';
import {
  type Answer,
  code,
  json,
  people,
  record,
  SUCCESS,
  setUpDeletions,
  state,
  statsOf,
  TOKEN,
} from '../../support/deletion/deletions.ts';

const setup = setUpDeletions();

const failure = (output: Output) => output.errors().at(-1);

describe('a run that deletes', () => {
  it('sends the specified request for each id once, unchanged', async () => {
    const ids = ['../x', 'a b', '"', '😀', '0', ' lead', 'x'.repeat(1_024)];
    const output = await setup.write([...ids, ...ids].map((id) => record(id)));
    expect(output.code).toBe(0);
    expect(setup.server.ids().toSorted()).toEqual(ids.toSorted());
    for (const { method, url, headers, body } of setup.server.seen) {
      expect(method).toBe('POST');
      expect(url).toBe('/api/v1/identities/delete?service_id=svc%201%2F%C3%A4');
      expect(headers.access_token).toBe(TOKEN);
      expect(headers['content-type']).toBe('application/json');
      expect(JSON.parse(body).request_datetime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(Object.keys(JSON.parse(body))).toEqual(['identity', 'request_datetime']);
    }
  });

  it('returns every state complete and in order, with exact counts', async () => {
    setup.answer = ({ id }, response) => (id === 'bad' ? code(response, '40001') : json(response, SUCCESS));
    const odd =
      '{"type":"STATE","state": {"type":"STREAM","id":12345678901234567890,"stream":{"stream_descriptor":{"name":"people","namespace":null},"stream_state":{"x":1.0,"destinationStats":1}},"destinationStats":null,"more":[1e400]} }';
    const output = await setup.write([
      record('a'),
      record('a'),
      record(null),
      odd,
      record('bad'),
      record('b'),
      record('bad'),
      state(2),
      state(3),
    ]);
    expect(output.code).toBe(0);
    expect(statsOf(output)).toEqual([
      { recordCount: 2, rejectedRecordCount: 1 },
      { recordCount: 1, rejectedRecordCount: 2 },
      { recordCount: 0, rejectedRecordCount: 0 },
    ]);
    expect(output.text).toContain(
      '{"type":"STATE","state":{"type":"STREAM","id":12345678901234567890,"stream":{"stream_descriptor":{"name":"people","namespace":null},"stream_state":{"x":1.0,"destinationStats":1}},"destinationStats":{"recordCount":2,"rejectedRecordCount":1},"more":[1e400]}}',
    );
  });

  it('counts by stream, and over all streams for a global state', async () => {
    const two = people();
    const [first] = (two as { streams: { stream: Json }[] }).streams;
    const catalog = { streams: [first, { ...first, stream: { ...first.stream, name: 'more' } }] };
    const global = '{"type":"STATE","state":{"type":"GLOBAL","global":{"stream_states":[]}}}';
    const input = [
      record('a'),
      record('b', {}, 'more'),
      state(1),
      record('c', {}, 'more'),
      state(2, 'more'),
      record('d'),
      global,
    ];
    const output = await setup.write(input, {}, catalog);
    expect(statsOf(output).map((one) => (one as Json).recordCount)).toEqual([1, 2, 1]);
  });

  it('writes complete ledger lines without ids or the token', async () => {
    const output = await setup.write([record('somebody-4711'), state(1)], { requested_by: 'dpo', reason: 'art. 17' });
    const lines = setup.folders.ledgerLines();
    expect(lines.map(({ kind }) => kind)).toEqual(['open', 'before', 'after', 'close']);
    expect(lines[0]).toMatchObject({ v: 1, requested_by: 'dpo', reason: 'art. 17', ids: 1 });
    expect(lines[2]).toMatchObject({ outcome: 'done', code: '20000', status: 200 });
    const all = output.text + JSON.stringify(lines);
    expect(all).not.toContain('somebody');
    expect(all).not.toContain(TOKEN);
    expect(output.text).toContain(String(lines.at(-1)?.mac));
  });

  it('sends the first request alone, and nothing after a refused token', async () => {
    setup.answer = (_deletion, response) => code(response, '40201');
    const output = await setup.write([...Array(50).keys()].map((n) => record(`u${n}`)).concat(state(1)));
    expect(setup.server.ids()).toEqual(['u0']);
    expect(output.of('STATE')).toEqual([]);
    expect(failure(output)).toMatchObject({ failure_type: 'config_error' });
    expect(output.code).not.toBe(0);
  });

  it('retries every kind of fault, and never takes an unclear end for a success', async () => {
    const faults: Answer[] = [
      (_d, response) => response.socket?.destroy(),
      (_d, response) => json(response, SUCCESS, 503),
      (_d, response) => code(response, '50000'),
      (_d, response) => json(response, '<html>ok</html>'),
    ];
    setup.answer = (deletion, response, nth) => {
      const fault = nth <= faults.length && deletion.id === 'b' ? faults[nth - 1] : undefined;
      if (fault) fault(deletion, response, nth);
      else if (deletion.id === 'never') json(response, '', 200);
      else json(response, SUCCESS);
    };
    const output = await setup.write([
      record('a'),
      state(1),
      record('b'),
      state(2),
      record('never'),
      state(3),
      record('c'),
      state(4),
    ]);
    expect(statsOf(output)).toHaveLength(2);
    expect(failure(output)).toMatchObject({
      failure_type: 'transient_error',
      message: expect.stringContaining(
        'This run deleted 3 of 4 ids and left 1 undecided: the service was not reached or gave no clear answer (odd_body: 1)',
      ),
    });
    expect(output.code).not.toBe(0);
    expect(setup.server.ids().filter((id) => id === 'c')).toHaveLength(1);
    expect(setup.folders.ledgerLines().at(-1)).toMatchObject({ kind: 'close', counts: { done: 3, undecided: 1 } });
  });

  it.each([
    [429, '40401'],
    [200, '40401'],
  ])('waits for the reset at HTTP %i %s and then continues', async (status, value) => {
    const resets = Date.UTC(2026, 10, 21) + 90_000;
    setup.answer = ({ id }, response, nth) => {
      const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(resets) };
      if (id === 'b' && nth === 1) code(response, value, status, headers);
      else json(response, SUCCESS);
    };
    const output = await setup.write([record('a'), record('b'), record('c'), state(1)]);
    expect(output.code).toBe(0);
    expect(statsOf(output)).toEqual([{ recordCount: 3, rejectedRecordCount: 0 }]);
    const again = setup.server.seen.findLast(({ id }) => id === 'b');
    expect(Date.parse(JSON.parse(again?.body ?? '').request_datetime)).toBeGreaterThanOrEqual(resets);
  });

  it('fails without a state when the service rejects every id', async () => {
    setup.answer = (_d, response) => code(response, '40001');
    const output = await setup.write([record('a'), record('b'), state(1)]);
    expect(setup.server.ids()).toEqual(['a', 'b']);
    expect(output.of('STATE')).toEqual([]);
    expect(failure(output)).toMatchObject({ failure_type: 'config_error' });
  });

  it('deletes what it can, and fails under on_rejected "fail"', async () => {
    const output = await setup.write([record('a'), record(''), state(1)], { on_rejected: 'fail' });
    expect(setup.server.ids()).toEqual(['a']);
    expect(statsOf(output)).toEqual([{ recordCount: 1, rejectedRecordCount: 1 }]);
    expect(output.code).not.toBe(0);
    expect(failure(output)?.message).toContain('on_rejected');
  });
});
