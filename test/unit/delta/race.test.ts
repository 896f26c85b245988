import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { newState } from '../../../src/table/state.ts';
import { envOf } from '../../support/env.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { purgeDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const TABLES = ['events', 'event_items', 'event_logs'] as const;
const day = (n: number) => `2026-01-0${n}`;
const window = (n: number, id: string) => fixture.window(day(n), csvOf([{ id, df_items_x: '1', ...on(day(n)) }]));
const LOST = { exitCode: 3, message: expect.stringContaining('another writer was first') };

describe('a commit that loses a race', () => {
  it('leaves none of its files in any table, nor a version of them in a bucket', async () => {
    for (const lostTable of TABLES) {
      const s3 = await FakeS3.start();
      s3.versions = [];
      for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
      try {
        const place = { ...fixture.lakeOptions, place: 's3://bucket/lake', env: envOf(s3.env), tables: TABLES };
        await fixture.store([window(1, 'a')], place);
        const late = await fixture.openLake(place);
        try {
          await fixture.store([window(2, 'quick')], place);
          const dataKeys = () => (s3.versions ?? []).map(({ key }) => key).filter((key) => key.endsWith('.parquet'));
          const before = dataKeys().sort();
          // As if the winner's commits of the tables before this one, and that of `events`, were not there yet.
          const hidden = new Set([...TABLES.filter((name) => commitOrder(name) < commitOrder(lostTable)), 'events']);
          const entryOf = (name: string) => `lake/${name}/_delta_log/00000000000000000001.json`;
          const commit = s3.objects.get(entryOf('events'));
          for (const name of hidden) s3.objects.delete(entryOf(name));
          s3.outcomeOf = ({ what, key }) => {
            if (what === 'PutObject' && key === entryOf('events') && commit !== undefined) s3.objects.set(key, commit);
            return 'normal';
          };
          await expect(late.commit([window(3, 'late')], fixture.signal), lostTable).rejects.toMatchObject({
            ...LOST,
            message: expect.stringContaining(`/${lostTable}: another writer was first`),
          });
          expect(dataKeys().sort(), lostTable).toEqual(before);
          expect(s3.versions?.filter(({ key, bytes }) => bytes === undefined && key.endsWith('.parquet'))).toEqual([]);
        } finally {
          await late.close();
        }
      } finally {
        vi.unstubAllEnvs();
        await s3.close();
      }
    }
  });

  it('leaves every table as it was, though its writer began while another one was at its commit', async () => {
    await fixture.store([window(1, 'a')], { tables: TABLES });
    await fixture.store([window(2, 'quick')], { tables: TABLES });
    const entry = join(fixture.root, 'events/_delta_log/00000000000000000001.json');
    // As if the winner had committed the other tables, and `events` not yet.
    renameSync(entry, join(fixture.dir, 'later'));
    const late = await fixture.openLake({ tables: TABLES });
    try {
      renameSync(join(fixture.dir, 'later'), entry);
      const before = fixture.files().filter((path) => !path.startsWith('_dfinery/'));
      await expect(late.commit([window(3, 'late')], fixture.signal)).rejects.toMatchObject(LOST);
      expect(fixture.files().filter((path) => !path.startsWith('_dfinery/'))).toEqual(before);
    } finally {
      await late.close();
    }
    expect(await fixture.read('SELECT _key FROM event_items ORDER BY 1')).toEqual([{ _key: 'a' }, { _key: 'quick' }]);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('is detected also when a purge has removed the entry of the version that it wanted to create', async () => {
    await fixture.store([window(1, 'a')], { tables: TABLES });
    const late = await fixture.openLake({ tables: TABLES });
    try {
      await fixture.store([window(2, 'b')], { tables: TABLES });
      await purgeDelta(fixture.lakeOptions, { column: 'df_event_detail_log_id', ids: ['nobody'] });
      const before = fixture.files();
      expect(before).not.toContain('events/_delta_log/00000000000000000001.json');
      await expect(late.commit([window(3, 'late')], fixture.signal)).rejects.toMatchObject(LOST);
      expect(fixture.files().filter((path) => !path.startsWith('_dfinery/'))).toEqual(
        before.filter((path) => !path.startsWith('_dfinery/')),
      );
      // It goes on from what the others left.
      await late.commit([window(3, 'late')], fixture.signal);
    } finally {
      await late.close();
    }
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual(
      ['a', 'b', 'late'].map((_key) => ({ _key })),
    );
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('to a version that a purge removed is refused, and removes its entry', async () => {
    await fixture.store([window(1, 'a')]);
    const storage = new DiskStorage(fixture.root);
    await fixture.withTable(async (stale) => {
      await fixture.store([window(2, 'b')]);
      await purgeDelta(fixture.lakeOptions, { column: 'df_event_detail_log_id', ids: ['nobody'] });
      const before = fixture.files('events/_delta_log');
      expect(await stale.commit([], { kind: 'load', state: newState(null, []) }, 0)).toBe(false);
      expect(fixture.files('events/_delta_log')).toEqual(before);
    }, storage);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });
});

describe('a reader beside a purge', () => {
  it.each([
    ['the first entry of the log', `events/_delta_log/${'0'.repeat(20)}.json`],
    ['a data file', undefined],
  ])('opens the table again when %s is missing', async (_what, entry) => {
    for (const [n, df_unified_id] of ['erna', 'hans'].entries()) {
      const row = { id: df_unified_id, df_unified_id, ...on(day(n + 1)) };
      await fixture.store([fixture.window(day(n + 1), csvOf([row]))], { tables: TABLES });
    }
    const storage = new DiskStorage(fixture.root);
    let purges = 0;
    const purgeAt = async (isThere: boolean) => {
      if (!isThere || purges++ > 0) return;
      await purgeDelta(fixture.lakeOptions, { column: 'df_unified_id', ids: ['erna'] });
    };
    storage.read = async (path) => {
      await purgeAt(path === entry);
      return DiskStorage.prototype.read.call(storage, path);
    };
    storage.localFile = async (path) => {
      await purgeAt(entry === undefined);
      return DiskStorage.prototype.localFile.call(storage, path);
    };
    expect(await verifyDelta({ ...fixture.lakeOptions, storage })).toEqual([]);
    expect(purges).toBeGreaterThan(0);
    expect(await fixture.read('SELECT _key FROM events')).toEqual([{ _key: 'hans' }]);
  });
});

/** The other tables come before `events`. */
const commitOrder = (name: (typeof TABLES)[number]): number => -TABLES.indexOf(name);
