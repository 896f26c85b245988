import cliProgress from 'cli-progress';
import { formatDuration } from '../../base/durations.ts';
import type { LogEvent, LogSink } from '../../base/log.ts';
import { count, formatBytes } from '../../base/quantities.ts';
import type { Context } from '../context.ts';

interface ProgressState {
  readonly days: number;
  readonly planned: number;
  readonly rows: number;
  /** Bytes of CSV received. */
  readonly bytes: number;
  readonly quotaLeft: number;
  /** Instant (ms) until which nothing may be sent; undefined: not waiting. */
  readonly waitingUntil: number | undefined;
}

const REDRAW_MS = 200;
const LINE_EVERY_MS = 5_000;
/** A wait for the service may last an hour. */
const WAITING_LINE_EVERY_MS = 60_000;

const BAR: cliProgress.Options = {
  format: '{bar} {value}/{total} days · {text}',
  clearOnComplete: true,
  hideCursor: true,
  barsize: 10,
  stopOnComplete: false,
  gracefulExit: false,
  linewrap: false,
};

/** A bar where a person watches, a line of the log every few seconds elsewhere. */
export function createProgress({ terminal, clock, logger }: Pick<Context, 'terminal' | 'clock' | 'logger'>) {
  const began = clock.now();
  let last = began;
  let bar: cliProgress.SingleBar | undefined;
  const stop = () => {
    bar?.stop();
    bar = undefined;
  };
  return {
    update(state: ProgressState): void {
      const { days, planned, waitingUntil } = state;
      const now = clock.now();
      const text = textOf(state, now - began, now);
      if (!terminal.interactive) {
        if (now - last < (waitingUntil === undefined ? LINE_EVERY_MS : WAITING_LINE_EVERY_MS)) return;
        logger.info('run.progress', `${days}/${planned} days · ${text}`);
      } else {
        if (bar !== undefined && now - last < REDRAW_MS && days < planned) return;
        const total = Math.max(1, planned, days);
        if (bar === undefined) {
          bar = new cliProgress.SingleBar(BAR, cliProgress.Presets.shades_classic);
          bar.start(total, days, { text });
        }
        bar.setTotal(total);
        bar.update(days, { text });
      }
      last = now;
    },
    /** Removes the bar; may be called twice. */
    stop,
    /** Wraps a log so that its lines appear above the bar. */
    wrap: (log: LogSink) => (event: LogEvent) => {
      stop();
      log(event);
    },
  };
}

function textOf({ days, planned, rows, bytes, quotaLeft, waitingUntil }: ProgressState, elapsed: number, now: number) {
  const rate = elapsed > 0 ? bytes / 1e3 / elapsed : 0;
  const open = planned - days;
  // A narrow terminal cuts the line at its end.
  const facts = [
    waitingUntil !== undefined && `waiting ${formatDuration(Math.max(0, waitingUntil - now))} for the service`,
    formatBytes(bytes),
    count(rows, 'row'),
    `${rate.toFixed(1)} MB/s`,
    waitingUntil === undefined && days > 0 && open > 0 && `${formatDuration((elapsed / days) * open)} left`,
    `${count(quotaLeft, 'export')} left`,
  ];
  return facts.filter((fact) => fact !== false).join(' · ');
}
