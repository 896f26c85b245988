import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf } from '../../support/targets/duckdb.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const at = (time: string) => ({ df_server_datetime: time, df_correction_datetime: time });

describe('a window', () => {
  it('becomes a file a date, with its manifest', async () => {
    const csv = csvOf([
      { id: 'a', n: '1', flag: 'TRUE', tags: 'null', memo: 'x,"y"\n안녕', ...at('2026-01-01 10:00:00.000') },
      { id: 'b:1', n: '9007199254740993', df_items_df_price: '1.5', tags: '["p"]', ...at('2026.1.2 3:04') },
    ]);
    const [commit] = await fixture.store([fixture.window('2026-01-01', csv)]);
    expect(commit).toMatchObject({ rows: 2, rescued: new Map() });
    expect(fixture.files()).toEqual([
      '_dfinery/lock',
      '_dfinery/manifest.json',
      'events/event_date=2026-01-01/data_0.parquet',
      'events/event_date=2026-01-02/data_0.parquet',
    ]);
    expect(
      await fixture.read(
        'SELECT _key, n, flag, tags, memo, df_items_df_price AS p, event_date AS d FROM events ORDER BY _key',
      ),
    ).toEqual([
      { _key: 'a', n: '1', flag: true, tags: null, memo: 'x,"y"\n안녕', p: null, d: '2026-01-01' },
      { _key: 'b:1', n: '9007199254740993', flag: null, tags: ['p'], memo: null, p: 1.5, d: '2026-01-02' },
    ]);
    const { files, receipts, cursor } = fixture.manifest;
    expect(files.map(({ path, rows, windows }) => ({ path, rows, windows }))).toEqual([
      { path: 'events/event_date=2026-01-01/data_0.parquet', rows: 1, windows: { 1: 1 } },
      { path: 'events/event_date=2026-01-02/data_0.parquet', rows: 1, windows: { 1: 1 } },
    ]);
    expect(receipts).toMatchObject([{ window: 1, rows: 2, rows_live: 2, from: '2026-01-01' }]);
    expect(cursor).toEqual({ version: 1, from_date: '2026-01-02' });
  });

  it('has a receipt without the header and the shapes of cells', async () => {
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a', memo: 'Erna', ...at('2026-01-01 10:00:00.000') }]));
    await fixture.store([window]);
    const { header: _header, columns: _columns, ...kept } = window.receipt;
    const [{ window: number, rows_live: live, ...receipt }] = fixture.manifest.receipts;
    expect({ number, live, ...receipt }).toMatchObject({
      number: 1,
      live: 1,
      id: kept.id,
      rows: 1,
      sha256: kept.sha256,
    });
    expect(Object.keys(receipt).filter((key) => key === 'header' || key === 'columns')).toEqual([]);
    expect(JSON.stringify(fixture.manifest)).not.toContain('Erna');
  });

  it('replaces by id what older windows wrote, in whatever partition [R45]', async () => {
    const first = csvOf([
      { id: 'a', n: '1', ...at('2026-01-01 10:00:00.000') },
      { id: 'b', n: '1', ...at('2026-01-01 11:00:00.000') },
      { id: 'c', n: '1', ...at('2026-01-02 11:00:00.000') },
    ]);
    const second = csvOf([
      { id: 'a', n: '2', ...at('2026-01-02 10:00:00.000') },
      { id: 'c', n: '2.5', extra: 'x', ...at('2026-01-01 11:00:00.000') },
    ]);
    await fixture.store([fixture.window('2026-01-01', first), fixture.window('2026-01-01', second)]);
    expect(await fixture.read('SELECT _key, n, extra, event_date AS d FROM events ORDER BY _key')).toEqual([
      { _key: 'a', n: 2, extra: null, d: '2026-01-02' },
      { _key: 'b', n: 1, extra: null, d: '2026-01-01' },
      { _key: 'c', n: 2.5, extra: 'x', d: '2026-01-01' },
    ]);
    expect(fixture.manifest.receipts.map((r) => r.rows_live)).toEqual([1, 2]);
  });

  it.each([
    ['a date that is new', []],
    ['a date that gives none', [{ id: 'z', ...at('2026-01-01 12:00:00.000') }]],
  ])('moves rows between two dates, and from them to %s [R45]', async (_, more) => {
    const first = csvOf([
      { id: 'a', ...at('2026-01-02 10:00:00.000') },
      { id: 'b', ...at('2026-01-03 10:00:00.000') },
      { id: 'c', ...at('2026-01-02 11:00:00.000') },
      ...more,
    ]);
    const second = csvOf([
      { id: 'c', ...at('2026-01-01 11:00:00.000') },
      { id: 'a', ...at('2026-01-03 10:00:00.000') },
      { id: 'b', ...at('2026-01-02 10:00:00.000') },
    ]);
    await fixture.store([fixture.window('2026-01-01', first), fixture.window('2026-01-01', second)]);
    const dates = await fixture.read("SELECT _key, event_date AS d FROM events WHERE _key <> 'z' ORDER BY _key");
    expect(dates.map(({ d }) => d)).toEqual(['2026-01-03', '2026-01-02', '2026-01-01']);
  });

  it('gives event_logs the row that now stands for an event, on a date that the window does not touch [R25]', async () => {
    const tables = ['events', 'event_logs'] as const;
    const first = csvOf([
      { id: 'e:1', ...at('2026-01-01 10:00:00.000') },
      { id: 'e:2', ...at('2026-01-02 10:00:00.000') },
    ]);
    const logs = () => fixture.read('SELECT df_event_log_id AS id, event_date AS d FROM event_logs ORDER BY id');
    await fixture.store([fixture.window('2026-01-01', first)], { tables });
    expect(await logs()).toEqual([{ id: 'e', d: '2026-01-01' }]);
    const second = csvOf([{ id: 'e:1', df_event_log_id: 'other', ...at('2026-01-01 10:00:00.000') }]);
    await fixture.store([fixture.window('2026-01-01', second)], { tables });
    expect(await logs()).toEqual([
      { id: 'e', d: '2026-01-02' },
      { id: 'other', d: '2026-01-01' },
    ]);
  });
});
