import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { addDays, type Day } from '../../../src/base/days.ts';
import { configured } from '../../support/airbyte/connector.ts';
import { catalogProblems } from '../../support/airbyte/message-rules.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';
import { limited, onNth, refusal } from '../../support/service/faults.ts';

describe('check', () => {
  let fixture: SourceFixture;
  beforeAll(async () => {
    fixture = await SourceFixture.start();
  });
  afterAll(() => fixture.close());
  afterEach(() => fixture.sim.setScenario({ fault: () => undefined }));

  const check = async (more: Record<string, unknown> = {}) => {
    const output = await fixture.run('check', fixture.config(more));
    expect(output.of('CONNECTION_STATUS')).toHaveLength(1);
    expect(output.errors()).toEqual([]);
    expect(output.code).toBe(0);
    return output.of('CONNECTION_STATUS')[0].connectionStatus;
  };

  it('spends one export and succeeds', async () => {
    expect(await check()).toMatchObject({ status: 'SUCCEEDED' });
    expect(fixture.requested()).toHaveLength(1);
  });

  it('fails before its export where a read could not use the suppression list', async () => {
    const list = { suppression_file: 'nowhere.jsonl', suppression_key: 'k'.repeat(32) };
    const message = expect.stringMatching(/The suppression list .*nowhere\.jsonl cannot be read/);
    expect(await check(list)).toMatchObject({ status: 'FAILED', message });
    expect(fixture.requested()).toEqual([]);
  });

  it.each([
    ['a wrong token', { export_token: 'wrong-token' }, /token/],
    ['nobody there', { base_url: 'http://127.0.0.1:9' }, /127\.0\.0\.1/],
    ['no token', { export_token: null }, /export_token is missing/],
  ])('fails for %s with a message and exit 0', async (_, more, message) => {
    const status = await check(more);
    expect(status).toMatchObject({ status: 'FAILED', message: expect.stringMatching(message) });
    expect(status?.message).not.toContain('wrong-token');
  });

  it('succeeds and says so while the quota is exhausted', async () => {
    fixture.sim.setScenario({ fault: () => limited(fixture.clock.now() + 60_000) });
    expect(await check()).toMatchObject({ status: 'SUCCEEDED', message: expect.stringMatching(/limit/) });
  });
});

describe('discover', () => {
  let fixture: SourceFixture;
  afterEach(() => fixture.close());
  const discover = async (more: Record<string, unknown> = {}) => {
    const output = await fixture.run('discover', fixture.config(more));
    expect(output.code).toBe(0);
    expect(catalogProblems(output.catalog())).toEqual([]);
    return output;
  };

  it('costs two exports, says so, and gives the same catalog twice', async () => {
    fixture = await SourceFixture.start({}, { rowsPerDay: 2000 });
    const first = await discover();
    expect(first.logs('discover.cost')[0]).toMatch(/two exports/);
    expect(fixture.requested()).toEqual(['2025-12-22..2026-01-19', '2026-01-16..2026-01-18']);
    expect(fixture.sim.requests()[0].end).toBe('closed by the client');
    expect((await discover()).text.split('\n').at(-2)).toBe(first.text.split('\n').at(-2));
  });

  it('lists columns of the whole history, and standard columns that the sampled days lack', async () => {
    const old = { name: 'old "한글" column', values: ['1'], days: ['2025-12-25'] };
    fixture = await SourceFixture.start({ columns: { own: [old, { name: 'mixed', values: ['1', 'x'] }] } });
    const { streams } = (await discover()).catalog();
    expect(streams.map((stream) => stream.name)).toEqual(['events', 'event_logs', 'event_items']);
    const [events, logs, items] = streams.map((stream) => stream.json_schema.properties);
    expect(events).toMatchObject({
      _key: { type: ['string', 'null'] },
      _rescued: { type: ['object', 'null'] },
      [old.name]: { type: ['string', 'null'] },
      mixed: { type: ['string', 'null'] },
      df_total_refund_amount: { type: ['number', 'null'] },
      df_items_df_quantity: { type: ['integer', 'null'] },
      df_server_datetime: { format: 'date-time', airbyte_type: 'timestamp_without_timezone' },
    });
    expect(events).not.toHaveProperty('event_name');
    expect(Object.keys(logs).filter((name) => name.startsWith('df_items_'))).toEqual([]);
    expect(items).toMatchObject({
      item_position: { type: ['integer', 'null'] },
      df_quantity: { type: ['integer', 'null'] },
    });
    expect(items).not.toHaveProperty('mixed');
    expect(streams[1].source_defined_primary_key).toEqual([['df_event_log_id']]);
  });

  it('follows timezone, column_types and the filter of properties', async () => {
    fixture = await SourceFixture.start({ columns: { own: [{ name: 'n', values: ['1'] }] } });
    const more = {
      timezone: 'Asia/Seoul',
      column_types: { n: 'double' },
      properties_condition_type: 'exclude',
      properties: ['df_keyword'],
    };
    const [{ json_schema: schema }] = (await discover(more)).catalog().streams;
    expect(schema.properties).toMatchObject({
      n: { type: ['number', 'null'] },
      df_server_datetime: { airbyte_type: 'timestamp_with_timezone' },
    });
    expect(schema.properties).not.toHaveProperty('df_keyword');
  });

  it('uses the sampled days alone when the history is too long for one export', async () => {
    fixture = await SourceFixture.start({ isTooBig: ({ from, to }) => to > addDays(from, 4) });
    const output = await discover();
    const [warning, ...more] = output.logs('discover.partial');
    expect([JSON.stringify(warning), more]).toEqual([expect.stringMatching(/answered 50[0-9]/), []]);
    expect(output.catalog().streams[0].json_schema.properties).toHaveProperty('df_unified_id');
  });

  it.each<[string, Record<string, string>, object]>([
    ['its other name', { df_event_name: 'df_login' }, {}],
    [
      'a custom event_name',
      { df_event_name: 'df_login', event_name: '5' },
      { event_name: { type: ['integer', 'null'] } },
    ],
  ])('joins event_name of some days with df_event_name of others, beside %s', async (_, later, custom) => {
    const ids = { df_api_version: '1', df_unified_id: 'u', df_event_log_id: 'e', df_event_detail_log_id: 'e' };
    const truth = (day: Day) => {
      const times = { df_server_datetime: `${day} 10:00:00`, df_correction_datetime: `${day} 10:00:00` };
      const names = day < '2026-01-17' ? { event_name: 'df_login' } : later;
      return [{ cells: new Map(Object.entries<string>({ ...ids, ...times, ...names })) }];
    };
    fixture = await SourceFixture.start({ isTooBig: ({ from, to }) => from !== to }, { truth });
    const { streams } = (await discover()).catalog();
    const { df_event_name: name, event_name } = streams[0].json_schema.properties;
    expect({ name, ...(event_name !== undefined && { event_name }) }).toEqual({
      name: { type: ['string', 'null'] },
      ...custom,
    });
  });

  it.each(['error', 'empty'] as const)(
    'types the columns of one day when the service refuses or empties single days: %s',
    async (single_days) => {
      fixture = await SourceFixture.start({
        days: { to_date_inclusive: false, single_days },
        columns: { own: [{ name: 'n', values: ['1'] }] },
      });
      const { streams } = (await discover()).catalog();
      expect(streams[0].json_schema.properties.n).toMatchObject({ type: ['integer', 'null'] });
    },
  );

  it.each(['invalid_parameter', 'exceed_date_range_limit'])(
    'and read take all days from a service that refuses more than three at once with %s',
    async (reason) => {
      fixture = await SourceFixture.start({
        fault: ({ from, to }) => (to > addDays(from, 2) ? refusal(400, { message: reason }) : undefined),
      });
      const output = await discover();
      expect(output.logs('day.gap')).toEqual([]);
      const catalog = configured(output.catalog().streams, {}, ['events']);
      const read = await fixture.read(catalog, undefined, { start_date: '2026-01-12', on_gap: 'warn' });
      expect(read.errors()).toEqual([]);
      expect(read.records('events')).toHaveLength(fixture.sim.countRows({ from: '2026-01-12', to: '2026-01-20' }));
      expect(read.states('events').at(-1)).not.toHaveProperty('gaps');
    },
  );

  it('leaves out a day that has not begun at the service', async () => {
    fixture = await SourceFixture.start({ days: { zone_hours: -12, future: 'error' } });
    const output = await discover();
    expect(output.logs('discover.partial')).toEqual([]);
    expect(output.catalog().streams[0].json_schema.properties).toHaveProperty('df_unified_id');
  });

  it('fails before a platform gives up, if the service takes requests and never answers', async () => {
    fixture = await SourceFixture.start({ fault: () => new Promise(() => {}) });
    const output = fixture.run('discover', fixture.config());
    let isOver = false;
    output.finally(() => (isOver = true)).catch(() => {});
    await fixture.clock.passUntil(() => isOver, 9 * 60_000);
    expect(isOver).toBe(true);
    const message = expect.stringMatching(/columns of the events did not come within 5 min/);
    expect((await output).errors()).toMatchObject([{ failure_type: 'transient_error', message }]);
  });

  it('retries a broken connection, and fails with a TRACE for a wrong token', async () => {
    fixture = await SourceFixture.start({ fault: onNth(1, { kind: 'reset', at_byte: 10 }) });
    await discover();
    const output = await fixture.run('discover', fixture.config({ export_token: 'wrong-token' }));
    expect(output.code).not.toBe(0);
    expect(output.errors()).toMatchObject([{ failure_type: 'config_error' }]);
    expect(output.text).not.toContain('wrong-token');
  });
});
