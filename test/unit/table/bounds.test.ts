import { describe, expect, it } from 'vitest';
import { type ColumnChange, MAX_CHANGES } from '../../../src/table/changes.ts';
import { applyBatch, MAX_EVENT_NAMES, newState, type StoredBatch } from '../../../src/table/state.ts';

const batch = (more: Partial<StoredBatch>): StoredBatch => ({
  columns: [],
  receipts: [],
  eventNames: [],
  exportState: { version: 1, from_date: '2026-01-02' },
  changes: [],
  liveRows: new Map(),
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

describe('a stored state', () => {
  it('keeps the latest 10,000 changes of columns', () => {
    expect(MAX_CHANGES).toBe(10_000);
    const full = applyBatch(newState(null, ['events']), batch({ changes: changesOf(MAX_CHANGES, 'first') }));
    const { changes } = applyBatch(full, batch({ changes: changesOf(3, 'second') }));
    expect(changes).toHaveLength(MAX_CHANGES);
    expect(changes[0]).toMatchObject({ sourceName: 'c3', window: 'first' });
    expect(changes.slice(-3).map(({ window }) => window)).toEqual(['second', 'second', 'second']);
  });

  it('keeps 10,000 event names, each once, the first ones', () => {
    expect(MAX_EVENT_NAMES).toBe(10_000);
    const names = Array.from({ length: MAX_EVENT_NAMES }, (_, n) => `n${n}`);
    const full = applyBatch(newState(null, ['events']), batch({ eventNames: [...names, ...names] }));
    expect(full.eventNames).toEqual([...names].sort());
    expect(applyBatch(full, batch({ eventNames: ['a new one', 'n1'] })).eventNames).toEqual(full.eventNames);
  });
});
