import { expect, it } from 'vitest';
import { progressOf } from '../../../src/cli/run/run-progress.ts';
import { terminalColumns } from '../../../src/cli/terminal/process-terminal.ts';
import { NOTHING_STORED } from '../../../src/table/commit.ts';

/** How far a run of 31 days is 100 s after its begin. */
const told = (days: number, waitingUntil?: number) => {
  const total = { ...NOTHING_STORED, daysWritten: Array<string>(days).fill(''), rowsWritten: 191_666 };
  const stored = { total, suppressedRows: 0 };
  const service = { receivedBytes: 914_600_000, answeredExports: 20, includesToDate: true };
  const counts = { ...stored, ...service, gaps: [], openDays: [], implausibleDays: [] };
  return progressOf(counts, { plannedDays: 31, began: 0, waitingUntil }, 100_000);
};

it('tells of stored days and of exports, and shows the days in a bar', () => {
  const { text, bar } = told(13);
  expect(text).toBe('13 of 31 days stored · 2 min 18 s left · 20 exports, 914.6 MB · 191,666 rows · 9.1 MB/s');
  expect(bar).toBe('█████░░░░░░░');
});

it('says how long it waits for the service', () => {
  expect(told(13, 160_000).text).toMatch(/^13 of 31 days stored · waiting 1 min for the service · /);
});

it.each([
  [0, 80],
  [132, 132],
])('a terminal of %i columns is written to as one of %i', (columns, expected) => {
  expect(terminalColumns({ columns })).toBe(expected);
});
