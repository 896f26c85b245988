import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { csvOf, quoted } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const verify = () =>
  verifyDuckDb({
    file: fixture.file,
    lockWaitMs: 0,
    clock: { now: () => 0, sleep: async () => {}, after: () => () => {} },
  });

const NAMES = [
  'select',
  'a.b',
  'a b',
  'q"uo"te',
  "it's",
  '한글 열',
  'rowid',
  'c0',
  'base',
  '$1',
  '%s',
  '{}',
  'a\nb',
  '😀',
  '',
];
const OURS = [
  '_key',
  '_KEY',
  '_rescued',
  '_dfinery_window',
  'event_date',
  'item_position',
  'DF_UNIFIED_ID',
  'constructor',
];

/** Names that the SQL of this program uses for things of its own. */
const WORDS = 'w n k e r s c t0 name key value number rows events target base rescued seen known first last x d'.split(
  ' ',
);

describe('column names of any kind', () => {
  it('are columns with every cell in its place', async () => {
    const names = [
      ...NAMES,
      ...OURS,
      ...WORDS,
      '__proto__',
      'Sum',
      'sum',
      'df_items_',
      'df_items_x"y',
      'x'.repeat(5_000),
    ];
    const row = new Map(names.map((name, i) => [name, `text ${i}`]));
    const header = ['df_event_detail_log_id', ...names].sort();
    const line = (id: string) => header.map((name) => quoted(row.get(name) ?? id)).join(',');
    for (const ids of [
      ['a', 'b'],
      ['a', 'a', ''],
    ]) {
      const csv = `${header.map(quoted).join(',')}\n${ids.map(line).join('\n')}\n`;
      await fixture.load([fixture.window('2026-01-01', csv)]);
    }
    const map = await fixture.query(
      'SELECT source_name AS source, table_name AS name FROM _dfinery_columns WHERE type IS NOT NULL ORDER BY position',
    );
    for (const { source, name } of map.filter((column) => row.has(String(column.source)))) {
      const quotedName = `"${String(name).replaceAll('"', '""')}"`;
      const found = await fixture.query(`SELECT ${quotedName} AS v FROM events WHERE _key = 'a#2'`);
      expect(found, String(source)).toEqual([{ v: row.get(String(source)) }]);
    }
    const named = new Map(map.map(({ source, name }) => [source, name]));
    expect([named.get('_key'), named.get('rowid'), named.get('Sum'), named.get('sum')]).toEqual([
      '_key_3',
      'rowid',
      'Sum',
      'sum_2',
    ]);
    expect(named.get('DF_UNIFIED_ID')).toBe('DF_UNIFIED_ID_2');
    expect(await fixture.query('SELECT * FROM event_items')).toHaveLength(4);
    expect(await verify()).toEqual([]);
  });

  it('may occur twice in one header', async () => {
    const csv = 'df_event_detail_log_id,x,x,sum\na,1,one,2\n';
    await fixture.load([fixture.window('2026-01-01', csv)]);
    expect(await fixture.query('SELECT x, x_2, sum FROM events')).toEqual([{ x: '1', x_2: 'one', sum: '2' }]);
  });

  it('may be event_name, alone or beside df_event_name', async () => {
    const alone = csvOf([{ id: 'a' }]).replace('df_event_name', 'event_name');
    await fixture.load([fixture.window('2026-01-01', alone)]);
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'b', event_name: 'mine' }]))]);
    expect(await fixture.query('SELECT df_event_name AS d, event_name AS e FROM events ORDER BY _key')).toEqual([
      { d: 'df_login', e: null },
      { d: 'df_login', e: 'mine' },
    ]);
  });

  it('may be thousands, at once and one day later', async () => {
    const wide = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 1_250 }, (_, i) => [`${prefix} ${i}`, `${i}`]));
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', ...wide('x') }, { id: 'b' }]))]);
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'c', ...wide('df_items_y') }, { id: 'a' }]))]);
    expect(await fixture.query('SELECT "x 1249" AS x, "df_items_y 7" AS y FROM events ORDER BY _key')).toEqual([
      { x: null, y: null },
      { x: null, y: null },
      { x: null, y: '7' },
    ]);
    expect(await fixture.query('SELECT _key, "y 7" AS y FROM event_items')).toEqual([{ _key: 'c', y: '7' }]);
    expect(await verify()).toEqual([]);
  });
});

describe('cells of any kind', () => {
  it('are stored unchanged', async () => {
    const cells = [
      'a\nb',
      'a\r\nb',
      'a\rb',
      'back\\slash',
      'tab\t',
      '"',
      '""',
      ' x ',
      'null',
      'NULL',
      '007',
      '\u0000',
      '😀',
      ',',
      'x\ufeff',
    ];
    await fixture.load([
      fixture.window(
        '2026-01-01',
        csvOf(
          cells.map((x, i) => ({ id: `${100 + i}`, x, y: '' })),
          ['x', 'y'],
        ),
      ),
    ]);
    expect((await fixture.query('SELECT x FROM events ORDER BY _key')).map((row) => row.x)).toEqual(cells);
  });

  it('may be longer than the buffer of the reader', async () => {
    const long = 'long\n'.repeat(1_000_000);
    const csv = csvOf([
      { id: 'a', x: 'short' },
      { id: 'b', x: long },
      { id: 'c', x: '' },
      { id: 'c', x: 'z' },
    ]);
    await fixture.load([fixture.window('2026-01-01', csv)]);
    expect(await fixture.query('SELECT _key, length(x) AS n FROM events ORDER BY 1')).toEqual([
      { _key: 'a', n: '5' },
      { _key: 'b', n: '5000000' },
      { _key: 'c', n: null },
      { _key: 'c#2', n: '1' },
    ]);
  });

  it('are read from a path with any characters', async () => {
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a' }]));
    const { readFileSync, mkdirSync } = await import('node:fs');
    mkdirSync(`${fixture.dir}/it's [1]*?`);
    const path = `${fixture.dir}/it's [1]*?/x.csv`;
    writeFileSync(path, readFileSync(window.files[0].path));
    const [commit] = await fixture.load([{ ...window, files: [{ ...window.files[0], path }] }]);
    expect(commit.rows).toBe(1);
  });
});
