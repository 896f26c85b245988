import { expect, it } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import type { Context } from '../../../src/cli/context.ts';
import { createProgress } from '../../../src/cli/run/progress.ts';
import { columnsOf } from '../../../src/cli/terminal.ts';

/** The line of the log about a run of 31 windows, ten seconds after its begin. */
function lineOf(windows: number, waitingUntil?: number): string {
  const lines: string[] = [];
  const logger = createLogger(
    ({ message }) => lines.push(message),
    'info',
    (text) => text,
  );
  let now = 0;
  const terminal = { interactive: false };
  const progress = createProgress({ terminal, clock: { now: () => now }, logger } as Context);
  now = 100_000;
  const state = { planned: 31, rows: 191_666, bytes: 914_600_000, quotaLeft: 94 };
  progress.update({ ...state, windows, waitingUntil });
  expect(lines).toHaveLength(1);
  return lines[0];
}

/** Columns that the bar takes before the text. */
const BAR = 11;

it('has all but the exports left within 80 columns, the bar included', () => {
  const line = lineOf(13);
  expect(line).toBe('13/31 windows · 914.6 MB · 191,666 rows · 9.1 MB/s · 2 min 18 s left · 94 exports left');
  expect(BAR + line.indexOf(' · 94')).toBeLessThanOrEqual(80);
});

it('begins with the wait for the service', () => {
  expect(lineOf(13, 160_000)).toBe(
    '13/31 windows · waiting 1 min for the service · 914.6 MB · 191,666 rows · 9.1 MB/s · 94 exports left',
  );
});

it.each([
  [0, 80],
  [132, 132],
])('a terminal of %i columns is written to as one of %i: without a size it has none', (columns, expected) => {
  expect(columnsOf({ columns })).toBe(expected);
});
