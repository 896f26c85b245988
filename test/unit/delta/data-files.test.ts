import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { DELTA } from '../../../src/targets/delta/log.ts';
import { peopleInFiles, rowsOfPeopleInFiles } from '../../../src/targets/files/purge.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { compactDelta, purgeDelta, reportDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';

async function statisticsOf(rows: readonly Record<string, string>[], timezone?: string) {
  await fixture.store([fixture.window(first, csvOf(rows), timezone)], { timezone });
  const [{ stats }] = fixture.actions('events', 0, 'add');
  return JSON.parse(String(stats));
}

describe('the statistics of a file', () => {
  it('are those of all its row groups, also when one of them holds no value of a column', async () => {
    // A row group has 61,440 rows.
    const count = 70_000;
    const rows = Array.from({ length: count }, (_, i) => ({
      id: `x${i}`,
      ...((i === 0 || i === count - 1) && { [i === 0 ? 'early' : 'late']: `${i + 7}` }),
      df_server_datetime: `${first} 0${i % 10}:00:00.000`,
      df_correction_datetime: i === count - 1 ? `${first} 09:30:00.000` : '',
    }));
    const { numRecords, minValues, maxValues, nullCount } = await statisticsOf(rows);
    expect(numRecords).toBe(count);
    const corrected = `${first}T09:30:00.000`;
    expect(minValues).toEqual({
      _dfinery_window: 1,
      df_correction_datetime: corrected,
      df_server_datetime: `${first}T00:00:00.000`,
    });
    expect(maxValues).toEqual({
      _dfinery_window: 1,
      df_correction_datetime: corrected,
      df_server_datetime: `${first}T09:00:00.000`,
    });
    expect(nullCount).toMatchObject({ df_server_datetime: 0, early: count - 1, late: count - 1 });
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('have ranges of times rounded as readers compare them, and none for columns of customers', async () => {
    const rows = [
      { day: '2026-01-09', n: '9', when: '2026-01-01 09:00:00.5', df_server_datetime: '2026-01-01 09:00:00.5' },
      { day: '2026-01-10', n: '10', when: '2026-01-01 10:00:00', df_server_datetime: '2026-01-01 10:00:00' },
    ].map((cells, i) => ({ id: `${i}`, ...cells, df_correction_datetime: `2026-01-01 00:00:00.00000${i + 1}` }));
    const { minValues, maxValues, nullCount } = await statisticsOf(rows);
    expect(minValues).toEqual({ _dfinery_window: 1, df_server_datetime: '2026-01-01T09:00:00.500' });
    expect(maxValues).toEqual({ _dfinery_window: 1, df_server_datetime: '2026-01-01T10:00:00.000' });
    expect(nullCount).toMatchObject({ day: 0, n: 0, when: 0, df_correction_datetime: 0, _rescued: 2 });
  });

  it('are instants in UTC when a zone is configured', async () => {
    const { minValues } = await statisticsOf([{ id: 'a', ...on(first, '09:30:00.250') }], 'Asia/Seoul');
    expect(minValues).toMatchObject({ df_server_datetime: '2026-01-01T00:30:00.250Z' });
  });

  it('count rows without a list, not elements', async () => {
    const lists = ['["a","b","c"]', '', '["d"]', ''];
    const { nullCount, minValues } = await statisticsOf(lists.map((tags, i) => ({ id: `${i}`, tags, ...on(first) })));
    expect(nullCount.tags).toBe(2);
    expect(minValues).not.toHaveProperty('tags');
  });
});

describe('a file in the log', () => {
  const foreign = /parquet cannot be used: another program wrote it into the table/;
  it.each<[string, object, RegExp]>([
    ['statistics', { stats: null }, foreign],
    ['tags', { tags: null }, foreign],
    ['tags of this program', { tags: { theirs: 'x' } }, foreign],
    ['a date', { partitionValues: {} }, foreign],
    ['readable statistics', { stats: '{' }, /parquet \(stats\) cannot be used: it is not JSON/],
    ['a number of rows', { stats: '{"nullCount":{}}' }, /\(stats\) .* 'numRecords'/],
    ['counts of nulls', { stats: '{"numRecords":1}' }, /\(stats\) .* 'nullCount'/],
    ['counts of nulls, but nothing', { stats: '{"numRecords":1,"nullCount":null}' }, /: nullCount must be object/],
    ['whole numbers of nulls', { stats: '{"numRecords":1,"nullCount":{"n":"x"}}' }, /: nullCount\/n must be integer/],
    ['a whole number of rows', { stats: '{"numRecords":-1,"nullCount":{}}' }, /: numRecords must be >= 0/],
    ['a readable note', { tags: { dfinery: '{' } }, /parquet \(tags\/dfinery\) cannot be used: it is not JSON/],
    ['a note that is an object', { tags: { dfinery: 'null' } }, /: it must be object/],
    ['an id in its note', { tags: { dfinery: '{}' } }, /: it must have required property 'id'/],
    ['numbers of rows', { tags: { dfinery: '{"id":"x","windows":{"1":"x"}}' } }, /: windows\/1 must be integer/],
    ['numbers of windows', { tags: { dfinery: '{"id":"x","windows":{"x":1}}' } }, /: windows must match pattern/],
    ['a SHA-256', { tags: { dfinery: '{"id":"x","sha256":7}' } }, /: sha256 must be string/],
  ])('is refused without %s', async (_, more, message) => {
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...on(first) }]))]);
    const [add] = fixture.actions('events', 0, 'add');
    fixture.append('events', 1, { add: { ...add, ...more } });
    const refused = { exitCode: 2, message: expect.stringMatching(message) };
    await expect(verifyDelta(fixture.lakeOptions)).rejects.toMatchObject(refused);
  });
});

/** The statistics of a file as another program writes them that takes only the first columns. */
const fewer = (add: Readonly<Record<string, unknown>>) => {
  const stats = JSON.parse(String(add.stats));
  const nullCount = Object.fromEntries(Object.entries(stats.nullCount).slice(0, 4));
  return { ...add, stats: JSON.stringify({ ...stats, nullCount }), dataChange: false };
};

describe('a file whose statistics another program has written anew, of its first columns', () => {
  const people = { column: 'member', ids: ['m1'] };
  const members = () => fixture.read('SELECT _key AS id, member, x, n::VARCHAR AS n, tags FROM events ORDER BY 1');
  beforeEach(async () => {
    const rows = ['a', 'b', 'c'].map((id, i) => ({
      id,
      df_unified_id: '',
      member: `m${i}`,
      x: id,
      n: `${i}`,
      tags: '["t"]',
    }));
    await fixture.store([fixture.windowOf(first, ...rows)]);
    const [add] = fixture.actions('events', 0, 'add');
    expect(Object.keys(JSON.parse(String(add.stats)).nullCount)).toContain('member');
    fixture.append('events', 1, { add: fewer(add) });
  });

  it('hides nobody from a look-up or a purge, and other people keep their values', async () => {
    expect(await peopleInFiles(DELTA, fixture.lakeOptions, people)).toMatchObject({ rows: 1, ids: ['m1'] });
    expect(await rowsOfPeople(people)).toMatchObject([{ _key: 'b', member: 'm1', x: 'b' }]);
    const before = await members();
    expect(await purgeDelta(fixture.lakeOptions, people)).toMatchObject({ rowsRemoved: 1, rows: 2 });
    expect(await members()).toEqual(before.filter(({ member }) => member !== 'm1'));
  });

  it.each<[string, () => Promise<unknown>]>([
    ['its rows are read again', () => fixture.store([fixture.windowOf(first, { id: 'a', member: 'again' })])],
    ['a column gets another type', () => fixture.store([fixture.windowOf('2026-01-02', { id: 'd', n: 'text' })])],
    ['compact makes it one with another', () => compactDelta(fixture.lakeOptions)],
  ])('is replaced by one with all columns where %s', async (_how, change) => {
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'e', ...on(first) })]);
    const kept = async () => (await members()).filter(({ id }) => id === 'b' || id === 'c');
    const before = await kept();
    await change();
    expect(await kept()).toEqual(before);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('gives a derived table that is kept from now on all values of its rows', async () => {
    const item = { id: 'i', df_unified_id: '', member: 'm9', x: 'x', df_items_size: 'L' };
    await fixture.store([fixture.windowOf('2026-01-02', item)]);
    const version = fixture.versions() - 1;
    const [add] = fixture.actions('events', version, 'add');
    fixture.append('events', version + 1, { add: fewer(add) });
    await fixture.store([], { tables: ['events', 'event_items', 'event_logs'] });
    expect(await fixture.read('SELECT _key, size FROM event_items')).toEqual([{ _key: 'i', size: 'L' }]);
    const logs = await fixture.read('SELECT member, x FROM event_logs ORDER BY 1');
    expect(logs).toEqual(await fixture.read('SELECT member, x FROM events ORDER BY 1'));
    const unlogged = (await verifyDelta(fixture.lakeOptions)).map(({ check }) => check);
    expect(unlogged).toEqual(['columns', 'columns']);
  });

  it('has all of its values in a report', async () => {
    const { columns } = await reportDelta(fixture.lakeOptions);
    const filled = columns.flatMap(({ name, filled: n }) => (['member', 'x', 'n', 'tags'].includes(name) ? [n] : []));
    expect(filled).toEqual([3, 3, 3, 3]);
  });

  async function rowsOfPeople(query: typeof people) {
    const rows: unknown[] = [];
    for await (const row of rowsOfPeopleInFiles(DELTA, fixture.lakeOptions, query)) rows.push(JSON.parse(row));
    return rows;
  }
});

describe('a folder with Delta tables', () => {
  const put = (path: string, text = 'x') => {
    mkdirSync(join(fixture.root, path, '..'), { recursive: true });
    writeFileSync(join(fixture.root, path), text);
  };
  const storage = () => new DiskStorage(fixture.root);
  const listed = async (folder: string, after?: string) => {
    const found = [];
    for await (const { path, bytes } of storage().list(folder, after)) found.push([path, bytes]);
    return found;
  };

  it('is listed in order, with every subfolder, from any name on; a missing one is empty', async () => {
    for (const path of ['t/b', 't/a/z', 't/a.x', 't/c', 'u/a']) put(path, path);
    expect(await listed('t')).toEqual([
      ['t/a.x', 5],
      ['t/a/z', 5],
      ['t/b', 3],
      ['t/c', 3],
    ]);
    expect((await listed('t', 't/a/z')).map(([path]) => path)).toEqual(['t/b', 't/c']);
    expect(await listed('none')).toEqual([]);
    await expect(listed('u/a')).rejects.toThrow();
  });

  it('has files that are read, and refuses a folder in place of one', async () => {
    put('t/x', 'content');
    expect((await storage().read('t/x'))?.toString()).toBe('content');
    expect(await storage().read('t/y')).toBeUndefined();
    await expect(storage().read('t')).rejects.toMatchObject({
      kind: 'config',
      message: `${join(fixture.root, 't')} is no file of a table.`,
    });
  });

  it('creates files for their owner alone, and removes them one by one, missing ones included', async () => {
    const file = join(fixture.dir, 'new');
    writeFileSync(file, 'content', { mode: 0o644 });
    await storage().putFile(file, 'a/b/x');
    const target = join(fixture.root, 'a/b/x');
    expect(readFileSync(target, 'utf8')).toBe('content');
    expect(statSync(target).mode & 0o777).toBe(0o600);
    expect(statSync(join(fixture.root, 'a')).mode & 0o777).toBe(0o700);
    await storage().write('a/y', 'one');
    await storage().write('a/y', 'two');
    expect(await storage().create('a/y', 'three')).toBe(false);
    expect((await storage().read('a/y'))?.toString()).toBe('two');
    await storage().remove(['a/none', 'a/b/x']);
    expect((await listed('a')).map(([path]) => path)).toEqual(['a/y']);
    put('a/z');
    await storage().eraseAllBut('a', ({ path }) => path === 'a/z');
    expect((await listed('a')).map(([path]) => path)).toEqual(['a/z']);
  });

  it('is checked for write access beforehand', async () => {
    put('t/x');
    await storage().tryErase(['t/x', 't/y']);
    rmSync(join(fixture.root, 't'), { recursive: true });
    await expect(storage().tryErase(['t/x'])).rejects.toMatchObject({
      kind: 'config',
      message: `${join(fixture.root, 't')} cannot be written to: give its owner the right to. Nothing was changed.`,
    });
  });
});
