import { rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { compactDelta, purgeDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

/** A promise and what resolves it. */
function signalled(): { readonly done: Promise<void>; readonly tell: () => void } {
  let tell = () => {};
  const done = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return { done, tell };
}

describe('a purge of Delta tables during another run', () => {
  it('keeps the files of a run that began after its commit, which commits them only when the purge has ended', async () => {
    await fixture.store([
      fixture.window(
        '2026-01-01',
        csvOf([
          { id: 'b', ...on('2026-01-01') },
          { id: 'p', df_unified_id: 'erna-4711', ...on('2026-01-01') },
        ]),
      ),
    ]);
    const [stored, erased] = [signalled(), signalled()];
    const late = new DiskStorage(fixture.root);
    late.create = async (path, text) => {
      if (path.startsWith('events/_delta_log/')) {
        stored.tell();
        await erased.done;
      }
      return DiskStorage.prototype.create.call(late, path, text);
    };
    const window = fixture.window('2026-01-02', csvOf([{ id: 'z', ...on('2026-01-02') }]));
    let loaded: Promise<unknown> | undefined;
    const storage = new DiskStorage(fixture.root);
    storage.eraseAllBut = async (folder, isKept) => {
      if (folder === 'events') {
        loaded = fixture.store([window], { storage: late });
        await stored.done;
      }
      await DiskStorage.prototype.eraseAllBut.call(storage, folder, isKept);
    };
    const removal = { column: 'df_unified_id', ids: ['erna-4711'] };
    await purgeDelta({ ...fixture.lakeOptions, storage }, removal);
    erased.tell();
    await loaded;
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual(['b', 'z'].map((_key) => ({ _key })));
  });
});

describe('a checkpoint of Delta tables', () => {
  it('keeps what left the table within the retention for older readers, and is found when only its pointer is left', async () => {
    const days = 86_400_000;
    const again = () => fixture.window('2026-01-02', csvOf([{ id: 'c', ...on('2026-01-02') }]));
    await fixture.store([again()], { retentionMs: 2 * days });
    const [left] = fixture.replay('events').files.keys();
    const other = fixture.window('2026-01-02', csvOf([{ id: 'q', ...on('2026-01-02') }]));
    await fixture.store([again(), other], { retentionMs: 2 * days });
    await compactDelta(fixture.lakeOptions);
    const configured = Array.from({ length: fixture.versions() }, (_, version) =>
      fixture.actions('events', version, 'metaData'),
    );
    for (const { configuration } of configured.flat())
      expect(configuration).toMatchObject({ 'delta.deletedFileRetentionDuration': 'interval 172800 seconds' });
    const { version, retentionMs } = await fixture.withTable((events) => events);
    await fixture.checkpoint(Date.now() - retentionMs);
    // As if all files were old: of those that left only the log can say that it was just now.
    for (const path of fixture.files('events')) utimesSync(join(fixture.root, 'events', path), 1, 1);
    const reopen = async () => (await fixture.openLake({ retentionMs: 2 * days })).close();
    await reopen();
    expect(fixture.files('events')).toContain(left);
    rmSync(join(fixture.root, 'events', '_delta_log', `${String(version).padStart(20, '0')}.checkpoint.parquet`));
    await reopen();
    expect(fixture.files('events')).toContain(left);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });
});
