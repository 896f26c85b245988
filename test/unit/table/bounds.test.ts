import { describe, expect, it } from 'vitest';
import { readRuns, removeExpiredRuns } from '../../../src/sinks/files/runs.ts';
import type { Storage } from '../../../src/sinks/storage/storage.ts';
import { type ColumnChange, MAX_CHANGES } from '../../../src/table/changes.ts';
import { begunRun, MAX_RUNS } from '../../../src/table/runs.ts';
import { applyBatch, MAX_EVENT_NAMES, newState, type StoredBatch } from '../../../src/table/state.ts';

const batch = (more: Partial<StoredBatch>): StoredBatch => ({
  columns: [],
  receipts: [],
  eventNames: [],
  cursor: { version: 1, from_date: '2026-01-02' },
  changes: [],
  live: new Map(),
  ...more,
});

const changesOf = (count: number, window: string): ColumnChange[] =>
  Array.from({ length: count }, (_, n) => ({
    changedAt: '2026-01-02T00:00:00.000Z',
    sourceName: `c${n}`,
    change: 'added',
    fromType: null,
    toType: 'string',
    window,
    shape: null,
  }));

describe('what a state keeps', () => {
  it('is the latest 10,000 changes of columns', () => {
    expect(MAX_CHANGES).toBe(10_000);
    const full = applyBatch(newState(null, ['events']), batch({ changes: changesOf(MAX_CHANGES, 'first') }));
    const { changes } = applyBatch(full, batch({ changes: changesOf(3, 'second') }));
    expect(changes).toHaveLength(MAX_CHANGES);
    expect(changes[0]).toMatchObject({ sourceName: 'c3', window: 'first' });
    expect(changes.slice(-3).map(({ window }) => window)).toEqual(['second', 'second', 'second']);
  });

  it('is 10,000 names of events, each once, those that were there first', () => {
    expect(MAX_EVENT_NAMES).toBe(10_000);
    const names = Array.from({ length: MAX_EVENT_NAMES }, (_, n) => `n${n}`);
    const full = applyBatch(newState(null, ['events']), batch({ eventNames: [...names, ...names] }));
    expect(full.eventNames).toEqual([...names].sort());
    expect(applyBatch(full, batch({ eventNames: ['a new one', 'n1'] })).eventNames).toEqual(full.eventNames);
  });
});

describe('the history of runs', () => {
  it('is of the latest 1,000 beside a table of files, without what only said that they began', async () => {
    expect(MAX_RUNS).toBe(1_000);
    const objects = new Map<string, Buffer>();
    const storage = storageOf(objects);
    for (let n = 0; n < MAX_RUNS + 2; n++) {
      const began = new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
      const run = Buffer.from(JSON.stringify({ v: 1, run: { ...begunRun(began, '0.1.0'), ended: began } }));
      const name = `_dfinery/runs/${began.replaceAll(':', '-')}-0123abcd`;
      objects.set(`${name}.json`, run);
      if (n % 2 === 0) objects.set(`${name}.begun.json`, run);
    }
    await removeExpiredRuns(storage);
    expect(objects.size).toBe(MAX_RUNS);
    expect([...objects.keys()].filter((path) => path.includes('begun'))).toEqual([]);
    const runs = await readRuns(storage, 2_000);
    expect([runs.length, runs[0].began]).toEqual([MAX_RUNS, '2026-01-01T00:02:00.000Z']);
  });
});

/** A storage of these objects, as far as runs use one. */
function storageOf(objects: Map<string, Buffer>): Storage {
  const part: Pick<Storage, 'address' | 'list' | 'read' | 'remove'> = {
    address: 'memory',
    async *list() {
      for (const [path, { length }] of objects) yield { path, bytes: length, modified: 0, names: 1 };
    },
    read: async (path) => objects.get(path),
    async remove(paths) {
      for (const path of paths) objects.delete(path);
    },
  };
  return part as Storage;
}
