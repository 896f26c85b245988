import { existsSync, readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import type { ColumnType } from '../../../src/cells/types/type.ts';
import type { HashedColumns } from '../../../src/extract/export-request.ts';
import type { PeopleQuery } from '../../../src/targets/people.ts';
import type { Cells } from '../../support/targets/csv.ts';
import { TARGETS, TargetFixture } from '../../support/targets/target-fixture.ts';

describe.each(TARGETS)('people in %s', (name) => {
  let fixture: TargetFixture;
  beforeEach(() => {
    fixture = TargetFixture.of(name);
  });
  afterEach(() => fixture.close());

  const load = (
    rows: readonly Cells[],
    types: Readonly<Record<string, ColumnType>> = {},
    day = '2026-01-01',
    hashed?: readonly HashedColumns[],
  ) => {
    const plain = fixture.fixture.windowOf(day, ...rows);
    const window = hashed === undefined ? plain : { ...plain, state: { ...plain.state, hashed } };
    return fixture.store([window], { columnTypes: new Map(Object.entries(types)) });
  };
  const find = async (column: string, ...ids: string[]) => {
    const found = await fixture.people({ column, ids });
    const people = found.unifiedIds.map(({ text }) => text).sort();
    return { people, ids: [...found.rowsOf.keys()].sort(), idsWithoutUnifiedId: [...found.idsWithoutUnifiedId].sort() };
  };
  const purgeOf = async (query: PeopleQuery) => {
    const { rows, rowsRemoved, found } = await fixture.purge(query);
    expect(found.rows).toBe(rowsRemoved);
    const left = await fixture.keys();
    expect(left).toHaveLength(rows);
    return { rowsRemoved, left };
  };
  const purge = (column: string, ...ids: string[]) => purgeOf({ column, ids });
  const NOBODY = { people: [], ids: [], idsWithoutUnifiedId: [] };

  it('are the ids of rows with one of the texts, each once, and rows without an id are counted apart', async () => {
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
      ids: ['a', 'b', 'c'],
      idsWithoutUnifiedId: ['b', 'c'],
    });
    expect(await find('df_unified_id', 'u3', 'a')).toEqual({ people: ['u3'], ids: ['u3'], idsWithoutUnifiedId: [] });
    expect(await find('member', 'none')).toEqual(NOBODY);
    expect(await find('member')).toEqual(NOBODY);
  });

  it('are none in a location without rows', async () => {
    await load([]);
    expect(await find('df_unified_id', 'u1')).toEqual(NOBODY);
    expect(await purge('df_unified_id', 'u1')).toEqual({ rowsRemoved: 0, left: [] });
  });

  it('are neither found nor purged by a column that is missing or never had a value', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1', empty: '' }]);
    for (const column of ['nowhere', 'empty']) {
      const refused = { kind: 'config', message: expect.stringContaining(`has no column ${column}`) };
      await expect(find(column, 'x'), column).rejects.toMatchObject(refused);
      await expect(purge(column, 'x'), column).rejects.toMatchObject(refused);
    }
    expect(await purge('df_unified_id', 'none')).toEqual({ rowsRemoved: 0, left: ['e1'] });
  });

  it('are found by the value of a number or a boolean in any spelling, and by the text of anything else', async () => {
    const rows: Cells[] = [
      { id: 'e1', df_unified_id: 'u1', long: '12', double: '12.0', truth: 'TRUE', text: '12' },
      { id: 'e2', df_unified_id: 'u2', long: '13', double: '1.50', truth: 'false', text: '012' },
      { id: 'e3', df_unified_id: 'u3', long: '', double: '', truth: '', text: '' },
    ];
    await load(rows, { text: 'string', double: 'double', long: 'long', truth: 'boolean' });
    const people = async (column: string, ...texts: string[]) => (await find(column, ...texts)).people;
    expect(await people('long', '12')).toEqual(['u1']);
    expect(await people('double', '12')).toEqual(['u1']);
    expect(await find('double', '1.5', '1.50')).toMatchObject({ people: ['u2'], ids: ['1.5', '1.50'] });
    expect(await people('truth', 'true')).toEqual(['u1']);
    expect(await people('truth', 'FALSE')).toEqual(['u2']);
    expect(await people('truth', 'no', '')).toEqual([]);
    expect(await people('text', '12')).toEqual(['u1']);
    expect(await purge('double', '12')).toEqual({ rowsRemoved: 1, left: ['e2', 'e3'] });
    expect(await purge('text', '12')).toEqual({ rowsRemoved: 0, left: ['e2', 'e3'] });
    expect(await purge('truth', 'no', 'FALSE')).toEqual({ rowsRemoved: 1, left: ['e3'] });
  });

  it.each(['long', 'double', 'boolean'] as const)(
    'are found by a cell that is no %s in a column of that type',
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
        ids: [fitting, "o'hara"].sort(),
        idsWithoutUnifiedId: [],
      });
      expect(await purge('m~/1', "o'hara")).toEqual({ rowsRemoved: 1, left: ['e2', 'e3'] });
      expect(await purge('m~/1', fitting)).toEqual({ rowsRemoved: 1, left: ['e3'] });
    },
  );

  it('are purged from every day, and the values of only one purge', async () => {
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
    expect(await fixture.verify()).toEqual([]);
    expect(await purge('df_unified_id', 'u3')).toEqual({ rowsRemoved: 1, left: ['e2'] });
  });

  it('are found by a datetime in the spelling of the export and in any other', async () => {
    const at = { id: 'e1', df_unified_id: 'u1', since: '2026-01-02 03:04:05.000' };
    await load([at, { id: 'e2', df_unified_id: 'u2', since: '2026-01-03 00:00:00.000' }]);
    for (const spelling of ['2026-01-02 03:04:05.000', '2026-01-02 03:04:05', '2026-01-02T03:04:05']) {
      expect(await find('since', spelling), spelling).toMatchObject({ people: ['u1'], ids: [spelling] });
    }
    expect(await purge('since', '2026-01-03')).toEqual({ rowsRemoved: 1, left: ['e1'] });
  });

  it('are found in both columns of one name, also by cells that did not fit', async () => {
    const header = 'df_unified_id,df_event_detail_log_id,df_server_datetime,member,member';
    const at = '2026-01-01 10:00:00.000';
    const csv = [header, `u1,e1,${at},a,`, `u2,e2,${at},,a`, `u3,e3,${at},b,c`, ''].join('\n');
    await fixture.store([fixture.fixture.window('2026-01-01', csv)]);
    expect(await find('member', 'a')).toMatchObject({ people: ['u1', 'u2'] });
    expect(await find('member', 'c')).toMatchObject({ people: ['u3'] });
    expect(await purge('member', 'a')).toEqual({ rowsRemoved: 2, left: ['e3'] });
  });

  it('are purged with all their rows, also those without the column, and a placeholder is nobody', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1', member: 'a' },
      { id: 'e2', df_unified_id: 'u1', member: '' },
      { id: 'e3', df_unified_id: 'null', member: 'a' },
      { id: 'e4', df_unified_id: 'null', member: 'b' },
      { id: 'e5', df_unified_id: 'undefined', member: 'a' },
      { id: 'e6', df_unified_id: 'undefined', member: '' },
      { id: 'e7', df_unified_id: ' ', member: 'a' },
      { id: 'e8', df_unified_id: ' ', member: 'c' },
    ]);
    expect(await fixture.people({ column: 'member', ids: ['a'] })).toMatchObject({ people: 1, rows: 5, shared: 0 });
    expect(await fixture.people({ ids: ['x'], mapping: new Map([['x', ['null', ' ']]]) })).toMatchObject({
      people: 0,
      rows: 0,
    });
    expect(await purge('member', 'a')).toEqual({ rowsRemoved: 5, left: ['e4', 'e6', 'e8'] });
  });

  it('are counted as shared when their rows have another id in the column', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1', member: 'a' },
      { id: 'e2', df_unified_id: 'u1', member: 'b' },
      { id: 'e3', df_unified_id: 'u2', member: 'a' },
      { id: 'e4', df_unified_id: 'u2', member: 'null' },
      { id: 'e5', df_unified_id: 'u3', member: 'c' },
    ]);
    expect(await fixture.people({ column: 'member', ids: ['a'] })).toMatchObject({ people: 2, rows: 4, shared: 1 });
    expect(await fixture.people({ column: 'member', ids: ['a', 'b'] })).toMatchObject({ people: 2, shared: 0 });
  });

  it('are found by a mapping in the rows of each of its unified ids', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1' },
      { id: 'e2', df_unified_id: 'u2' },
      { id: 'e3', df_unified_id: 'u3' },
    ]);
    const mapping = new Map([
      ['x', ['u1', 'u2', 'u9']],
      ['y', ['u8']],
      ['z', ['u3']],
    ]);
    expect(await fixture.people({ ids: ['x', 'y'], mapping })).toMatchObject({
      people: 2,
      rowsOf: new Map([['x', 2]]),
      rows: 2,
    });
    expect(await purgeOf({ ids: ['x', 'y'], mapping })).toEqual({ rowsRemoved: 2, left: ['e3'] });
  });

  it('are found in either form in a hashed column, as one person', async () => {
    const hashKey = new HashKey(new Secret('a hash key that has 32 characters'));
    const [member, person] = [hashKey.hashOf('a'), hashKey.hashOf('u1')];
    await load([
      { id: 'e1', df_unified_id: 'u1', member: '' },
      { id: 'e2', df_unified_id: 'u2', member: 'b' },
      { id: 'e3', df_unified_id: 'u3', member: 'a' },
    ]);
    const hashed = [
      { columns: [], key_check: null },
      { columns: ['df_unified_id', 'member'], key_check: hashKey.check },
    ];
    await load(
      [
        { id: 'e4', df_unified_id: person, member },
        { id: 'e5', df_unified_id: hashKey.hashOf('u3'), member: '' },
        { id: 'e6', df_unified_id: hashKey.hashOf('u2'), member: hashKey.hashOf('b') },
      ],
      {},
      '2026-01-02',
      hashed,
    );
    const query = { column: 'member', ids: ['a'], hashKey };
    const found = await fixture.people(query);
    expect(found).toMatchObject({ people: 2, rows: 4, shared: 0, rowsOf: new Map([['a', 4]]) });
    expect(found.unifiedIds).toContainEqual({ text: person, hashKey: hashKey.check });
    expect(found.unifiedIds).toContainEqual({ text: 'u1', hashKey: undefined });
    expect(await fixture.people({ ids: ['x'], mapping: new Map([['x', ['u2']]]), hashKey })).toMatchObject({
      people: 1,
      rows: 2,
    });
    await expect(fixture.people({ column: 'member', ids: ['a'] })).rejects.toMatchObject({ exitCode: 2 });
    expect(await purgeOf(query)).toEqual({ rowsRemoved: 4, left: ['e2', 'e6'] });
  });

  it('are reported before anything is changed, and stay if the report fails', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1' }]);
    const people = await fixture.target.people();
    const refused = people.purge(
      fixture.place,
      { column: 'df_unified_id', ids: ['u1'] },
      {
        ...fixture.options,
        async onFound({ rows }) {
          throw configError(`${rows} row`);
        },
      },
    );
    await expect(refused).rejects.toThrow('1 row');
    expect(await find('df_unified_id', 'u1')).toMatchObject({ people: ['u1'] });
  });

  it('are found by cells that did not fit in files without the column, too', async () => {
    await load([
      { id: 'a', df_unified_id: 'erna', level: '1' },
      { id: 'b', df_unified_id: 'hans', df_items_df_price: 'free' },
      { id: 'c', df_unified_id: '', df_items_df_price: '1.5' },
    ]);
    await load([{ id: 'd', df_unified_id: 'erna', df_items_df_price: 'free' }], {}, '2026-01-02');
    const late = fixture.fixture.windowOf('2026-01-03', { id: 'e', df_unified_id: 'frieda', level: 'x' });
    await fixture.store([late], { schemaMode: 'freeze' });
    expect(await find('df_items_df_price', 'free', '1.50')).toEqual({
      people: ['erna', 'hans'],
      ids: ['1.50', 'free'],
      idsWithoutUnifiedId: ['1.50'],
    });
    expect(await find('level', 'x', '1')).toMatchObject({ people: ['erna', 'frieda'] });
    expect(await purge('level', 'x')).toEqual({ rowsRemoved: 1, left: ['a', 'b', 'c', 'd'] });
    expect(await fixture.verify()).toEqual([]);
  });

  it('are printed row by row, and nothing of them is left on disk', async () => {
    const memo = 'a line\n\u2028another';
    await load([
      { id: 'a', df_unified_id: 'erna' },
      { id: 'b', df_unified_id: 'hans' },
      { id: 'c', df_unified_id: 'erna', memo },
    ]);
    const people = await fixture.target.people();
    const shown = () => people.rows(fixture.place, { column: 'df_unified_id', ids: ['erna'] }, fixture.options);
    const rows: { readonly _key: string; readonly memo?: string }[] = [];
    for await (const row of shown()) rows.push(JSON.parse(row));
    expect(rows.map(({ _key }) => _key).sort()).toEqual(['a', 'c']);
    expect(rows.find(({ _key }) => _key === 'c')?.memo).toBe(memo);
    for await (const row of shown()) {
      expect(row).not.toBe('');
      break;
    }
    const { spoolDir } = fixture.options;
    expect(existsSync(spoolDir) ? readdirSync(spoolDir) : []).toEqual([]);
  });
});
