import { describe, expect, it } from 'vitest';
import { setChanges } from '../../../src/sinks/delta/domains.ts';
import { type ColumnChange, MAX_CHANGES } from '../../../src/table/changes.ts';

const changes = (count: number): ColumnChange[] =>
  Array.from({ length: count }, (_, n) => ({
    changedAt: '2026-01-01T00:00:00.000Z',
    sourceName: `c${n}`,
    change: 'added',
    fromType: null,
    toType: 'string',
    shape: null,
  })) as ColumnChange[];

describe('the changes of columns in a Delta table', () => {
  const removed = (count: number, before: readonly (readonly [number, number])[]) =>
    setChanges(9, changes(count), new Map(before.map(([window, of]) => [window, changes(of)])))
      .filter((action) => (action as { domainMetadata?: { removed?: boolean } }).domainMetadata?.removed)
      .map((action) => (action as { domainMetadata: { domain: string } }).domainMetadata.domain);

  it('lose the oldest windows first, once there are more than are kept', () => {
    const most = MAX_CHANGES;
    expect(
      removed(1, [
        [1, 5],
        [2, most - 1],
      ]),
    ).toEqual([expect.stringMatching(/1$/)]);
    expect(
      removed(1, [
        [1, most - 2],
        [2, 1],
      ]),
    ).toEqual([]);
    expect(
      removed(2, [
        [1, most - 2],
        [2, 1],
      ]),
    ).toEqual([expect.stringMatching(/1$/)]);
    expect(
      removed(most, [
        [1, 1],
        [2, 1],
      ]),
    ).toHaveLength(2);
  });

  it('stay as they are where a window changes nothing', () => {
    expect(setChanges(9, [], new Map([[1, changes(MAX_CHANGES + 1)]]))).toEqual([]);
  });
});
