import { formatDuration } from '../../base/durations.ts';
import { count, formatBytes } from '../../base/quantities.ts';
import type { Context } from '../context.ts';

interface ProgressState {
  /** Days stored. */
  readonly days: number;
  readonly planned: number;
  /** Requests sent. */
  readonly exports: number;
  readonly rows: number;
  /** Bytes of CSV received. */
  readonly bytes: number;
  /** Instant (ms) until which nothing may be sent; undefined: not waiting. */
  readonly waitingUntil: number | undefined;
}

const LINE_EVERY_MS = 5_000;
/** A wait for the service may last an hour. */
const WAITING_LINE_EVERY_MS = 60_000;
const SLOW_LINE_EVERY_MS = 30_000;
const TICK_MS = 1_000;
const BAR_COLUMNS = 12;

/** A bar below the log where a person watches, a line of the log every few seconds elsewhere. */
export function createProgress({ terminal, clock, logger }: Pick<Context, 'terminal' | 'clock' | 'logger'>) {
  const began = clock.now();
  let last = began;
  return {
    update(state: ProgressState): void {
      const { waitingUntil } = state;
      const now = clock.now();
      const facts = factsOf(state, now - began, now);
      terminal.status(`${barOf(state)} ${facts}`);
      if (terminal.interactive || now - last < (waitingUntil === undefined ? LINE_EVERY_MS : WAITING_LINE_EVERY_MS))
        return;
      logger.info('run.progress', facts);
      last = now;
    },
    /** Removes the bar; may be called twice. */
    stop: () => terminal.status(),
  };
}

/** Shows for how long `work` has been under way: below the log, or in a line of it every half minute. */
export async function during<T>(what: string, work: Promise<T>, { terminal, clock, logger }: Context): Promise<T> {
  const began = clock.now();
  let last = began;
  const ticker = setInterval(() => {
    const now = clock.now();
    const text = `${what} · ${formatDuration(now - began)}`;
    terminal.status(text);
    if (terminal.interactive || now - last < SLOW_LINE_EVERY_MS) return;
    logger.info('run.progress', text);
    last = now;
  }, TICK_MS);
  try {
    return await work;
  } finally {
    clearInterval(ticker);
    terminal.status();
  }
}

/** Full for days that are stored, half for those that are requested. */
function barOf({ days, planned, exports }: ProgressState): string {
  const columns = (part: number) => Math.round((Math.min(part, planned) / Math.max(1, planned)) * BAR_COLUMNS);
  const stored = columns(days);
  const asked = Math.max(stored, columns(exports));
  const bar = '█'.repeat(stored) + '▒'.repeat(asked - stored) + '░'.repeat(BAR_COLUMNS - asked);
  return asked === stored ? bar : `${bar} ▒ requested ·`;
}

function factsOf(
  { days, planned, exports, rows, bytes, waitingUntil }: ProgressState,
  elapsed: number,
  now: number,
): string {
  const isWaiting = waitingUntil !== undefined;
  const open = planned - days;
  // A narrow terminal cuts the line at its end.
  const facts = [
    `${days} of ${count(planned, 'day')} stored`,
    isWaiting && `waiting ${formatDuration(Math.max(0, waitingUntil - now))} for the service`,
    !isWaiting && days > 0 && open > 0 && `${formatDuration((elapsed / days) * open)} left`,
    `${count(exports, 'export')}, ${formatBytes(bytes)}`,
    count(rows, 'row'),
    elapsed > 0 && `${(bytes / 1e3 / elapsed).toFixed(1)} MB/s`,
  ];
  return facts.filter((fact) => fact !== false).join(' · ');
}
