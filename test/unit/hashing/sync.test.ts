import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hmac, LISTS, PlantedBench, person } from '../../support/planted.ts';
import { csvOf } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

let bench: PlantedBench;
beforeEach(async () => {
  bench = await PlantedBench.start();
});
afterEach(() => bench.close());

const PEOPLE = [1, 2, 3, 4, 5].map((n) => person(n));
const TARGETS = [
  ['duckdb', 'events.duckdb'],
  ['parquet', 'lake'],
  ['delta', 'table'],
  ['arrow', 'events.arrows'],
] as const;

describe('columns that are dropped or hashed', () => {
  it.each(TARGETS)('leave no byte of a value in any file of %s, nor in what is said [R350]', async (name, place) => {
    bench.serve(PEOPLE);
    const done = await bench.sync(LISTS, [name, bench.at(place)]);
    expect(done.code, done.said).toBe(0);
    expect(bench.holding('planted')).toEqual([]);
    expect(bench.holding('phone')).toEqual([]);
    expect(done.said + done.result).not.toMatch(/planted|phone|a hash key/);
  });

  it('hold the HMAC of the value as it is meant, however it was quoted; an empty one stays empty [R352]', async () => {
    const odd = 'he said "planted", twice';
    bench.serve([...PEOPLE, person(6, { email: odd }), person(7, { email: '' })]);
    expect((await bench.sync()).code).toBe(0);
    const rows = await query(
      bench.at('events.duckdb'),
      'SELECT _key, df_unified_id, email, plan, df_event_log_id FROM events ORDER BY df_server_datetime',
    );
    expect(rows).toHaveLength(7);
    expect(rows[0]).toEqual({
      _key: hmac('planted-row-1'),
      df_unified_id: hmac('planted-person-1'),
      email: hmac('planted-1@example.com'),
      plan: 'pro',
      df_event_log_id: expect.any(String),
    });
    expect(rows.slice(5).map(({ email }) => email)).toEqual([hmac(odd), null]);
    const names = await query(bench.at('events.duckdb'), 'SELECT source_name, type FROM _dfinery_columns');
    expect(names).not.toContainEqual(expect.objectContaining({ source_name: 'phone' }));
    expect(names).toContainEqual({ source_name: 'email', type: 'string' });
  });

  it('are strings whatever their values look like and whatever the service fixes [R352]', async () => {
    bench.serve([person(1, { age: '41', df_discount: '2.5' }), person(2, { age: '7', df_discount: '1' })]);
    const done = await bench.sync({
      ...LISTS,
      columns_hash: ['age', 'df_discount', 'df_unified_id'],
      columns_drop: ['email', 'phone'],
    });
    expect(done.code, done.said).toBe(0);
    const rows = await query(bench.at('events.duckdb'), 'SELECT age, df_discount, _rescued FROM events ORDER BY age');
    expect(rows.map(({ age }) => age)).toEqual([hmac('41'), hmac('7')].sort());
    expect(rows.map(({ df_discount }) => df_discount).sort()).toEqual([hmac('2.5'), hmac('1')].sort());
    expect(rows.map(({ _rescued }) => _rescued)).toEqual([null, null]);
  });

  it('do not make an item of a row whose item cells say null [R352]', async () => {
    bench.serve([person(1, { df_items_size: 'null' }), person(2, { df_items_size: 'XL' })]);
    expect((await bench.sync({ ...LISTS, columns_hash: ['df_items_size'] })).code).toBe(0);
    const items = await query(bench.at('events.duckdb'), 'SELECT size FROM event_items');
    expect(items).toEqual([{ size: hmac('XL') }]);
  });

  it('leave no position of an item where the id that carries it is hashed; its key is the hash [R352]', async () => {
    bench.serve([person(1, { id: 'log-1:3', df_items_size: 'XL' })]);
    const lists = { ...LISTS, columns_hash: ['df_event_detail_log_id'] };
    expect((await bench.sync(lists)).code).toBe(0);
    const items = await query(bench.at('events.duckdb'), 'SELECT _key, item_position, size FROM event_items');
    expect(items).toEqual([{ _key: hmac('log-1:3'), item_position: null, size: 'XL' }]);
  });

  it('that no export has are named once [R352]', async () => {
    bench.serve(PEOPLE);
    bench.serve(
      PEOPLE.map((row) => ({ ...row, id: `${row.id}-next` })),
      '2026-01-16',
    );
    const lists = { ...LISTS, columns_drop: ['phone', 'Phone'], end_date: '2026-01-16' };
    const { said } = await bench.sync(lists);
    expect(said.split('\n').filter((line) => line.includes('no export of this run had: Phone'))).toHaveLength(1);
  });

  it('mean the event name by df_event_name, whichever of its names the export uses [R352]', async () => {
    const rows = PEOPLE.map((row) => ({ ...row, df_event_name: 'planted_event' }));
    bench.serve(csvOf(rows).replace('df_event_name', 'event_name'));
    const done = await bench.sync({ ...LISTS, columns_hash: [...LISTS.columns_hash, 'df_event_name'] });
    expect(done.code, done.said).toBe(0);
    expect(bench.holding('planted')).toEqual([]);
    expect(await query(bench.at('events.duckdb'), 'SELECT DISTINCT df_event_name AS n FROM events')).toEqual([
      { n: hmac('planted_event') },
    ]);
  });

  it('are in no file after a body that is broken again and again, which is not kept as it came [R350]', async () => {
    const lines =
      'df_unified_id,df_api_version,df_event_name,df_server_datetime,df_correction_datetime,df_event_detail_log_id,df_event_log_id,email,phone\nplanted,1,n,2026-01-15 10:00:00.000,2026-01-15 10:00:00.000,planted-1,l,planted@example.com,planted\nplanted,1\n';
    bench.serve(lines);
    const done = await bench.sync();
    expect(done.code).toBe(3);
    expect(done.said).toContain('No body is kept for inspection');
    expect(bench.holding('planted')).toEqual([]);
    expect(done.said).not.toContain('planted');
  });
});

describe('other lists, or another key', () => {
  beforeEach(async () => {
    bench.serve(PEOPLE);
    expect((await bench.sync()).code).toBe(0);
  });

  it.each([
    ['another key', { hash_key: 'another key that has 32 characters, too' }],
    ['one column less', { columns_hash: ['df_unified_id'] }],
    ['no column', { columns_hash: [], columns_drop: [] }],
    ['one more dropped', { columns_drop: ['phone', 'plan'] }],
  ])('%s: refused without --full-refresh, and told that older rows keep the old form [R354]', async (_, change) => {
    const lists = { ...LISTS, ...change };
    const refused = await bench.sync(lists);
    expect(refused.code).toBe(2);
    expect(refused.said).toMatch(/columns_drop, columns_hash or hash_key\s+differ.*--full-refresh.*keep the old form/);
    const done = await bench.sync(lists, undefined, '--full-refresh');
    expect(done.code, done.said).toBe(0);
    expect(done.said).toContain('keep the old form');
    const again = await bench.sync(lists);
    expect([again.code, again.said]).toEqual([0, expect.not.stringContaining('keep the old form')]);
  });

  it('the same lists in another order, and a key from the environment, are the same question [R354]', async () => {
    const { hash_key, ...lists } = LISTS;
    const path = bench.config({ ...lists, columns_hash: [...LISTS.columns_hash].reverse() });
    const words = ['sync', 'duckdb', bench.at('events.duckdb'), '--config', path];
    expect((await bench.run(words, { DFINERY_HASH_KEY: hash_key })).code).toBe(0);
    expect((await bench.run(words)).said).toContain('hash_key (DFINERY_HASH_KEY) is missing');
  });
});
