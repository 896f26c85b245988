import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

describe('a window', () => {
  it('is stored typed, keyed, with its receipt, its columns and the state', async () => {
    const csv = csvOf([
      { id: 'a', n: '1', flag: 'TRUE', tags: 'null', memo: 'x,"y"\n안녕' },
      { id: 'b:1', n: '9007199254740993', df_items_df_price: '1.5', df_items_color: 'red', tags: '["p"]' },
    ]);
    const [commit] = await fixture.load([fixture.window('2026-01-01', csv)]);
    expect(commit).toMatchObject({ rows: 2, rescued: new Map() });
    expect(commit.columnsAdded).toContain('df_event_name');
    expect(
      await fixture.query('SELECT _key, n, flag, tags, memo, df_items_df_price AS p FROM events ORDER BY _key'),
    ).toEqual([
      { _key: 'a', n: '1', flag: true, tags: null, memo: 'x,"y"\n안녕', p: null },
      { _key: 'b:1', n: '9007199254740993', flag: null, tags: ['p'], memo: null, p: 1.5 },
    ]);
    const [receipt] = await fixture.query('SELECT * EXCLUDE (sha256, bytes) FROM _dfinery_windows');
    expect(receipt).toMatchObject({ number: '1', rows: '2', rows_live: '2', from_date: '2026-01-01', split: 'none' });
    expect(await fixture.query('SELECT state FROM _dfinery_state')).toEqual([
      { state: '{"version":1,"from_date":"2026-01-02"}' },
    ]);
    expect(
      await fixture.query("SELECT type, item_name FROM _dfinery_columns WHERE source_name = 'df_items_color'"),
    ).toEqual([{ type: 'string', item_name: 'color' }]);
  });
});
