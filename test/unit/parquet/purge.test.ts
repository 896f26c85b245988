import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, on } from '../../support/targets/csv.ts';
import { compactParquet, purgeParquet, tryPurgeParquet, verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const TABLES = ['events', 'event_items', 'event_logs'] as const;
const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'];
const pathOf = (table: string, date: string) => `${table}/event_date=${date}/data_0.parquet`;
const at = (path: string) => join(fixture.root, path);

/** Erna is on three dates, alone on the third; her event e begins with an item of hers and goes on with one of Hans. */
const CSV = csvOf([
  { id: 'a:0', df_unified_id: 'erna', df_items_x: '1', ...on(ONE) },
  { id: 'b', df_unified_id: 'hans', ...on(ONE) },
  { id: 'e:0', df_unified_id: 'erna', df_items_x: '2', ...on(TWO) },
  { id: 'e:1', df_unified_id: 'hans', df_items_x: '3', ...on('2026-01-04') },
  { id: 'f', df_unified_id: 'hans', ...on(TWO) },
  { id: 'c:0', df_unified_id: 'erna', df_items_x: '4', ...on(THREE) },
  { id: 'g', df_unified_id: 'hans', ...on('2026-01-05') },
]);
const removal = { column: 'df_unified_id', ids: ['erna'] };
const store = () => fixture.store([fixture.window(ONE, CSV, undefined, 5)], { tables: TABLES });
const purge = (more: object = {}) => purgeParquet({ ...fixture.folderOptions, ...more }, removal);
const contents = () =>
  fixture.files().map((file) => [file, file.endsWith('lock') ? '' : readFileSync(at(file), 'hex')]);
const bytesOf = () => fixture.manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);

describe('a purge of Parquet files', () => {
  it('removes what a run that was killed has left of the record of its run, as the next load does', async () => {
    await store();
    const left = at('_dfinery/runs/.2026-01-01T00-00-00.000Z-01234567.json.0123456789ab.tmp');
    mkdirSync(dirname(left), { recursive: true });
    for (const work of [purge, store]) {
      writeFileSync(left, '{}');
      await work();
      expect(existsSync(left)).toBe(false);
    }
  });

  it('rewrites the files with rows of the people, removes emptied files, and no other', async () => {
    await store();
    const untouched = pathOf('events', '2026-01-05');
    const [before, { ino }] = [bytesOf(), statSync(at(untouched))];
    const done = await purge();
    expect(done).toMatchObject({
      rows: 4,
      rowsRemoved: 3,
      files: [ONE, TWO, THREE].map((date) => pathOf('events', date)),
      bytesBefore: before,
      bytesAfter: bytesOf(),
    });
    expect(done.bytesAfter).toBeLessThan(before);
    expect(fixture.files().filter((file) => file.includes(THREE))).toEqual([]);
    expect(fixture.manifest.files.map(({ path }) => path).filter((path) => path.includes(THREE))).toEqual([]);
    expect(statSync(at(untouched)).ino).toBe(ino);
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual(
      ['b', 'e:1', 'f', 'g'].map((_key) => ({ _key })),
    );
    expect(await fixture.read('SELECT x FROM event_items ORDER BY 1')).toEqual([{ x: '3' }]);
    expect(fixture.manifest.receipts).toMatchObject([{ rows: 7, rows_live: 4 }]);
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  });

  it('is refused, also as a trial, when a file has a second hard link', async () => {
    await store();
    for (const table of ['events', 'event_logs']) {
      const [file, other] = [at(pathOf(table, THREE)), join(fixture.dir, 'other.parquet')];
      const before = contents();
      linkSync(file, other);
      const linked = {
        kind: 'config',
        message: expect.stringMatching(/event_date=2026-01-03.* has 1 more name \(hard/),
      };
      await expect(tryPurgeParquet(fixture.folderOptions, removal), table).rejects.toMatchObject(linked);
      expect(contents()).toEqual(before);
      rmSync(other);
      renameSync(file, other);
      symlinkSync(other, file);
      const led = { kind: 'config', message: expect.stringMatching(/event_date=2026-01-03.*leads to one elsewhere/) };
      await expect(tryPurgeParquet(fixture.folderOptions, removal), table).rejects.toMatchObject(led);
      rmSync(file);
      renameSync(other, file);
    }
    linkSync(at(pathOf('events', ONE)), join(fixture.dir, 'other.parquet'));
    await expect(purge()).rejects.toMatchObject({ message: expect.stringContaining('hard links') });
    expect(await fixture.read('SELECT count(*)::INT AS n FROM events')).toEqual([{ n: 7 }]);
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  });

  it('waits for a writer', async () => {
    await store();
    const sink = await fixture.openFolder({ tables: TABLES });
    try {
      await expect(purge()).rejects.toMatchObject({ kind: 'transient' });
      await expect(compactParquet(fixture.folderOptions)).rejects.toMatchObject({ kind: 'transient' });
    } finally {
      await sink.close();
    }
    expect(await purge()).toMatchObject({ rowsRemoved: 3 });
  });
});

it('a purge of Parquet files names the foreign files beside them, also those that no reader sees', async () => {
  await store();
  const names = ['.data_0.parquet.swp', 'mine.parquet'].map((name) => `events/event_date=${ONE}/${name}`);
  for (const name of names) copyFileSync(at(pathOf('events', ONE)), at(name));
  const found = await tryPurgeParquet(fixture.folderOptions, removal);
  expect([...found.foreignTables].sort()).toEqual(names);
  expect(await verifyParquet(fixture.folderOptions)).toHaveLength(1);
});

describe('compact of Parquet files', () => {
  it('leaves a date of one file and one row group unchanged', async () => {
    await store();
    const before = contents();
    expect(await compactParquet(fixture.folderOptions)).toMatchObject({ rows: 7, rowsRemoved: 0, files: [] });
    expect(contents()).toEqual(before);
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  });
});
