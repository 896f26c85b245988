import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/sinks/delta/storage/disk.ts';
import { verifyDelta } from '../../../src/sinks/delta/verify.ts';
import { DeltaBench } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';

let bench: DeltaBench;
beforeEach(() => {
  bench = new DeltaBench();
});
afterEach(() => bench.close());

const first = '2026-01-01';

async function statisticsOf(rows: readonly Record<string, string>[], timezone?: string) {
  await bench.store([bench.window(first, csvOf(rows), timezone)], { timezone });
  const [{ stats }] = bench.actions('events', 0, 'add');
  return JSON.parse(String(stats));
}

describe('the statistics of a file', () => {
  it('are those of all its row groups, also where one of them holds no value of a column', async () => {
    // A row group has 61,440 rows.
    const count = 70_000;
    const rows = Array.from({ length: count }, (_, i) => ({
      id: `x${i}`,
      up: `${i}`,
      down: `${count - i}`,
      ...((i === 0 || i === count - 1) && { [i === 0 ? 'early' : 'late']: `${i + 7}` }),
      ...on(first),
    }));
    const { numRecords, minValues, maxValues, nullCount } = await statisticsOf(rows);
    const last = count + 6;
    expect(numRecords).toBe(count);
    expect(minValues).toMatchObject({ up: 0, down: 1, early: 7, late: last });
    expect(maxValues).toMatchObject({ up: count - 1, down: count, early: 7, late: last });
    expect(nullCount).toMatchObject({ up: 0, early: count - 1, late: count - 1 });
    expect(await verifyDelta(bench.lakeOptions)).toEqual([]);
  });

  it('have ranges of dates, numbers and times as readers compare them, and none of what they would cut', async () => {
    const rows = [
      { day: '2026-01-09', n: '9', d: '9.5', when: '2026-01-01 09:00:00.5', fine: '2026-01-01 00:00:00.000001' },
      { day: '2026-01-10', n: '10', d: '-10.25', when: '2026-01-01 10:00:00', fine: '2026-01-01 00:00:00.000002' },
    ].map((cells, i) => ({ id: `${i}`, ...cells, yes: 'true', ...on(first) }));
    const { minValues, maxValues, nullCount } = await statisticsOf(rows);
    const [low, high] = [
      { day: '2026-01-09', n: 9, d: -10.25, when: '2026-01-01T09:00:00.500' },
      { day: '2026-01-10', n: 10, d: 9.5, when: '2026-01-01T10:00:00.000' },
    ];
    expect(minValues).toMatchObject(low);
    expect(maxValues).toMatchObject(high);
    for (const range of [minValues, maxValues]) {
      expect(range).not.toHaveProperty('yes');
      expect(range).not.toHaveProperty('fine');
      expect(range).not.toHaveProperty('_key');
    }
    expect(nullCount).toMatchObject({ day: 0, n: 0, d: 0, when: 0, fine: 0, yes: 0, _rescued: 2 });
  });

  it('tell instants in UTC where there is a zone', async () => {
    const { minValues } = await statisticsOf([{ id: 'a', ...on(first, '09:30:00.250') }], 'Asia/Seoul');
    expect(minValues).toMatchObject({ df_server_datetime: '2026-01-01T00:30:00.250Z' });
  });

  it('count the rows without a list, not the elements', async () => {
    const lists = ['["a","b","c"]', '', '["d"]', ''];
    const { nullCount, minValues } = await statisticsOf(lists.map((tags, i) => ({ id: `${i}`, tags, ...on(first) })));
    expect(nullCount.tags).toBe(2);
    expect(minValues).not.toHaveProperty('tags');
  });
});

describe('a file of the log', () => {
  it.each<[string, object]>([
    ['statistics', { stats: null }],
    ['readable statistics', { stats: '{' }],
    ['a number of rows', { stats: '{"nullCount":{}}' }],
    ['counts of nulls', { stats: '{"numRecords":1}' }],
    ['counts of nulls, but nothing', { stats: '{"numRecords":1,"nullCount":null}' }],
    ['tags', { tags: null }],
    ['tags of this program', { tags: { theirs: 'x' } }],
    ['readable tags', { tags: { 'dfinery.windows': '{' } }],
    ['a date', { partitionValues: {} }],
  ])('is refused that has no %s', async (_, more) => {
    await bench.store([bench.window(first, csvOf([{ id: 'a', ...on(first) }]))]);
    const [add] = bench.actions('events', 0, 'add');
    bench.append('events', 1, { add: { ...add, ...more } });
    await expect(verifyDelta(bench.lakeOptions)).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/part-.*\.parquet cannot be used: /),
    });
  });
});

describe('a folder with Delta tables', () => {
  const put = (path: string, text = 'x') => {
    mkdirSync(join(bench.root, path, '..'), { recursive: true });
    writeFileSync(join(bench.root, path), text);
  };
  const storage = () => new DiskStorage(bench.root);
  const listed = async (folder: string, after?: string) => {
    const found = [];
    for await (const { path, bytes, names } of storage().list(folder, after)) found.push([path, bytes, names]);
    return found;
  };

  it('is listed in order, with every folder below, from any name on; one that is missing has nothing', async () => {
    for (const path of ['t/b', 't/a/z', 't/a.x', 't/c', 'u/a']) put(path, path);
    expect(await listed('t')).toEqual([
      ['t/a.x', 5, 1],
      ['t/a/z', 5, 1],
      ['t/b', 3, 1],
      ['t/c', 3, 1],
    ]);
    expect((await listed('t', 't/a/z')).map(([path]) => path)).toEqual(['t/b', 't/c']);
    expect(await listed('none')).toEqual([]);
    await expect(listed('u/a')).rejects.toThrow();
  });

  it('has files, read whole or in part, and no folder in place of one', async () => {
    put('t/x', 'content');
    expect((await storage().read('t/x'))?.toString()).toBe('content');
    expect((await storage().readRange('t/x', 1, 4)).toString()).toBe('ont');
    expect((await storage().readRange('t/x', 5, 99)).toString()).toBe('nt');
    expect(await storage().read('t/y')).toBeUndefined();
    await expect(storage().read('t')).rejects.toMatchObject({
      kind: 'config',
      message: `${join(bench.root, 't')} is no file of a table.`,
    });
  });

  it('takes files for their owner alone, and loses them one by one, however many are missing', async () => {
    const file = join(bench.dir, 'new');
    writeFileSync(file, 'content', { mode: 0o644 });
    await storage().putFile(file, 'a/b/x');
    const target = join(bench.root, 'a/b/x');
    expect(readFileSync(target, 'utf8')).toBe('content');
    expect(statSync(target).mode & 0o777).toBe(0o600);
    expect(statSync(join(bench.root, 'a')).mode & 0o777).toBe(0o700);
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

  it('is asked beforehand whether it can be written to', async () => {
    put('t/x');
    await storage().tryErase(['t/x', 't/y']);
    rmSync(join(bench.root, 't'), { recursive: true });
    await expect(storage().tryErase(['t/x'])).rejects.toMatchObject({
      kind: 'config',
      message: `${join(bench.root, 't')} cannot be written to: give its owner the right to. Nothing was changed.`,
    });
  });
});
