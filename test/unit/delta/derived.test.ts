import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const TABLES = ['events', 'event_items', 'event_logs'] as const;

describe('event_logs', () => {
  it('have the other events of a file once, too, when one of them goes to the row of another day', async () => {
    const late = csvOf([
      { id: 'e:1', ...on(second) },
      { id: 'f', ...on(second) },
    ]);
    await fixture.store([fixture.window(second, late)], { tables: TABLES });
    await fixture.store([fixture.window(first, csvOf([{ id: 'e:0', ...on(first) }]))]);
    const logs = await fixture.read(
      'SELECT df_event_log_id AS id, event_date::VARCHAR AS d FROM event_logs ORDER BY 1',
    );
    expect(logs).toEqual([
      { id: 'e', d: first },
      { id: 'f', d: second },
    ]);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });
});

describe('rows without a date', () => {
  it('lie in a file whose partition has no value, and are replaced there', async () => {
    const undated = (n: string) =>
      csvOf([
        { id: 'a', n, df_server_datetime: '', df_correction_datetime: '' },
        { id: 'b', n, ...on(first) },
      ]);
    await fixture.store([fixture.window(first, undated('1')), fixture.window(first, undated('2'))], { tables: TABLES });
    const dates = [...fixture.replay('events').files.values()].map(({ partitionValues }) => partitionValues);
    expect(dates).toEqual(expect.arrayContaining([{ event_date: null }, { event_date: first }]));
    expect(dates).toHaveLength(2);
    expect(await fixture.read('SELECT _key, n, event_date::VARCHAR AS d FROM events ORDER BY 1')).toEqual([
      { _key: 'a', n: '2', d: null },
      { _key: 'b', n: '2', d: first },
    ]);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });
});

describe('every table', () => {
  it.each([
    ['times of the wall clock', undefined, ['timestampNtz']],
    ['instants', 'Asia/Seoul', []],
  ])('says whether its times are %s', async (_name, timezone, features) => {
    const rows = csvOf([{ id: 'a:0', df_items_x: '1', ...on(first) }]);
    await fixture.store([fixture.window(first, rows, timezone)], { tables: TABLES, timezone });
    for (const table of TABLES) {
      const [protocol] = fixture.actions(table, 0, 'protocol');
      expect(protocol.readerFeatures, table).toEqual(features);
      const types = fixture.replay(table).schema.map(({ type }) => type);
      expect(types.includes('timestamp_ntz'), table).toBe(timezone === undefined);
    }
  });
});

describe('the entry of a window', () => {
  it('has its receipt in the state of events alone, and nothing of it in the commit', async () => {
    const window = fixture.window(first, csvOf([{ id: 'a', ...on(first) }]));
    await fixture.store([window], { tables: TABLES });
    const receipts = (table: string) =>
      fixture
        .actions(table, 0, 'domainMetadata')
        .filter(({ domain }) => domain === 'dfinery.window.1')
        .map(({ configuration }) => JSON.parse(String(configuration)));
    const { id, sha256, rows } = window.receipt;
    expect(receipts('events')).toMatchObject([{ id, sha256, rows, from: first, window: 1 }]);
    expect(receipts('event_logs')).toEqual([]);
    for (const table of TABLES) expect(JSON.stringify(fixture.actions(table, 0, 'commitInfo'))).not.toContain(sha256);
  });
});
