import { expect, it } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import type { Context } from '../../../src/cli/context.ts';
import { createProgress } from '../../../src/cli/run/progress.ts';
import { columnsOf, StatusLine } from '../../../src/cli/terminal.ts';

/** What is told 100 s after the begin of a run of 31 days. */
function toldOf(days: number, { waitingUntil, interactive = false }: { waitingUntil?: number; interactive?: boolean }) {
  const told: string[] = [];
  const say = (text?: string) => void (text !== undefined && told.push(text));
  const logger = createLogger(
    ({ message }) => say(message),
    'info',
    (text) => text,
  );
  let now = 0;
  const terminal = { interactive, status: interactive ? say : () => {} };
  const progress = createProgress({ terminal, clock: { now: () => now }, logger } as Context);
  now = 100_000;
  progress.update({ planned: 31, rows: 191_666, bytes: 914_600_000, exports: 20, days, waitingUntil });
  return told;
}

it('tells of stored days and of exports, in a log and below it', () => {
  const facts = '13 of 31 days stored · 2 min 18 s left · 20 exports, 914.6 MB · 191,666 rows · 9.1 MB/s';
  expect(toldOf(13, {})).toEqual([facts]);
  expect(toldOf(13, { interactive: true })).toEqual([`█████▒▒▒░░░░ ▒ requested · ${facts}`]);
});

it('says how long it waits for the service', () => {
  expect(toldOf(13, { waitingUntil: 160_000 })[0]).toMatch(/^13 of 31 days stored · waiting 1 min for the service · /);
});

it('a bar leaves room for ^C, and goes whole from a window that was made narrower', () => {
  let columns = 80;
  const status = new StatusLine(() => columns);
  expect(status.replaced('█'.repeat(100))).toBe(`\r\u001b[K${'█'.repeat(76)}…`);
  columns = 30;
  expect(status.above('a line')).toMatch(/^\r\u001b\[2A\u001b\[Ja line\n/);
});

it.each([
  [0, 80],
  [132, 132],
])('a terminal of %i columns is written to as one of %i', (columns, expected) => {
  expect(columnsOf({ columns })).toBe(expected);
});
