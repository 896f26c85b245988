import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { TABLES } from '../../../src/table/columns.ts';
import { coveredDays } from '../../../src/table/receipts.ts';
import { LostRace } from '../../../src/targets/files/table-log.ts';
import type { PeopleFound } from '../../../src/targets/people.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { EXAMPLE } from '../../support/targets/example-log.ts';
import { placeOf } from '../../support/targets/files.ts';

// What docs/targets.md asks of a target that keeps Parquet files, and nothing else: its example.

let fixture: DuckDbFixture;
const place = placeOf(EXAMPLE);
const root = () => join(fixture.dir, 'example');
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const [first, second] = ['2026-01-01', '2026-01-02'] as const;
const options = () => ({
  ...fixture.targetOptions,
  place: root(),
  spoolDir: join(fixture.dir, 'spool'),
  env: () => undefined,
  tables: TABLES,
});
const rows = (day: typeof first | typeof second, ...ids: string[]) =>
  fixture.window(day, csvOf(ids.map((id) => ({ id, df_unified_id: `person-${id}`, df_items_k: '1', ...on(day) }))));

describe('a target of files over the example of a log', () => {
  it('loads, re-reads, verifies, compacts, reports and purges', async () => {
    const sink = await place.open(options());
    await sink.commit([rows(first, 'a', 'b'), rows(second, 'c')], fixture.signal);
    await sink.commit([rows(first, 'a'), rows(second, 'c', 'd')], fixture.signal);
    await sink.close();
    expect(await place.verify(options())).toEqual([]);
    expect(await place.compact(options())).toMatchObject({ rows: 4, rowsRemoved: 0 });
    expect(await place.report(options())).toMatchObject({ rows: 4 });
    const query = { column: 'df_unified_id', ids: ['person-a'] };
    expect(await place.purge(options(), query)).toMatchObject({ rows: 3, rowsRemoved: 1 });
    expect(await place.verify(options())).toEqual([]);
    const stored = readdirSync(root(), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    for (const { parentPath, name } of stored) {
      expect(readFileSync(join(parentPath, name)).includes('person-a'), name).toBe(false);
    }
    expect(coveredDays((await place.state(options()))?.receipts ?? [])).toEqual(new Set([first, second]));
  });

  it('commits nothing once another run took this one for dead, as a process that stood still', async () => {
    const sink = await place.open(options());
    const below = readdirSync(fixture.dir, { recursive: true }).map((path) => join(fixture.dir, String(path)));
    writeFileSync(below.find((path) => path.endsWith('.lease')) ?? '', ownerText());
    await expect(sink.commit([rows(first, 'a')], fixture.signal)).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('Another run has taken over the files of this run'),
    });
    await sink.close();
    expect(await place.state(options())).toBeUndefined();
  });

  it('reports files of people that a purge could not remove after its commit, and removes them when repeated', async () => {
    const storage = new DiskStorage(root());
    const sink = await place.open({ ...options(), storage });
    await sink.commit([rows(first, 'a', 'b')], fixture.signal);
    await sink.close();
    const query = { column: 'df_unified_id', ids: ['person-a'] };
    storage.eraseAllBut = () => Promise.reject(Object.assign(new Error('refused'), { code: 'EPERM' }));
    const failure = {
      message: expect.stringMatching(/in no table any more, but files that hold them are still there/),
    };
    await expect(place.purge({ ...options(), storage }, query)).rejects.toMatchObject(failure);
    storage.eraseAllBut = DiskStorage.prototype.eraseAllBut;
    await place.purge(options(), query);
    const paths = readdirSync(root(), { recursive: true }).map((path) => join(root(), String(path)));
    for (const path of paths.filter((one) => one.endsWith('.parquet')))
      expect(readFileSync(path).includes('person-a'), path).toBe(false);
  });

  it('looks the people up anew when a purge loses a race, five times at most', async () => {
    const sink = await place.open(options());
    await sink.commit([rows(first, 'a', 'b')], fixture.signal);
    const query = { column: 'df_unified_id', ids: ['person-a'] };
    const found: number[] = [];
    const raced = (races: number) => async (people: PeopleFound) => {
      found.push(people.people);
      if (found.length <= races) await sink.commit([rows(first, 'a', `c${found.length}`)], fixture.signal);
      return undefined;
    };
    await expect(place.purge(options(), query, raced(9))).rejects.toBeInstanceOf(LostRace);
    expect(found).toHaveLength(5);
    found.length = 0;
    expect(await place.purge(options(), query, raced(4))).toMatchObject({ rowsRemoved: 1 });
    expect(found).toHaveLength(5);
    await sink.close();
    expect(await place.verify(options())).toEqual([]);
  });

  it('reads a later version where a purge has removed the manifest meanwhile, and refuses one that is lost', async () => {
    const sink = await place.open(options());
    await sink.commit([rows(first, 'a', 'b')], fixture.signal);
    await sink.close();
    const storage = new DiskStorage(root());
    const manifests: string[] = [];
    storage.read = async (path) => {
      if (!path.startsWith('events/metadata/')) return DiskStorage.prototype.read.call(storage, path);
      if (manifests.push(path) === 1) await place.purge(options(), { column: 'df_unified_id', ids: ['person-a'] });
      return DiskStorage.prototype.read.call(storage, path);
    };
    expect(await place.report({ ...options(), storage })).toMatchObject({ rows: 1 });
    expect(new Set(manifests).size).toBe(2);
    rmSync(join(root(), manifests[1]));
    const lost = {
      exitCode: 2,
      message: expect.stringContaining(`${manifests[1]} is missing: restore it from a copy`),
    };
    await expect(place.verify(options())).rejects.toMatchObject(lost);
    await expect(place.open(options())).rejects.toMatchObject(lost);
    writeFileSync(join(root(), manifests[1]), '[');
    const damaged = { exitCode: 2, message: expect.stringContaining(`${manifests[1]} is not JSON: restore it`) };
    await expect(place.open(options())).rejects.toMatchObject(damaged);
  });

  it('leaves nothing of a commit that lost a race', async () => {
    const [quick, late] = [await place.open(options()), await place.open(options())];
    await quick.commit([rows(first, 'a')], fixture.signal);
    await expect(late.commit([rows(first, 'b')], fixture.signal)).rejects.toBeInstanceOf(LostRace);
    await Promise.all([quick.close(), late.close()]);
    expect(await place.verify(options())).toEqual([]);
    const files = readdirSync(root(), { recursive: true }).filter((path) => String(path).endsWith('.parquet'));
    expect(files).toHaveLength(TABLES.length);
  });
});
