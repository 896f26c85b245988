import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

type Options = Parameters<DuckDbFixture['load']>[1];
const day = (n: number, rows: readonly Cells[] | string, zone?: string) =>
  fixture.window(`2026-01-0${n}`, typeof rows === 'string' ? rows : csvOf(rows), zone);
/** Each window in a run of its own. */
const load = async (options: Options, ...windows: ReturnType<typeof day>[]) => {
  const commits = [];
  for (const window of windows) commits.push(...(await fixture.load([window], options)));
  return commits;
};
const types = (entries: Readonly<Record<string, 'long' | 'double' | 'string' | 'date'>>) =>
  new Map(Object.entries(entries));
const columns = (...names: string[]) =>
  fixture.query(
    `SELECT source_name AS s, occurrence AS o, table_name AS name, type, first_shape AS shape FROM _dfinery_columns
    WHERE source_name IN (${names.map((name) => `'${name}'`).join(', ')}) ORDER BY position`,
  );
const rows = (select: string) => fixture.query(`SELECT ${select} FROM events ORDER BY _key`);

describe('two columns of one name in a header', () => {
  const TWICE = 'df_event_detail_log_id,x,x\n';

  it('have their own types, and their own cells in _rescued', async () => {
    await load({}, day(1, `${TWICE}a,1,one\n`), day(2, `${TWICE}b,2.5,\n`));
    expect(await columns('x')).toEqual([
      { s: 'x', o: 1, name: 'x', type: 'double', shape: '9' },
      { s: 'x', o: 2, name: 'x_2', type: 'string', shape: 'aaa' },
    ]);
    const [commit] = await load({ columnTypes: types({ x: 'long' }) }, day(3, `${TWICE}c,first,second\nd,3,4\n`));
    expect(commit.rescued).toEqual(
      new Map([
        ['x', 1],
        ['x_2', 1],
      ]),
    );
    expect((await rows('x, x_2, _rescued AS r')).map(({ x, x_2, r }) => [x, x_2, r && JSON.parse(String(r))])).toEqual([
      ['1', null, { x_2: 'one' }],
      [null, null, { x: '2.5' }],
      [null, null, { x: 'first', x_2: 'second' }],
      ['3', '4', null],
    ]);
  });

  it('are one column when a later header has the name once; a pinned type is that of the first', async () => {
    await load(
      { pinned: types({ x: 'double' }) },
      day(1, `${TWICE}a,1,2\n`),
      day(2, 'df_event_detail_log_id,x\nb,3\n'),
    );
    expect((await columns('x')).map(({ name, type }) => [name, type])).toEqual([
      ['x', 'double'],
      ['x_2', 'long'],
    ]);
    expect(await rows('x, x_2')).toEqual([
      { x: 1, x_2: '2' },
      { x: 3, x_2: null },
    ]);
  });

  it('are refused under freeze by the name of the new one', async () => {
    await load({}, day(1, 'df_event_detail_log_id,x\na,1\n'));
    const [commit] = await load({ schemaMode: 'freeze' }, day(2, `${TWICE}b,2,other\n`));
    expect(commit.rescued).toEqual(new Map([['x_2', 1]]));
    expect(await rows('x, _rescued AS r')).toEqual([
      { x: '1', r: null },
      { x: '2', r: '{"x_2":"other"}' },
    ]);
  });
});

describe('the first window', () => {
  it.each(['freeze', 'fail'] as const)('is loaded under %s without a pinned schema', async (schemaMode) => {
    const [commit] = await load({ schemaMode }, day(1, [{ id: 'a', x: '1' }]));
    expect(commit.columnsAdded).toContain('x');
    expect(await rows('x')).toEqual([{ x: '1' }]);
    await expect(load({ schemaMode: 'fail' }, day(2, [{ id: 'b', y: '1' }]))).rejects.toThrow(/column y is new/);
  });

  it('under fail with a pinned schema accepts its columns and refuses others', async () => {
    const options = { schemaMode: 'fail' as const, pinned: types({ x: 'double' }) };
    await expect(load(options, day(1, [{ id: 'a', x: '1', y: '1' }]))).rejects.toThrow(/column y is new/);
    await expect(load(options, day(1, [{ id: 'a', x: 'one' }]))).rejects.toThrow(
      /column x of type double has a cell that does not fit \(first such cell: aaa\)/,
    );
    await load(options, day(1, [{ id: 'a', x: '1' }]));
    expect(await rows('x')).toEqual([{ x: 1 }]);
  });

  it('with a pinned event_name has one event name column', async () => {
    await load({ pinned: types({ event_name: 'string', df_event_name: 'string' }) }, day(1, [{ id: 'a' }]));
    expect(await columns('event_name', 'df_event_name')).toMatchObject([{ name: 'df_event_name', type: 'string' }]);
  });
});

describe('schema_mode fail', () => {
  const start = () => load({}, day(1, [{ id: 'a', x: '1.5', s: 'text', d: '2026-01-05', empty: '' }]));
  const fail = (row: Cells, more: Options = {}) => load({ schemaMode: 'fail', ...more }, day(2, [{ id: 'b', ...row }]));

  it.each<[string, Cells]>([
    ['fits a wider type', { x: '5' }],
    ['is a text already', { s: '5' }],
    ['is null or empty', { x: 'null', d: '', s: 'null', empty: 'null', other: '' }],
  ])('accepts a cell that %s', async (_, row) => {
    await start();
    await fail(row);
    expect(await rows('_key')).toEqual([{ _key: 'a' }, { _key: 'b' }]);
  });

  it.each<[string, Cells, RegExp]>([
    [
      'widens a column',
      { d: '2026-01-05 10:00:00' },
      /column d of type date would become datetime \(first such cell: 9999-99-99/,
    ],
    ['is the first of a column', { empty: 'x' }, /column empty is new \(first such cell: a\)/],
    ['makes a text of a number', { x: 'n/a' }, /column x of type double would become string \(first such cell: a\/a\)/],
  ])('a cell is refused that %s', async (_, row, message) => {
    await start();
    await expect(fail(row)).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
    expect(await rows('_key')).toEqual([{ _key: 'a' }]);
  });

  it('accepts a newly configured type, and refuses a cell that does not fit it', async () => {
    await start();
    await expect(fail({ x: 'n/a' }, { columnTypes: types({ x: 'long' }) })).rejects.toThrow(
      /column x of type long has a cell that does not fit/,
    );
    await fail({ x: '7' }, { columnTypes: types({ x: 'string', new: 'long' }) });
    expect(await rows('x')).toEqual([{ x: '1.5' }, { x: '7' }]);
  });
});

describe('the type of a column', () => {
  it.each([
    [['1.5', '5'], 'double'],
    [['5', '1.5'], 'double'],
    [['5', 'TRUE'], 'string'],
    [['2026-01-05', '5'], 'string'],
    [['2026-01-05 10:00:00', '2026-01-05'], 'datetime'],
    [['[1]', '[1.5]'], 'double[]'],
    [['["a"]', '[1]'], 'string[]'],
    [['null', '5'], 'long'],
    [['5', 'null'], 'long'],
    [['x', '5'], 'string'],
  ])('after %j, one a day, is %s', async (cells, type) => {
    await load({}, ...cells.map((x, i) => day(i + 1, [{ id: `${i}`, x }])));
    expect(await columns('x')).toMatchObject([{ type }]);
  });

  it('under freeze is that of the column, whatever follows; a column without values is not added', async () => {
    await load({}, day(1, [{ id: 'a', x: '5', empty: '' }]));
    const [commit] = await load({ schemaMode: 'freeze' }, day(2, [{ id: 'b', x: '1.5', empty: 'now', nulls: 'null' }]));
    expect(commit).toMatchObject({ columnsAdded: [], columnsWidened: [] });
    expect(await rows('x, _rescued AS r')).toEqual([
      { x: '5', r: null },
      { x: null, r: '{"empty":"now","x":"1.5"}' },
    ]);
    expect(await columns('empty', 'nulls')).toMatchObject([{ type: null }, { type: null }]);
  });

  it('is reported when it widens, with the first cell that caused it, and only then', async () => {
    const [first, second, third] = await load(
      {},
      day(1, [{ id: 'a', x: '5', y: '7' }]),
      day(2, [
        { id: 'b', x: '6', y: '8' },
        { id: 'c', x: '1.25', y: 'null' },
        { id: 'd', x: '2.5', y: '' },
      ]),
      day(3, [{ id: 'e', x: '9' }]),
    );
    expect(first.columnsWidened).toEqual([]);
    expect(first.columnsAdded).toEqual(expect.arrayContaining(['x', 'y', 'df_unified_id']));
    expect(second).toMatchObject({ columnsAdded: [], columnsWidened: [{ name: 'x', from: 'long', to: 'double' }] });
    expect(third).toMatchObject({ columnsAdded: [], columnsWidened: [] });
    expect(fixture.log.filter(({ event }) => event === 'schema.changed').map(({ message }) => message)).toEqual([
      'column x changes from long to double: first such cell 9.99',
    ]);
  });
});

describe('a window without a file', () => {
  it('reports no missing column', async () => {
    const none = day(2, []);
    await load({}, day(1, [{ id: 'a', x: '1' }]), { ...none, files: [] }, day(3, []));
    expect(
      await fixture.query(`SELECT "window" AS w FROM _dfinery_changes WHERE change = 'missing' AND source_name = 'x'`),
    ).toEqual([{ w: expect.stringMatching(/^2026-01-03/) }]);
  });
});

describe('cells that do not fit', () => {
  it('are reported by column, in the singular and the plural', async () => {
    await load(
      {},
      day(1, [
        { id: 'a', df_discount: 'free', df_delivery_charge: 'x' },
        { id: 'b', df_discount: 'gift' },
      ]),
    );
    expect(
      fixture.log.filter(({ event }) => event === 'cells.rescued').map(({ message, fields }) => [message, fields]),
    ).toEqual([
      [
        'column df_delivery_charge: 1 cell not of its type, kept as text in _rescued',
        { column: 'df_delivery_charge', cells: 1 },
      ],
      ['column df_discount: 2 cells not of its type, kept as text in _rescued', { column: 'df_discount', cells: 2 }],
    ]);
  });

  it('stay in _rescued of their row beside those that a narrower type adds', async () => {
    await load(
      {},
      day(1, [
        { id: 'a', df_discount: 'free', x: 'q', y: '1.5' },
        { id: 'b', x: '1', y: '2.5' },
        { id: 'c', x: '2', y: '3' },
      ]),
    );
    await load({ columnTypes: types({ x: 'long', y: 'long' }) }, day(2, [{ id: 'd' }]));
    expect((await rows('x, y, _rescued AS r')).map(({ x, y, r }) => [x, y, r && JSON.parse(String(r))])).toEqual([
      [null, null, { df_discount: 'free', x: 'q', y: '1.5' }],
      ['1', null, { y: '2.5' }],
      ['2', '3', null],
      [null, null, null],
    ]);
  });
});
