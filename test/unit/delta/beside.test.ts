import { rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/sinks/storage/disk.ts';
import { DeltaBench } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { compactDelta, purgeDelta, verifyDelta } from '../../support/targets/files.ts';

let bench: DeltaBench;
beforeEach(() => {
  bench = new DeltaBench();
});
afterEach(() => bench.close());

/** A promise and what resolves it. */
function signalled(): { readonly done: Promise<void>; readonly tell: () => void } {
  let tell = () => {};
  const done = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return { done, tell };
}

describe('a purge of Delta tables', () => {
  it('leaves the files of a run that began after its commit, and commits them only when it has ended [R548]', async () => {
    await bench.store([
      bench.window(
        '2026-01-01',
        csvOf([
          { id: 'b', ...on('2026-01-01') },
          { id: 'p', df_unified_id: 'erna-4711', ...on('2026-01-01') },
        ]),
      ),
    ]);
    const [stored, erased] = [signalled(), signalled()];
    const late = new DiskStorage(bench.root);
    late.create = async (path, text) => {
      if (path.startsWith('events/_delta_log/')) {
        stored.tell();
        await erased.done;
      }
      return DiskStorage.prototype.create.call(late, path, text);
    };
    const window = bench.window('2026-01-02', csvOf([{ id: 'z', ...on('2026-01-02') }]));
    let loaded: Promise<unknown> | undefined;
    const storage = new DiskStorage(bench.root);
    storage.eraseAllBut = async (folder, isKept) => {
      if (folder === 'events') {
        loaded = bench.store([window], { storage: late });
        await stored.done;
      }
      await DiskStorage.prototype.eraseAllBut.call(storage, folder, isKept);
    };
    const removal = { column: 'df_unified_id', ids: ['erna-4711'] };
    await purgeDelta({ ...bench.lakeOptions, storage }, removal);
    erased.tell();
    await loaded;
    expect(await verifyDelta(bench.lakeOptions)).toEqual([]);
    expect(await bench.read('SELECT _key FROM events ORDER BY 1')).toEqual(['b', 'z'].map((_key) => ({ _key })));
  });
});

describe('a checkpoint of Delta tables', () => {
  it('keeps for older readers what left the table within the retention, and is not missed where only its pointer is left [R552]', async () => {
    const days = 86_400_000;
    const again = () => bench.window('2026-01-02', csvOf([{ id: 'c', ...on('2026-01-02') }]));
    await bench.store([again()], { retentionMs: 2 * days });
    const [left] = bench.replay('events').files.keys();
    const other = bench.window('2026-01-02', csvOf([{ id: 'q', ...on('2026-01-02') }]));
    await bench.store([again(), other], { retentionMs: 2 * days });
    await compactDelta(bench.lakeOptions);
    const configured = Array.from({ length: bench.versions() }, (_, version) =>
      bench.actions('events', version, 'metaData'),
    );
    for (const { configuration } of configured.flat())
      expect(configuration).toMatchObject({ 'delta.deletedFileRetentionDuration': 'interval 172800 seconds' });
    const { version, retentionMs } = await bench.withTable((events) => events);
    await bench.checkpoint(Date.now() - retentionMs);
    // As if all files were old: of those that left only the log can say that it was just now.
    for (const path of bench.files('events')) utimesSync(join(bench.root, 'events', path), 1, 1);
    const reopen = async () => (await bench.openLake({ retentionMs: 2 * days })).close();
    await reopen();
    expect(bench.files('events')).toContain(left);
    rmSync(join(bench.root, 'events', '_delta_log', `${String(version).padStart(20, '0')}.checkpoint.parquet`));
    await reopen();
    expect(bench.files('events')).toContain(left);
    expect(await verifyDelta(bench.lakeOptions)).toEqual([]);
  });
});
