import { existsSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../../src/base/errors.ts';
import type { Window } from '../../../src/extract/window.ts';
import { StagedWindows } from '../../../src/sinks/arrow/staged-windows.ts';
import { ArrowBench, arrowWorker, streamedColumns } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/duckdb.ts';
import { until } from '../../support/wait.ts';

let bench: ArrowBench;
beforeEach(() => {
  bench = new ArrowBench();
});
afterEach(() => bench.close());

const ROWS = 2_000;

/** A day as if it were so large that threads are worth it. */
function day(n: number, cells: (i: number) => Cells): Window {
  const rows = Array.from({ length: ROWS }, (_, i) => ({
    id: `d${n}-${i}`,
    df_event_name: `e${(i * n) % 5}`,
    ...cells(i),
  }));
  const window = bench.window(`2026-01-0${n}`, csvOf(rows));
  return { ...window, receipt: { ...window.receipt, bytes: 60_000_000 } };
}

const files = (): string[] =>
  readdirSync(bench.dir)
    .filter((name) => name.startsWith('dfinery-arrow-'))
    .flatMap((folder) => readdirSync(join(bench.dir, folder)).map((name) => join(bench.dir, folder, name)));
const hasFile = (name: string): boolean => files().some((file) => file.endsWith(`/${name}`));

/** Hands windows on, each when the one before is being staged; with `isGone` the rows of those staged are then removed. */
async function* paced(windows: readonly Window[], isGone = false): AsyncGenerator<Window> {
  for (const [i, window] of windows.entries()) {
    yield window;
    await until(() => hasFile(`${i + 1}.batches`));
    if (isGone && i > 0) for (const file of files().filter((name) => name.endsWith(`/${i}.csv`))) rmSync(file);
  }
}

const growing = () => [
  day(1, (i) => ({ n: `${i}`, memo: `"${i}", 안녕` })),
  day(2, (i) => ({ n: i % 7 === 0 ? '' : `${i}`, tags: `["a",${i}]`, ok: 'TRUE' })),
  day(3, (i) => ({ price: `${i}.5`, df_event_name: '' })),
];

describe('a window that was built while later ones came', () => {
  it('is sent as it was built, with nulls in the columns that came later [R471]', async () => {
    const alone = await bench.write(growing());
    const expected = streamedColumns(bench.out);
    const threads = { entry: await arrowWorker(bench.dir), workers: 2 };
    // Were the first two built again, their rows would be missing.
    expect(await bench.write(paced(growing(), true), { threads })).toEqual(alone);
    expect(streamedColumns(bench.out)).toEqual(expected);
    expect(alone.rows).toBe(3 * ROWS);
    expect(files()).toEqual([]);
  });

  it('is built again when another window made text of one of its columns [R471]', async () => {
    const windows = () => [
      day(1, (i) => ({ n: `${i}` })),
      day(2, () => ({ n: 'many' })),
      day(3, (i) => ({ n: `${i}` })),
    ];
    const alone = await bench.write(windows());
    const expected = streamedColumns(bench.out);
    const threads = { entry: await arrowWorker(bench.dir), workers: 2 };
    expect(await bench.write(paced(windows()), { threads })).toEqual(alone);
    expect(streamedColumns(bench.out)).toEqual(expected);
    expect(expected.find(({ name }) => name === 'n')?.values.slice(ROWS - 1, ROWS + 1)).toEqual([
      `${ROWS - 1}`,
      'many',
    ]);
  });

  it.each(['ENOSPC', 'EIO'])(
    'is built when it is sent where the disk has no room for it beside its rows: %s [R471]',
    async (code) => {
      let built = 0;
      const builder = {
        usesThreads: () => true,
        rowBytes: () => 0,
        // biome-ignore lint/correctness/useYield: it fails before
        async *build() {
          built++;
          throw Object.assign(new Error('refused'), { code });
        },
      };
      const staged = new StagedWindows(builder, bench.dir, () => ({ columns: [], plans: [] }));
      const windows = growing();
      for (const window of windows) staged.add(window);
      await staged.end();
      expect(built).toBe(1);
      expect(windows.map((window) => staged.has(window))).toEqual([false, false, false]);
      expect(existsSync(join(bench.dir, '1.batches'))).toBe(false);
    },
  );

  it('leaves nothing behind when a later download fails meanwhile [R471]', async () => {
    async function* failing(): AsyncGenerator<Window> {
      yield* growing().slice(0, 2);
      throw new Failure('transient', 'the service is down.');
    }
    const threads = { entry: await arrowWorker(bench.dir), workers: 2 };
    await expect(bench.write(failing(), { threads })).rejects.toThrow('the service is down.');
    expect(existsSync(bench.out)).toBe(false);
    expect(files()).toEqual([]);
  });

  it('ends the run with the reason when it cannot be built [R471]', async () => {
    const windows = growing();
    const threads = { entry: await arrowWorker(bench.dir), workers: 2 };
    truncateSync(windows[0].files[0].path, 50_000);
    await expect(bench.write(windows, { threads })).rejects.toThrow(/shorter|rows instead of/);
    expect(existsSync(bench.out)).toBe(false);
    expect(files()).toEqual([]);
  });
});
