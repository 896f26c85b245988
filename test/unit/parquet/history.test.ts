import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderHistory, historyPath, readHistory } from '../../../src/sinks/parquet/history.ts';
import type { ColumnChange } from '../../../src/table/changes.ts';

const MOST = 10_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-history-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const stored = () => readHistory(historyPath(folder));
const change = (n: number, window = '20260101'): ColumnChange => ({
  changedAt: '2026-01-01T00:00:00.000Z',
  sourceName: `x${n}`,
  change: 'added',
  fromType: null,
  toType: 'long',
  window,
  shape: '9',
});
const many = (count: number) => Array.from({ length: count }, (_, n) => change(n));
const OUTCOME = { exitCode: 0, cause: null, rows: 1, windows: 1, exports: 1, bytes: 1 };

describe('the history of a Parquet folder', () => {
  it('keeps the latest 10,000 changes, in their order', async () => {
    const history = await FolderHistory.open(folder, undefined);
    await history.add(many(MOST));
    expect((await stored()).changes).toHaveLength(MOST);
    await history.add([change(MOST), change(MOST + 1)]);
    const { changes } = await stored();
    expect(changes).toHaveLength(MOST);
    expect([changes[0].sourceName, changes.at(-1)?.sourceName]).toEqual(['x2', `x${MOST + 1}`]);
  });

  it('ends the run that began last, and no other', async () => {
    const history = await FolderHistory.open(folder, undefined);
    for (let n = 0; n < 3; n++) {
      await history.begin(`2026-01-0${n + 1}T00:00:00.000Z`, '1');
      if (n !== 1) await history.end(`2026-01-0${n + 1}T01:00:00.000Z`, OUTCOME);
    }
    expect((await stored()).runs.map(({ ended, exitCode }) => [ended, exitCode])).toEqual([
      ['2026-01-01T01:00:00.000Z', 0],
      [null, null],
      ['2026-01-03T01:00:00.000Z', 0],
    ]);
  });

  it('forgets the changes of a window that was never committed, and of any where none was', async () => {
    const history = await FolderHistory.open(folder, undefined);
    await history.add([change(1, '20260101'), change(2, '20260102')]);
    const after = await FolderHistory.open(folder, '20260101');
    await after.begin('2026-01-02T00:00:00.000Z', '1');
    expect((await stored()).changes.map(({ sourceName }) => sourceName)).toEqual(['x1']);
    const none = await FolderHistory.open(folder, undefined);
    await none.begin('2026-01-03T00:00:00.000Z', '1');
    expect((await stored()).changes).toEqual([]);
  });
});
