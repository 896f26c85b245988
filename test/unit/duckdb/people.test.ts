import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HashedColumns } from '../../../src/extract/hashed-columns.ts';
import { duckdb } from '../../../src/sinks/duckdb/target.ts';
import { parquet } from '../../../src/sinks/parquet/target.ts';
import type { Match, PurgeTarget } from '../../../src/sinks/target.ts';
import type { ColumnType } from '../../../src/types/type.ts';
import { type Cells, csvOf, on } from '../../support/targets/duckdb.ts';
import { ParquetBench } from '../../support/targets/parquet.ts';

let bench: ParquetBench;
beforeEach(() => {
  bench = new ParquetBench();
});
afterEach(() => bench.close());

const TARGETS = [
  ['DuckDB', duckdb as PurgeTarget],
  ['Parquet', parquet as PurgeTarget],
] as const;

describe.each(TARGETS)('people in %s', (name, target) => {
  const isFile = name === 'DuckDB';
  const place = () => (isFile ? bench.file : bench.root);
  const options = () => ({ ...bench.targetOptions, spoolDir: bench.dir, env: () => undefined });
  const load = (rows: readonly Cells[], types: Readonly<Record<string, ColumnType>> = {}, day = '2026-01-01') => {
    const window = bench.window(day, csvOf(rows.map((row) => ({ ...on(day), ...row }))));
    const columnTypes = new Map(Object.entries(types));
    return isFile ? bench.load([window], { columnTypes }) : bench.store([window], { columnTypes });
  };
  const find = async (column: string, ...texts: string[]): Promise<Match> => {
    const { people, found, foundWithoutId } = await target.people(place(), column, () => texts, options());
    return { people: [...people].sort(), found: [...found].sort(), foundWithoutId: [...foundWithoutId].sort() };
  };
  const purge = async (column: string, ...values: string[]) => {
    const { rows, rowsRemoved } = await target.purge(place(), { column, values }, options());
    const left = await (isFile ? bench.query('SELECT _key FROM events ORDER BY 1') : readKeys());
    expect(left).toHaveLength(rows);
    return { rowsRemoved, left: left.map(({ _key }) => _key) };
  };
  /** Empty where no file is left to read. */
  const readKeys = () =>
    bench.files().some((file) => file.startsWith('events/')) ? bench.read('SELECT _key FROM events ORDER BY 1') : [];
  const NOBODY: Match = { people: [], found: [], foundWithoutId: [] };

  it('are those of the rows with one of the texts, each once, and rows of nobody are told apart', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1', member: 'a' },
      { id: 'e2', df_unified_id: 'u1', member: 'a' },
      { id: 'e3', df_unified_id: 'u2', member: 'b' },
      { id: 'e4', df_unified_id: '', member: 'b' },
      { id: 'e5', df_unified_id: '', member: 'c' },
      { id: 'e6', df_unified_id: 'u3', member: 'd' },
      { id: 'e7', df_unified_id: 'u4', member: '' },
    ]);
    expect(await find('member', 'a', 'b', 'c', 'none')).toEqual({
      people: ['u1', 'u2'],
      found: ['a', 'b', 'c'],
      foundWithoutId: ['b', 'c'],
    });
    expect(await find('df_unified_id', 'u3', 'a')).toEqual({ people: ['u3'], found: ['u3'], foundWithoutId: [] });
    expect(await find('member', 'none')).toEqual(NOBODY);
    expect(await find('member')).toEqual(NOBODY);
  });

  it('are looked for with what the place has hashed', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1', member: 'a' }]);
    const given: (readonly HashedColumns[])[] = [];
    const textsIn = (hashed: readonly HashedColumns[]) => {
      given.push(hashed);
      return ['a'];
    };
    expect((await target.people(place(), 'member', textsIn, options())).people).toEqual(['u1']);
    expect(given).toEqual([[]]);
  });

  it('are nobody where no row is', async () => {
    await load([]);
    expect(await find('df_unified_id', 'u1')).toEqual(NOBODY);
    expect(await purge('df_unified_id', 'u1')).toEqual({ rowsRemoved: 0, left: [] });
  });

  it('are neither looked for nor purged by a column that is not there, or never had a value', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1', empty: '' }]);
    for (const column of ['nowhere', 'empty']) {
      const refused = { kind: 'config', message: expect.stringContaining(`has no column ${column}`) };
      await expect(find(column, 'x'), column).rejects.toMatchObject(refused);
      await expect(purge(column, 'x'), column).rejects.toMatchObject(refused);
    }
    expect(await purge('df_unified_id', 'none')).toEqual({ rowsRemoved: 0, left: ['e1'] });
  });

  it('are found by the value of a number or a boolean, however it is written, and by the spelling of anything else', async () => {
    const rows: Cells[] = [
      { id: 'e1', df_unified_id: 'u1', long: '12', double: '12.0', truth: 'TRUE', text: '12' },
      { id: 'e2', df_unified_id: 'u2', long: '13', double: '1.50', truth: 'false', text: '12.0' },
      { id: 'e3', df_unified_id: 'u3', long: '', double: '', truth: '', text: '' },
    ];
    await load(rows, { text: 'string', double: 'double', long: 'long', truth: 'boolean' });
    const people = async (column: string, ...texts: string[]) => (await find(column, ...texts)).people;
    expect(await people('long', '12')).toEqual(['u1']);
    expect(await people('double', '12')).toEqual(['u1']);
    expect(await find('double', '1.5', '1.50')).toMatchObject({ people: ['u2'], found: ['1.5', '1.50'] });
    expect(await people('truth', 'true')).toEqual(['u1']);
    expect(await people('truth', 'FALSE')).toEqual(['u2']);
    expect(await people('truth', 'no', '')).toEqual([]);
    expect(await people('text', '12')).toEqual(['u1']);
    expect(await purge('double', '12')).toEqual({ rowsRemoved: 1, left: ['e2', 'e3'] });
    expect(await purge('text', '12')).toEqual({ rowsRemoved: 0, left: ['e2', 'e3'] });
    expect(await purge('truth', 'no', 'FALSE')).toEqual({ rowsRemoved: 1, left: ['e3'] });
  });

  it.each(['long', 'double', 'boolean'] as const)(
    'are found by a cell that is no %s in a column that is one',
    async (type) => {
      const fitting = type === 'boolean' ? 'TRUE' : '7';
      const rows = [
        { id: 'e1', df_unified_id: 'u1', 'm~/1': "o'hara" },
        { id: 'e2', df_unified_id: 'u2', 'm~/1': fitting },
        { id: 'e3', df_unified_id: 'u3', other: "o'hara" },
      ];
      await load(rows, { 'm~/1': type, other: type });
      expect(await find('m~/1', "o'hara", fitting)).toEqual({
        people: ['u1', 'u2'],
        found: [fitting, "o'hara"].sort(),
        foundWithoutId: [],
      });
      expect(await purge('m~/1', "o'hara")).toEqual({ rowsRemoved: 1, left: ['e2', 'e3'] });
      expect(await purge('m~/1', fitting)).toEqual({ rowsRemoved: 1, left: ['e3'] });
    },
  );

  it('are purged of every day, the values of one purge alone', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1' },
      { id: 'e2', df_unified_id: 'u2' },
    ]);
    await load(
      [
        { id: 'e3', df_unified_id: 'u1' },
        { id: 'e4', df_unified_id: 'u3' },
      ],
      {},
      '2026-01-02',
    );
    await load([{ id: 'e5', df_unified_id: 'u1' }], {}, '2026-01-03');
    expect(await purge('df_unified_id', 'u1', 'u9')).toEqual({ rowsRemoved: 3, left: ['e2', 'e4'] });
    expect(await target.verify?.(place(), options())).toEqual([]);
    expect(await purge('df_unified_id', 'u3')).toEqual({ rowsRemoved: 1, left: ['e2'] });
  });
});
