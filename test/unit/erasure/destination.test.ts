import { describe, expect, it } from 'vitest';
import { checkIdStreams } from '../../../src/airbyte/destination/id-streams.ts';
import { parseConfiguredCatalog } from '../../../src/airbyte/protocol/catalog-and-states.ts';
import type { Json, Output } from '../../support/airbyte/connector.ts';
import { LeapingClock } from '../../support/clock.ts';
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
} from '../../support/erasure/deletions.ts';

const setup = setUpDeletions();
const text = { type: 'string' };
const withTime = people({}, { json_schema: { properties: { external_id: text, asked_at: text } } });
const counts = (recordCount: number, rejectedRecordCount = 0) => ({ recordCount, rejectedRecordCount });
/** The service rejects whom it does not know. */
const knows =
  (...known: string[]): Answer =>
  ({ id = '' }, response) =>
    known.includes(id) ? json(response, SUCCESS) : code(response, '40000');

describe('the streams of a connection', () => {
  const planned = (stream: Json, scope: object = {}) =>
    checkIdStreams(parseConfiguredCatalog({ streams: [stream] }), {
      externalIdField: 'external_id',
      requestedAtField: undefined,
      streams: [],
      ...scope,
    });
  const streamOf = (properties: Json, more: Json = {}) => ({
    stream: { name: 'people', json_schema: { type: 'object', properties } },
    sync_mode: 'incremental',
    destination_sync_mode: 'append',
    ...more,
  });

  it.each<[string, Json, object, RegExp | undefined]>([
    ['an id alone', streamOf({ external_id: text }), {}, undefined],
    ['an id that may be null', streamOf({ external_id: { type: ['null', 'string'] } }), {}, undefined],
    ['own columns of Airbyte', streamOf({ external_id: text, _ab_cdc_deleted_at: text }), {}, undefined],
    ['no id', streamOf({ id: text }), {}, /has no property "external_id"/],
    ['a number', streamOf({ external_id: { type: 'number' } }), {}, /is not a string/],
    ['a table of customers', streamOf({ external_id: text, mail: text }), {}, /carries more than the ID \("mail"\)/],
    ['a table that is named', streamOf({ external_id: text, mail: text }), { streams: ['people'] }, undefined],
    ['one beside it', streamOf({ external_id: text, mail: text }), { streams: ['leads'] }, /carries more than the ID/],
    ['a text or number', streamOf({ external_id: { type: ['string', 'number'] } }), {}, /is not a string/],
    ['a time', streamOf({ external_id: text, at: text }), { requestedAtField: 'at' }, undefined],
    ['no time', streamOf({ external_id: text }), { requestedAtField: 'at' }, /no property "at" \(requested_at_field\)/],
    ['overwrite', streamOf({ external_id: text }, { destination_sync_mode: 'overwrite' }), {}, /mode "overwrite"/],
    ['a refresh', streamOf({ external_id: text }, { generation_id: 2, minimum_generation_id: 2 }), {}, /a refresh/],
    [
      'the three ones of PyAirbyte',
      streamOf({ external_id: text }, { generation_id: 1, minimum_generation_id: 1, sync_id: 1 }),
      {},
      undefined,
    ],
  ])('may or may not have %s', (_, stream, scope, problem) => {
    if (problem === undefined) expect(() => planned(stream, scope)).not.toThrow();
    else expect(() => planned(stream, scope)).toThrow(problem);
  });
});

describe('a sync', () => {
  it('deletes each ID once and echoes the state with the counts of its rows, byte for byte', async () => {
    setup.answer = knows('a', 'b');
    // Of two members with one name readers take the last.
    const ofAll = '{"log":null,"state":{},"state":{"data":{"n":12345678901234567890}},"type":"STATE"}';
    // PyAirbyte writes every member, also those that are null.
    const behindOthers =
      '{"meta":{"state":{}},"state":{"data":{"}\\"":["]"]},"destinationStats":null } ,"type":"STATE"}';
    const rows = [record('a'), record('b'), record('a'), record('?'), record(null)];
    // Only records count as rows.
    const output = await setup.write(['{"type":"LOG"}', ...rows, state(1), ofAll, behindOthers]);
    expect(output.code).toBe(0);
    expect(setup.server.ids().toSorted()).toEqual(['?', 'a', 'b']);
    expect(statsOf(output)).toEqual([counts(3, 2), counts(0), counts(0)]);
    for (const text of [state(1), ofAll, behindOthers])
      expect(output.text.replaceAll(/,"destinationStats":\{[^}]*\}/g, '')).toContain(`${text}\n`);
    expect(output.text).toContain('1 of 5 rows is refused. Row 5: the ID is missing, empty or blank.');
    expect(output.text + JSON.stringify(setup.folders.ledgerLines())).not.toContain(TOKEN);
  });

  it('echoes no state behind an undecided ID, and the next sync goes on with that ID alone', async () => {
    setup.answer = ({ id }, response) => (id === 'b' ? json(response, 'oops', 502) : json(response, SUCCESS));
    const rows = [record('a'), state(1), record('b'), state(2)];
    const first = await setup.write(rows);
    expect(first.code).not.toBe(0);
    expect(first.errors()[0]).toMatchObject({
      failure_type: 'transient_error',
      message: expect.stringMatching(/^1 of 2 IDs are deleted at the service\. Undecided: 1 \([^)]*\)\. Run again/),
    });
    expect(statsOf(first)).toHaveLength(1);
    const single = await setup.write([record('b')]);
    expect(single.errors()[0].message).toContain('0 of 1 ID is deleted at the service.');
    setup.answer = knows('a', 'b');
    setup.server.seen.length = 0;
    const second = await setup.write(rows);
    expect([second.code, setup.server.ids(), statsOf(second).length]).toEqual([0, ['b'], 2]);
    expect(second.text).toMatch(/1 ID was deleted at the service before .* To request them, set requested_at_field\./);
  });

  it('dry: sends nothing, echoes no state, and says what a real one would do', async () => {
    const rows = [state(0), record('a'), state(1)];
    const output = await setup.write(rows, { dry_run: true, max_deletions_per_sync: 0 });
    expect([output.code, setup.server.seen.length, statsOf(output).length]).toEqual([0, 0, 0]);
    expect(output.text).toContain('A real run would stop before its first deletion: 1 profile would be deleted');
    const plain = await setup.write([record('a')], { dry_run: null });
    expect([plain.code, setup.server.seen.length]).toEqual([0, 0]);
  });

  it('stops at the guard before its first request, with a hint', async () => {
    const output = await setup.write([record('a'), record('b'), state(1)], { max_deletions_per_sync: 1 });
    expect([output.code, setup.server.seen.length, statsOf(output).length]).toEqual([1, 0, 0]);
    expect(output.errors()[0].message).toContain('set max_deletions_per_sync to 2 or more');
  });

  it('fails under on_rejected fail when the service rejects an ID, after the others are deleted', async () => {
    setup.answer = knows('a');
    const output = await setup.write([record('a'), record('b'), state(1)], { on_rejected: 'fail' });
    expect([output.code, setup.server.ids().toSorted(), statsOf(output).length]).toEqual([1, ['a', 'b'], 1]);
    expect(output.errors()[0].message).toContain('rejected 1 ID (40000: 1)');
  });

  it('fails and saves no state if all of ten IDs are rejected and none was confirmed before', async () => {
    setup.answer = knows();
    const rows = [...Array(10).keys()].map((n) => record(`x${n}`));
    const output = await setup.write([...rows, state(1)]);
    expect([output.code, statsOf(output).length]).toEqual([1, 0]);
    expect(output.errors()[0].message).toContain('the field with the IDs is probably wrong');
    // The service rejects the first ten, and then is down.
    setup.answer = ({ id }, response) => (id?.startsWith('x') ? code(response, '40000') : json(response, 'oops', 502));
    const others = [...Array(10).keys()].map((n) => record(`y${n}`));
    const cut = await setup.write([...rows, state(1), ...others, state(2)]);
    expect([cut.code, statsOf(cut).length, cut.errors()[0].failure_type]).toEqual([1, 0, 'config_error']);
    setup.answer = knows('known');
    expect((await setup.write([record('known')])).code).toBe(0);
    const later = await setup.write([...rows, state(1)]);
    expect([later.code, statsOf(later)]).toEqual([0, [counts(0, 10)]]);
    const bare = await setup.write([...rows, state(1)], { ledger_dir: null });
    expect([bare.code, statsOf(bare).length]).toEqual([0, 1]);
    expect(bare.text).toContain('There is no ledger_dir: nothing is remembered');
  });

  it.each(['40101', '40201'])('stops at %s also as a 404 at an address that has deleted before', async (refused) => {
    await setup.write([record('known')]);
    setup.answer = (_, response) => code(response, refused, 404);
    const output = await setup.write([record('a'), record('b'), state(1)]);
    expect([output.code, setup.server.ids(), statsOf(output).length]).toEqual([1, ['known', 'a'], 0]);
    expect(output.errors()[0].message).toContain(refused);
  });

  it('takes a bare 404 for the answer to an unknown ID, once the sync has deleted somebody', async () => {
    setup.answer = ({ id }, response) => (id === 'a' ? json(response, SUCCESS) : json(response, 'Not Found', 404));
    const output = await setup.write([record('a'), record('b'), state(1)]);
    expect([output.code, statsOf(output)], output.text).toEqual([0, [counts(1, 1)]]);
  });

  it('refuses a withdrawn request and the row before it, and saves the state also of those alone', async () => {
    const withdrawn = record('a', { _ab_cdc_deleted_at: '2026-01-01' });
    const output = await setup.write([
      record('a'),
      withdrawn,
      state(1),
      record('b', { _ab_cdc_deleted_at: null }),
      state(2),
    ]);
    expect([output.code, setup.server.ids()]).toEqual([0, ['b']]);
    expect(statsOf(output)).toEqual([counts(0, 2), counts(1)]);
  });

  it('counts in the state of a stream its own rows alone, not those of its name in another namespace', async () => {
    const catalog = { streams: [people(), people({}, { namespace: 'shop' })].flatMap(({ streams }) => streams) };
    const inShop = (message: string) => message.replace('"people"', '"people","namespace":"shop"');
    const rows = [record('a'), inShop(record('b')), inShop(record('c')), state(1), inShop(state(2))];
    const output = await setup.write(rows, {}, catalog);
    expect([output.code, statsOf(output)]).toEqual([0, [counts(1), counts(2)]]);
  });

  it('without rows, as one that clears the connection, echoes the states of all streams', async () => {
    const catalog = people({ destination_sync_mode: 'overwrite', generation_id: 2, minimum_generation_id: 2 });
    const states = [state(1), state(2).replace('people', 'strangers')];
    const output = await setup.write(states, {}, catalog);
    expect([output.code, setup.server.seen.length, statsOf(output)]).toEqual([0, 0, [counts(0), counts(0)]]);
    const withRow = await setup.write([...states, record('a')], {}, catalog);
    expect([withRow.code, setup.server.seen.length, statsOf(withRow)]).toEqual([1, 0, []]);
    expect(withRow.errors()[0].message).toContain('the sync mode "overwrite" has no meaning');
  });

  it.each(['nonsense', '{"type":"STATE","state":{}}', record('a', {}, 'strangers')])(
    'is given up before any deletion for the line %s',
    async (line) => {
      const output = await setup.write([record('x'), line, state(1)]);
      expect([output.code, setup.server.seen.length]).toEqual([1, 0]);
      expect(output.text).toMatch(/[Ll]ine 2 of the input/);
    },
  );
});

describe('ten days of syncs', () => {
  const DAY_MS = 86_400_000;
  const START = Date.UTC(2026, 10, 21);
  const on = (day: number, input: readonly string[], more: Json = {}) => {
    const catalog = more.requested_at_field === undefined ? people() : withTime;
    return setup.write(input, more, catalog, new LeapingClock(START + day * DAY_MS));
  };

  it('of a source that sends everything each day request each ID once, and nobody who came back', async () => {
    for (let day = 0; day < 10; day++) {
      const rows = Array.from({ length: day + 1 }, (_, n) => record(`p${n}`));
      const output = await on(day, [...rows, state(day)], { max_deletions_per_sync: 1 });
      expect([output.code, statsOf(output)]).toEqual([0, [counts(day + 1)]]);
    }
    expect(setup.server.ids()).toEqual(Array.from({ length: 10 }, (_, n) => `p${n}`));
  });

  it('run one after the other on a ledger: one that waits too long is to come again', async () => {
    const others: Output[] = [];
    setup.answer = async (_, response) => {
      others.push(await on(0, [record('b'), state(2)]), await on(0, [record('b')], { dry_run: true }));
      json(response, SUCCESS);
    };
    const output = await on(0, [record('a'), state(1)]);
    expect([output.code, setup.server.ids(), others.map(({ code }) => code)]).toEqual([0, ['a'], [1, 0]]);
    expect(others[0].text).toContain('Another erasure uses the ledger in');
    const [{ failure_type, message }] = others[0].errors();
    expect([failure_type, message]).toEqual([
      'transient_error',
      expect.stringMatching(/^The ledger in .* is in use by/),
    ]);
  });

  it('request an ID again, once, if its row has a later time', async () => {
    const more = { requested_at_field: 'asked_at' };
    const row = (asked_at: string) => record('a', { asked_at });
    await on(0, [row('2026-11-20T00:00:00Z'), state(0)], more);
    await on(1, [row('2026-11-20T00:00:00Z'), state(1)], more);
    // By a clock that is ahead of the one that confirms.
    for (const day of [2, 3]) await on(day, [row('2026-11-25T12:00:00Z'), state(day)], more);
    expect(setup.server.ids()).toEqual(['a', 'a']);
  });

  it.each([undefined, '2026-11-20T00:00:00Z'])(
    'request nobody again whom a request without an answer may have deleted (asked for at %s)',
    async (asked_at) => {
      const more: Json = asked_at === undefined ? {} : { requested_at_field: 'asked_at' };
      const rows = [record('a', { asked_at }), state(0)];
      setup.answer = (_, response, nth) => (nth === 1 ? response.destroy() : code(response, '40402'));
      const first = await on(0, rows, more);
      // The customer comes back.
      setup.answer = knows('a');
      const second = await on(1, rows, more);
      for (const output of [first, second]) expect([output.code, statsOf(output)]).toEqual([0, [counts(0, 1)]]);
      expect(second.text).toMatch(/1 ID was rejected by the service before .*, and will not be requested again/);
      const failed = await on(2, rows, { ...more, on_rejected: 'fail' });
      expect(failed.errors()[0].message).toContain('rejected 1 ID (40402: 1)');
      expect(setup.server.ids()).toEqual(['a', 'a']);
      // Beside it an ID without an answer is undecided.
      setup.answer = (_, response) => response.destroy();
      const open = await on(3, [...rows, record('b', { asked_at }), state(1)], more);
      expect(open.errors()[0].message).toContain('0 of 2 IDs are deleted at the service. Undecided: 1');
    },
  );

  it('request an ID again that was only rejected, or met the limit or a wrong token before', async () => {
    const answers = [429, 200, 401, 200];
    setup.answer = (_, response, nth) => {
      const status = answers[nth - 1];
      if (status === undefined) return json(response, SUCCESS);
      return code(response, '40402', status);
    };
    const codes: (number | null)[] = [];
    for (let day = 0; day < 4; day++) codes.push((await on(day, [record('a'), state(day)])).code);
    expect([codes, setup.server.ids().length]).toEqual([[0, 1, 0, 0], 5]);
  });

  it('are refused if no row is usable, with the field that is probably wrong', async () => {
    const more = { requested_at_field: 'asked_at' };
    const late = await on(0, [record('a', { asked_at: 'soon' }), state(0)], more);
    expect(late.errors()[0].message).toMatch(/the time of the request is no datetime.*Is the field asked_at the right/);
    const blank = await on(1, [record(' ', { asked_at: 'soon' }), state(1)], more);
    expect(blank.errors()[0].message).toMatch(/the ID is missing.*Is the ID field the right/);
    const dry = await on(1, [record(' ')], { dry_run: true });
    expect([dry.code, dry.text]).toEqual([1, expect.stringContaining('Is the ID field the right one?')]);
    const withdrawnBlank = record(null, { _ab_cdc_deleted_at: '2026-01-01' });
    const without = await on(1, [record(' '), withdrawnBlank]);
    expect(without.errors()[0].message).toContain('Is the ID field the right one?');
  });

  it('save their state if no row is usable, but one of them has an ID: the field is right', async () => {
    const withdrawn = record('a', { _ab_cdc_deleted_at: '2026-01-01' });
    for (const rows of [[withdrawn], [record('a'), withdrawn]]) {
      const output = await on(0, [...rows, record(' '), state(0)]);
      expect([output.code, statsOf(output).length, setup.server.ids()]).toEqual([0, 1, []]);
      expect(output.text).toMatch(/rows are refused\. Row \d: the ID is missing.* the request was withdrawn/);
    }
    const late = await on(0, [withdrawn, record('a', { asked_at: 'soon' })], { requested_at_field: 'asked_at' });
    expect(late.errors()[0].message).toContain('Is the field asked_at the right one?');
  });
});
