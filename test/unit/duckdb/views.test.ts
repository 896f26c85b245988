import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const columnsOf = async (view: string) => (await fixture.query(`DESCRIBE ${view}`)).map((row) => row.column_name);

describe('event_logs and event_items', () => {
  it('are there before any window', async () => {
    await (await fixture.open()).close();
    expect(await fixture.query('SELECT count(*) AS n FROM event_logs')).toEqual([{ n: '0' }]);
    expect(await columnsOf('event_items')).toContain('item_position');
  });

  it('are one row an event and one row an item [R25]', async () => {
    const csv = csvOf([
      { id: 'p:10', amount: '30', df_items_df_price: '1', df_items_color: 'null' },
      { id: 'p:2', amount: '20', df_items_df_price: '2', df_items_tags: '["a"]' },
      { id: 'q', amount: '5', df_items_color: 'null', df_items_tags: 'null' },
      { id: 'r', df_items_df_price: 'free' },
      { id: 's:x', df_items_color: 'red' },
      { id: 's', amount: '6' },
      { id: 's', amount: '7' },
      { amount: '8' },
      { amount: '9' },
    ]);
    await fixture.load([fixture.window('2026-01-01', csv)]);
    const logs = await fixture.query('SELECT df_event_log_id AS log, amount FROM event_logs ORDER BY log, amount');
    expect(logs).toEqual([
      { log: 'p', amount: '20' },
      { log: 'q', amount: '5' },
      { log: 'r', amount: null },
      { log: 's', amount: '6' },
      { log: 's:x', amount: null },
      { log: null, amount: '8' },
      { log: null, amount: '9' },
    ]);
    expect(await columnsOf('event_logs')).not.toContain('df_items_color');
    expect(
      await fixture.query('SELECT _key, df_price, color, tags, item_position AS n FROM event_items ORDER BY _key'),
    ).toEqual([
      { _key: 'p:10', df_price: 1, color: 'null', tags: null, n: '10' },
      { _key: 'p:2', df_price: 2, color: null, tags: ['a'], n: '2' },
      { _key: 'r', df_price: null, color: null, tags: null, n: null },
      { _key: 's:x', df_price: null, color: 'red', tags: null, n: null },
    ]);
  });

  it('follow new columns and keep a prefix where dropping it collides', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_items_a: '1' }]))]);
    await fixture.load([
      fixture.window(
        '2026-01-02',
        csvOf([{ id: 'b', df_items_df_unified_id: 'x', df_items_item_position: '3', df_items_A: 'z', late: '1' }]),
      ),
    ]);
    const columns = await columnsOf('event_items');
    expect(columns).toEqual(expect.arrayContaining(['a', 'df_items_df_unified_id', 'df_items_item_position', 'A_2']));
    expect(columns).not.toContain('late');
    expect(await columnsOf('event_logs')).toContain('late');
    expect(await columnsOf('event_logs')).not.toContain('_key');
  });
});
