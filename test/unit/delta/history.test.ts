import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { begunRun } from '../../../src/table/runs.ts';
import { delta } from '../../../src/targets/delta/target.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { purgeDelta, reportDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const place = () => ({ ...fixture.lakeOptions, lockWaitMs: 0 });
const runFiles = () => fixture.files('_dfinery/runs');
const begun = (second: number) => begunRun(at(second), '1.0.0');
const outcome = { exitCode: 0, cause: null, rows: 1, windows: 1, exports: 1, bytes: 10 };
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const window = (day: number, cells: Record<string, string>) =>
  fixture.window(`2026-01-0${day}`, csvOf([{ id: `k${day}`, ...cells }]));

/** A run that begins, commits, and ends unless it is killed. */
async function run(second: number, windows: ReturnType<typeof window>[] = [], isKilled = false) {
  const sink = await fixture.openLake();
  try {
    const before = await sink.runs?.begin(begun(second));
    for (const one of windows) await sink.commit([one], fixture.signal);
    if (!isKilled)
      await sink.runs?.end({ ...begun(second), ...outcome, ended: at(second + 1), windows: windows.length });
    return before;
  } finally {
    await sink.close();
  }
}

const reported = async () => (await delta.maintenance()).report(fixture.root, place());

describe('the run history of Delta tables', () => {
  it('has one object per run beside the tables, completes a killed run, and holds no data', async () => {
    expect(await run(0, [window(1, { memo: 'erna-4711' })])).toEqual([]);
    expect(await run(10, [], true)).toEqual([]);
    expect(await run(20, [window(2, { memo: 'erna-4711' })])).toEqual([at(10)]);
    expect(await run(30)).toEqual([]);
    expect(runFiles()).toHaveLength(4);
    const { runs } = await reported();
    expect(runs.map(({ began, ended }) => [began, ended])).toEqual([
      [at(0), at(1)],
      [at(10), null],
      [at(20), at(21)],
      [at(30), at(31)],
    ]);
    expect(runs[0]).toMatchObject({ version: '1.0.0', ...outcome });
    await purgeDelta(fixture.lakeOptions, { column: 'memo', ids: ['erna-4711'] });
    for (const path of fixture.files()) expect(readFileSync(join(fixture.root, path)).includes('erna')).toBe(false);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('keeps all runs of concurrent writers', async () => {
    await run(0);
    const [one, two] = [await fixture.openLake(), await fixture.openLake()];
    expect(await one.runs?.begin(begun(5))).toEqual([]);
    expect(await two.runs?.begin(begun(5))).toEqual([at(5)]);
    await two.runs?.end({ ...begun(5), ...outcome, ended: at(7), exitCode: 3, cause: 'another writer' });
    await one.runs?.end({ ...begun(5), ...outcome, ended: at(6) });
    await one.close();
    await two.close();
    const { runs } = await (async () => {
      await fixture.store([window(1, {})]);
      return reported();
    })();
    expect(runs.map(({ exitCode }) => exitCode).sort()).toEqual([0, 0, 3]);
  });

  it('is bounded to the latest thousand runs', async () => {
    await run(0, [window(1, {})]);
    const folder = join(fixture.root, '_dfinery/runs');
    for (let n = 0; n < 1_005; n++) {
      writeFileSync(
        join(folder, `2025-01-01T00-00-00.${String(n % 1_000).padStart(3, '0')}Z-${String(n).padStart(8, '0')}.json`),
        '{}',
      );
    }
    const [ended] = runFiles().filter((name) => name.startsWith('2026'));
    writeFileSync(join(folder, 'somebody.txt'), 'theirs');
    await (await fixture.openLake()).close();
    expect(runFiles()).toHaveLength(1_001);
    expect(runFiles()).toEqual(expect.arrayContaining([ended, 'somebody.txt']));
  });
});

describe('a run record', () => {
  it('that never began needs no end, and one whose file is removed while it is read is ignored', async () => {
    const sink = await fixture.openLake();
    await sink.runs?.end({ ...begun(0), ...outcome, ended: at(1) });
    await sink.close();
    expect(runFiles()).toEqual([]);
    await run(0, [window(1, {})]);
    await run(10);
    const storage = new DiskStorage(fixture.root);
    storage.read = async (path) =>
      path.startsWith('_dfinery/runs/2026-01-01T00-00-00') ? undefined : DiskStorage.prototype.read.call(storage, path);
    const { runs } = await reportDelta({ ...fixture.lakeOptions, storage });
    expect(runs.map(({ began }) => began)).toEqual([at(10)]);
  });

  it('that fails after its end was recorded has the outcome of its failure', async () => {
    const sink = await fixture.openLake();
    await sink.runs?.begin(begun(0));
    await sink.runs?.end({ ...begun(0), ...outcome, ended: at(1) });
    await sink.runs?.end({ ...begun(0), ...outcome, ended: at(2), exitCode: 3, cause: 'no space' });
    await sink.close();
    await fixture.store([window(1, {})]);
    expect((await reported()).runs).toMatchObject([{ began: at(0), ended: at(2), exitCode: 3, cause: 'no space' }]);
    expect(runFiles()).toHaveLength(1);
  });
});
