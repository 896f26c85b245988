import cliProgress from 'cli-progress';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import type { LogEvent, Logger, LogSink } from '../../base/log.ts';
import { megabytes } from '../../base/quantities.ts';
import type { Context } from '../context.ts';

/** What is shown while windows are read. */
interface ProgressState {
  readonly windows: number;
  /** Windows planned; more may come when one is split. */
  readonly planned: number;
  readonly rows: number;
  /** Bytes of CSV received. */
  readonly bytes: number;
  /** Exports that the quota still allows now; undefined: not known. */
  readonly quotaLeft: number | undefined;
  /** Instant (ms) until which nothing may be sent; undefined: not waiting. */
  readonly waitingUntil: number | undefined;
}

export interface Progress {
  update(state: ProgressState): void;
  /** Removes the bar; may be called twice. */
  stop(): void;
  /** Wraps a log so that its lines appear above the bar. */
  wrap(log: LogSink): LogSink;
}

const REDRAW_MS = 200;
const LINE_EVERY_MS = 5_000;
/** A wait for the quota may last an hour. */
const WAITING_LINE_EVERY_MS = 60_000;

function facts(state: ProgressState, elapsedMs: number, now: number): string {
  const rate = elapsedMs > 0 ? state.bytes / 1e3 / elapsedMs : 0;
  const quota = state.quotaLeft === undefined ? '' : ` · ${state.quotaLeft} exports left`;
  const waiting =
    state.waitingUntil === undefined
      ? ''
      : ` · waiting ${formatDuration(Math.max(0, state.waitingUntil - now))} for the quota`;
  return `${megabytes(state.bytes)} · ${state.rows.toLocaleString('en-US')} rows · ${rate.toFixed(1)} MB/s${quota}${waiting}`;
}

function eta(state: ProgressState, elapsedMs: number): string {
  // The time of a wait is shown beside it.
  if (state.windows === 0 || state.waitingUntil !== undefined) return '';
  const left = Math.max(0, state.planned - state.windows);
  return left === 0 ? '' : ` · ${formatDuration((elapsedMs / state.windows) * left)} left`;
}

/** A bar where a person watches, a line of the log every few seconds elsewhere. */
export function createProgress({ terminal, clock, logger }: Pick<Context, 'terminal' | 'clock' | 'logger'>): Progress {
  return terminal.interactive ? barProgress(clock) : lineProgress(logger, clock);
}

function lineProgress(logger: Logger, clock: Clock): Progress {
  const began = clock.now();
  let last = began;
  return {
    update(state) {
      const now = clock.now();
      const every = state.waitingUntil === undefined ? LINE_EVERY_MS : WAITING_LINE_EVERY_MS;
      if (now - last < every) return;
      last = now;
      logger.info(
        'run.progress',
        `${state.windows}/${state.planned} windows · ${facts(state, now - began, now)}${eta(state, now - began)}`,
      );
    },
    stop() {},
    wrap: (log) => log,
  };
}

function barProgress(clock: Clock): Progress {
  const began = clock.now();
  let bar: cliProgress.SingleBar | undefined;
  let last = 0;
  const draw = (state: ProgressState) => {
    const now = clock.now();
    const payload = { facts: facts(state, now - began, now), remaining: eta(state, now - began) };
    const total = Math.max(1, state.planned, state.windows);
    if (bar === undefined) {
      bar = new cliProgress.SingleBar(
        {
          format: '{bar} {value}/{total} windows · {facts}{remaining}',
          clearOnComplete: true,
          hideCursor: true,
          barsize: 24,
          stopOnComplete: false,
          gracefulExit: false,
          linewrap: false,
        },
        cliProgress.Presets.shades_classic,
      );
      bar.start(total, state.windows, payload);
    }
    bar.setTotal(total);
    bar.update(state.windows, payload);
  };
  const clear = () => {
    bar?.stop();
    bar = undefined;
  };
  return {
    update(state) {
      const now = clock.now();
      if (bar !== undefined && now - last < REDRAW_MS && state.windows < state.planned) return;
      last = now;
      draw(state);
    },
    stop: clear,
    wrap: (log) => (event: LogEvent) => {
      clear();
      log(event);
    },
  };
}
