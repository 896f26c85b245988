import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { HashKey } from '../../../src/base/hash-key.ts';
import { Secret } from '../../../src/base/secrets.ts';
import type { ColumnType } from '../../../src/cells/types/column-types.ts';
import type { PeopleFindings, PeopleQuery } from '../../../src/engine/people/people.ts';
import { USER_PROFILES } from '../../../src/table/tables.ts';
import type { Cells } from '../../support/targets/csv.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;
const hashKey = new HashKey(new Secret('a hash key that has 32 characters'));
const otherKey = new HashKey(new Secret('another key that has 32 characters, too'));
const listKey = new HashKey(new Secret('a suppression key of 32 characters'));
let place: Place;

const load = (rows: readonly Cells[], types: Readonly<Record<string, ColumnType>> = {}, day: string = D1) =>
  place.load([[place.of(day, rows)]], { columnTypes: new Map(Object.entries(types)) });
const loadHashed = async (
  day: string,
  rows: readonly Cells[],
  columns: readonly string[],
  key: HashKey,
  more: Parameters<Place['open']>[0] = {},
) => {
  const sink = await place.open(more);
  const commitInfo = place.commitInfo(D1, { columns, key_check: key.keyCheck });
  await sink.commit([place.of(day, rows, { filters: commitInfo.fingerprints.filtersHash })], commitInfo);
  await sink.close();
};
/** Loads these profiles, whose `df_unified_id` are hashed. */
const loadProfiles = async (csv: string, key: HashKey) => {
  const sink = await place.open({ loadsProfiles: true });
  const commitInfo = place.commitInfo(D1, { columns: ['df_unified_id'], key_check: key.keyCheck });
  await sink.commit([place.snapshot(csv)], commitInfo, USER_PROFILES);
  await sink.close();
};
const look = async (query: PeopleQuery) => (await place.peopleOperations()).find(query);
const find = async (column: string, ...ids: string[]) => {
  const { unifiedIds, rowCountById } = await look({ byColumn: column, ids });
  return { people: [...unifiedIds].sort(), rowsOf: Object.fromEntries(rowCountById) };
};
const purge = async (query: PeopleQuery) => {
  let rowsFound = 0;
  const onFound = async ({ rowCount, suppressedOthers }: PeopleFindings) => {
    rowsFound = rowCount + suppressedOthers.rowCount;
    return 0;
  };
  const { rowsRemoved } = await (await place.peopleOperations()).purge(query, onFound);
  expect(rowsFound).toBe(rowsRemoved);
  return { rowsRemoved, left: (await place.keys()).map((key) => key.slice(11)).sort() };
};

describe.each(TARGET_NAMES)('people in %s', (name) => {
  beforeEach(() => {
    place = new Place(name);
  });

  it('are found by a column, and leave with all their rows of all days', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1', member: 'a' },
      { id: 'e2', df_unified_id: 'u1', member: '' },
      { id: 'e3', df_unified_id: 'u2', member: 'b' },
      { id: 'e4', df_unified_id: '', member: 'a' },
    ]);
    await load([{ id: 'e5', df_unified_id: 'u1' }], {}, D2);
    const people = await look({ byColumn: 'member', ids: ['a', 'b', 'none'] });
    expect(people).toMatchObject({ personCount: 2, rowCount: 5, sharedPersonIds: new Set() });
    expect(Object.fromEntries(people.rowCountById)).toEqual({ a: 4, b: 1 });
    expect(await purge({ byColumn: 'member', ids: ['a'] })).toEqual({ rowsRemoved: 4, left: ['e3'] });
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });

  it('are found by the value of a number, and by cells that did not fit', async () => {
    const rows = [
      { id: 'e1', df_unified_id: 'u1', long: '12', double: '12.0' },
      { id: 'e2', df_unified_id: 'u2', long: 'A-13', double: '1.50' },
    ];
    await load(rows, { double: 'double', long: 'long' });
    expect((await find('long', '12')).people).toEqual(['u1']);
    expect((await find('long', '12.0', '012')).people).toEqual([]);
    expect((await find('double', '12')).people).toEqual(['u1']);
    expect(await find('double', '1.5', '1.50')).toEqual({ people: ['u2'], rowsOf: { '1.5': 1, '1.50': 1 } });
    expect(await purge({ byColumn: 'long', ids: ['A-13'] })).toEqual({ rowsRemoved: 1, left: ['e1'] });
  });

  it.each(['NFC', 'NFD'])('are found by rescued cells of a column that the table lacks, named in %s', async (form) => {
    await load([{ id: 'e1', df_unified_id: 'u1' }]);
    const column = '회원~a/b'.normalize(form);
    const rows = [
      { id: 'e2', df_unified_id: 'u1', [column]: 'A-1' },
      { id: 'e3', df_unified_id: 'u2', [column]: 'A-2' },
    ];
    await place.load([[place.of(D2, rows)]], { schemaMode: 'freeze' });
    const query = { byColumn: '회원~a/b'.normalize(form === 'NFC' ? 'NFD' : 'NFC'), ids: ['A-1'] };
    expect(await purge(query)).toEqual({ rowsRemoved: 2, left: ['e3'] });
  });

  it('are found by unified ids in the rows of each of them', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1' },
      { id: 'e2', df_unified_id: 'u2' },
      { id: 'e3', df_unified_id: 'u3' },
      { id: 'e4', df_unified_id: 'null' },
    ]);
    const unifiedIdsById = { x: ['u1', 'u2', 'u9'], y: ['u8'], z: ['u3'], w: ['null', ' '] };
    const query = { ids: ['x', 'y', 'w'], knownUnifiedIdsById: new Map(Object.entries(unifiedIdsById)) };
    const rowCountById = new Map([['x', 2]]);
    expect(await look(query)).toMatchObject({ personCount: 2, rowCountById, rowCount: 2 });
    expect(await purge(query)).toEqual({ rowsRemoved: 2, left: ['e3', 'e4'] });
  });
});

describe('people in a place', () => {
  beforeEach(() => {
    place = new Place('duckdb');
  });

  it('are found in the other ways where the column is missing or never had a value', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1', empty: '' }]);
    for (const byColumn of ['nowhere', 'empty']) {
      expect(await look({ byColumn, ids: ['x'] })).toMatchObject({ personCount: 0, rowCount: 0 });
      const knownUnifiedIdsById = new Map([['x', ['u1']]]);
      expect(await look({ byColumn, ids: ['x'], knownUnifiedIdsById })).toMatchObject({ personCount: 1, rowCount: 1 });
    }
  });

  it('are found by a name in another Unicode form, and by all columns of one name', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1', 고객: 'a' }]);
    expect((await find('고객'.normalize('NFD'), 'a')).people).toEqual(['u1']);
    const csv = ['df_unified_id,df_event_detail_log_id,member,member', 'u1,e1,a,', 'u2,e2,,a', 'u3,e3,b,c', ''];
    await place.load([[place.ofCsv(D2, [csv.join('\n')])]]);
    expect((await find('member', 'a')).people).toEqual(['u1', 'u2']);
    const thirdColumn = 'df_unified_id,df_event_detail_log_id,member,member,member\nu4,e4,,,a\n';
    await place.load([[place.ofCsv('2026-01-03', [thirdColumn])]], { schemaMode: 'freeze' });
    expect((await find('member', 'a')).people).toEqual(['u1', 'u2', 'u4']);
  });

  it('are never placeholders', async () => {
    await load([
      { id: 'e1', df_unified_id: 'null', member: 'a' },
      { id: 'e2', df_unified_id: 'null', member: 'b' },
      { id: 'e3', df_unified_id: ' ', member: 'a' },
      { id: 'e4', df_unified_id: ' ', member: 'c' },
    ]);
    expect(await look({ byColumn: 'member', ids: ['a'] })).toMatchObject({ personCount: 0, namelessRowCount: 2 });
    expect(await purge({ byColumn: 'member', ids: ['a'] })).toEqual({ rowsRemoved: 2, left: ['e2', 'e4'] });
  });

  it('count as shared if their rows have another id in the column', async () => {
    await load([
      { id: 'e1', df_unified_id: 'u1', member: 'a' },
      { id: 'e2', df_unified_id: 'u1', member: 'b' },
      { id: 'e3', df_unified_id: 'u2', member: 'a' },
      { id: 'e4', df_unified_id: 'u2', member: 'null' },
    ]);
    expect(await look({ byColumn: 'member', ids: ['a'] })).toMatchObject({
      personCount: 2,
      rowCount: 4,
      sharedPersonIds: new Set(['u1']),
    });
    expect((await look({ byColumn: 'member', ids: ['a', 'b'] })).sharedPersonIds).toEqual(new Set());
  });

  it('are named for another spelling in a hashed column, too, whatever its hash begins with', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `kim${i}`);
    expect(names.some((text) => hashKey.hashOf(text).startsWith('0'))).toBe(true);
    const rows = names.map((text, i) => ({ id: `e${i}`, df_unified_id: `u${i}`, member: hashKey.hashOf(text) }));
    await loadHashed(D1, rows, ['member'], hashKey);
    const ids = names.map((text) => text.toUpperCase());
    expect((await look({ byColumn: 'member', ids, hashKey, searchesSimilarIds: true })).similarIdsById.size).toBe(40);
    await loadHashed(D2, [{ id: 'x', df_unified_id: 'u', member: hashKey.hashOf('A-1') }], ['member'], hashKey);
    const others = ['a-1', 'A-1 ', '00A-1'];
    const { similarIdsById } = await look({ byColumn: 'member', ids: others, hashKey, searchesSimilarIds: true });
    expect([...similarIdsById.keys()].sort()).toEqual(others.toSorted());
  });

  it('are found in either form in a hashed column, as one person', async () => {
    const hash = (text: string) => hashKey.hashOf(text);
    await load([
      { id: 'e1', df_unified_id: 'u1', member: '' },
      { id: 'e2', df_unified_id: 'u2', member: 'b' },
      { id: 'e3', df_unified_id: 'u3', member: 'a' },
    ]);
    const rows = [
      { id: 'e4', df_unified_id: hash('u1'), member: hash('a') },
      { id: 'e5', df_unified_id: hash('u3'), member: '' },
      { id: 'e6', df_unified_id: hash('u2'), member: hash('b') },
    ];
    await loadHashed(D2, rows, ['df_unified_id', 'member'], hashKey);
    const query = { byColumn: 'member', ids: ['a'], hashKey };
    expect(await look(query)).toMatchObject({
      personCount: 2,
      rowCount: 4,
      sharedPersonIds: new Set(),
      rowCountById: new Map([['a', 4]]),
    });
    expect((await look(query)).unifiedIds).toEqual(new Set(['u1', 'u3', hash('u1'), hash('u3')]));
    const knownUnifiedIdsById = new Map([['x', ['u2']]]);
    expect(await look({ ids: ['x'], knownUnifiedIdsById, hashKey })).toMatchObject({ personCount: 1, rowCount: 2 });
    expect(await purge(query)).toEqual({ rowsRemoved: 4, left: ['e2', 'e6'] });
  });

  it('are found in plain rows by the hash that another place has, or the suppression list', async () => {
    const ids = ['u1', 'u2', 'u3'];
    await load(ids.map((id, i) => ({ id: `e${i + 1}`, df_unified_id: id, member: id === 'u2' ? 'b' : '' })));
    const query = {
      byColumn: 'member',
      ids: ['a'],
      knownUnifiedIdsById: new Map([['a', [hashKey.hashOf('u1')]]]),
      suppressionHmacs: { key: listKey, hmacs: [listKey.hashOf(hashKey.hashOf('u2'))] },
      hashKey,
    };
    expect(await look(query)).toMatchObject({
      personCount: 1,
      unifiedIds: new Set(['u1']),
      rowCount: 1,
      sharedPersonIds: new Set(),
      suppressedOthers: { personCount: 1, rowCount: 1 },
    });
    expect(await purge(query)).toEqual({ rowsRemoved: 2, left: ['e3'] });
  });

  it.each(['df_unified_id', 'member'])('are refused without the key if some rows have %s hashed', async (column) => {
    const cells: Cells = { df_unified_id: 'u1', member: 'a' };
    await load([{ id: 'e1', ...cells }]);
    await loadHashed(D2, [{ id: 'e2', ...cells, [column]: hashKey.hashOf(cells[column] ?? '') }], [column], hashKey);
    const message = expect.stringMatching(
      `holds the column ${column} hashed, but hash_key is missing or another one\\. .* DFINERY_HASH_KEY`,
    );
    for (const key of [undefined, otherKey])
      await expect(look({ byColumn: 'member', ids: ['a'], hashKey: key })).rejects.toMatchObject({
        exitCode: 2,
        message,
      });
    expect(await look({ byColumn: 'member', ids: ['a'], hashKey })).toMatchObject({ personCount: 1, rowCount: 2 });
  });

  it('without events are found by their unified ids in profiles, with the key if those are hashed', async () => {
    await load([{ id: 'e1', df_unified_id: 'u1' }]);
    await loadProfiles(`df_unified_id,df_external_id\n${hashKey.hashOf('u2')},a\n`, hashKey);
    const query = { byColumn: 'df_unified_id', ids: ['u2'] };
    await expect(look(query)).rejects.toThrow('hash_key is missing');
    const people = await look({ ...query, hashKey });
    expect(people).toMatchObject({ personCount: 1, rowCount: 1 });
    expect(people.unifiedIdsById).toEqual(new Map([['u2', ['u2']]]));
  });

  it('are found by a hashed column whose name the export has in another Unicode form', async () => {
    const rows = [{ id: 'e1', df_unified_id: 'u1', ['고객'.normalize('NFD')]: hashKey.hashOf('a') }];
    await loadHashed(D1, rows, ['고객'], hashKey);
    expect(await look({ byColumn: '고객', ids: ['a'], hashKey })).toMatchObject({ personCount: 1, rowCount: 1 });
  });

  it('are found by hashes in _rescued of a column that the table lacks', async () => {
    const rows = [{ id: 'e2', df_unified_id: 'u2', member: hashKey.hashOf('a') }];
    await load([{ id: 'e1', df_unified_id: 'u1' }]);
    await loadHashed(D2, rows, ['member'], hashKey, { schemaMode: 'freeze' });
    const query = { byColumn: 'member', ids: ['a'] };
    await expect(look(query)).rejects.toThrow('hash_key is missing');
    expect(await look({ ...query, hashKey })).toMatchObject({ hasByColumn: true, rowCount: 1 });
  });

  it('of the suppression list alone need no key of the hashed column of ids', async () => {
    await loadHashed(D2, [{ id: 'e1', df_unified_id: 'u1', member: hashKey.hashOf('a') }], ['member'], hashKey);
    expect(await look({ byColumn: 'member', ids: [] })).toMatchObject({ rowCount: 0 });
  });

  it('of the suppression list are refused without the key if some rows have df_unified_id hashed', async () => {
    await loadHashed(D1, [{ id: 'e1', df_unified_id: hashKey.hashOf('u1') }], ['df_unified_id'], hashKey);
    const query = { ids: [], suppressionHmacs: { key: listKey, hmacs: [listKey.hashOf(hashKey.hashOf('u1'))] } };
    for (const key of [undefined, otherKey])
      await expect(look({ ...query, hashKey: key })).rejects.toThrow('hash_key is missing or another one');
    expect(await look({ ...query, hashKey })).toMatchObject({ suppressedOthers: { personCount: 1, rowCount: 1 } });
  });

  it('have one key for good: rows that are hashed under another one are refused', async () => {
    await loadHashed(D1, [{ id: 'e1', df_unified_id: 'u1', member: hashKey.hashOf('a') }], ['member'], hashKey);
    await load([{ id: 'e2', df_unified_id: 'u2', member: 'a' }], {}, D2);
    await expect(loadHashed(D2, [{ id: 'e3' }], ['email'], otherKey)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/hashed under another hash_key: give that key, or load into a new place/),
    });
    expect(await look({ byColumn: 'member', ids: ['a'], hashKey })).toMatchObject({ rowCount: 2 });
  });

  it('need no key, though their ids look like hashes, unless rows have these as hashes', async () => {
    const unifiedId = 'a1'.repeat(32);
    const query = { ids: ['a'], knownUnifiedIdsById: new Map([['a', [unifiedId]]]) };
    await load([{ id: 'e1', df_unified_id: unifiedId }]);
    expect(await look(query)).toMatchObject({ rowCount: 1 });
    await loadHashed(D2, [{ id: 'e2', df_unified_id: hashKey.hashOf(unifiedId) }], ['df_unified_id'], hashKey);
    await expect(look(query)).rejects.toThrow('hash_key is missing');
    expect(await look({ ...query, hashKey })).toMatchObject({ rowCount: 2 });
  });

  it('are printed row by row, without the columns that are null', async () => {
    const memo = 'a line\n\u2028another';
    await load([
      { id: 'a', df_unified_id: 'erna', memo, e: 'x' },
      { id: 'b', df_unified_id: 'hans' },
    ]);
    const texts = (await place.peopleOperations()).rows({ byColumn: 'df_unified_id', ids: ['erna'] });
    const rows = (await Readable.from(texts).toArray()).map((text) => JSON.parse(text));
    expect(rows).toEqual([{ table: 'events', row: expect.objectContaining({ _key: 'a', memo, e: 'x' }) }]);
    expect(rows[0].row).not.toHaveProperty('_rescued');
  });
});
