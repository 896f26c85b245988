import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import type { Window } from '../../../src/extract/window.ts';
import { DeltaBench } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { verifyDelta } from '../../support/targets/files.ts';

let bench: DeltaBench;
beforeEach(() => {
  bench = new DeltaBench();
});
afterEach(() => bench.close());

const first = '2026-01-01';
const second = '2026-01-02';

/** The windows whose receipts the log has, as a reader of the protocol finds them. */
function receipts(): number[] {
  const there = new Set<number>();
  for (let version = 0; version < bench.versions(); version++) {
    for (const { domain, removed } of bench.actions('events', version, 'domainMetadata')) {
      const number = /^dfinery\.window\.(\d+)$/.exec(String(domain))?.[1];
      if (number === undefined) continue;
      if (removed === true) there.delete(Number(number));
      else there.add(Number(number));
    }
  }
  return [...there];
}

/** A window without rows, of these days, that is known to be complete from one day to another. */
function empty([from, to]: [Day, Day], covers: [Day, Day | null]): Window {
  const window = bench.window(from, csvOf([]));
  const [covers_from, covers_to] = covers;
  return { ...window, receipt: { ...window.receipt, from, to, covers_from, covers_to } };
}

describe('the receipt of a window without rows', () => {
  const days: [Day, Day] = [first, second];
  it.each<[string, [[Day, Day], [Day, Day | null]], [[Day, Day], [Day, Day | null]], number[]]>([
    ['goes when the same days are read again', [days, days], [days, days], [2]],
    ['stays when other days begin later', [days, days], [[second, second], days], [1, 2]],
    ['stays when other days end earlier', [days, days], [[first, first], days], [1, 2]],
    ['goes when more is complete then', [days, [first, first]], [days, days], [2]],
    ['stays when less is complete at the end', [days, days], [days, [first, first]], [1, 2]],
    ['stays when less is complete at the beginning', [days, days], [days, [second, second]], [1, 2]],
    ['goes when it said nothing of completeness', [days, [first, null]], [days, [second, null]], [2]],
    ['stays when the later one says nothing of completeness', [days, days], [days, [first, null]], [1, 2]],
  ])('%s', async (_, before, after, left) => {
    await bench.store([empty(...before), empty(...after)]);
    expect(receipts()).toEqual(left);
  });

  it('makes its day complete', async () => {
    await bench.store([bench.window(first, csvOf([]))]);
    const sink = await bench.openLake();
    expect([...(await sink.readPriorLoads()).covered]).toEqual([first]);
    await sink.close();
  });
});

describe('the receipt of a window', () => {
  it('stays while rows of the window are left on some date, and goes with the last', async () => {
    const rows = (n: string) => [
      { id: 'a', n, ...on(first) },
      { id: 'b', n, ...on(second) },
    ];
    const days = (cells: ReturnType<typeof rows>) => bench.window(first, csvOf(cells), undefined, 2);
    await bench.store([days(rows('1')), days(rows('2')), bench.window(second, csvOf(rows('3').slice(1)))]);
    expect(receipts()).toEqual([2, 3]);
    await bench.store([bench.window(first, csvOf(rows('4').slice(0, 1)))]);
    // No receipt of exactly the same two days has come since.
    expect(receipts()).toEqual([2, 3, 4]);
    await bench.store([days(rows('5'))]);
    expect(receipts()).toEqual([3, 4, 5]);
    expect(await verifyDelta(bench.lakeOptions)).toEqual([]);
  });

  it('tells how many rows exactly its days had when they were read last', async () => {
    const window = (day: Day, count: number, days = 1) => {
      const cells = Array.from({ length: count }, (_, i) => ({ id: `${day}-${i}`, ...on(day) }));
      return bench.window(day, csvOf(cells), undefined, days);
    };
    await bench.store([window(first, 1), window(second, 2), window(first, 3), window(first, 4, 2)]);
    const sink = await bench.openLake();
    const loads = await sink.readPriorLoads();
    const rowsOf = (from: Day, to: Day) => loads.rowsOf?.(from, to);
    await sink.close();
    expect([rowsOf(first, first), rowsOf(second, second), rowsOf(first, second)]).toEqual([3, 2, 4]);
    expect([rowsOf(second, '2026-01-03'), rowsOf('2025-12-31', first)]).toEqual([undefined, undefined]);
  });
});
