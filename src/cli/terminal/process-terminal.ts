import { once } from 'node:events';
import { isatty } from 'node:tty';
import type { Clock } from '../../base/clock.ts';
import type { Env } from '../../base/env.ts';
import { hasCode } from '../../base/errors.ts';
import type { LogLevel } from '../../base/log.ts';
import { OutputQueue } from '../../base/output-queue.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { openOutputStream } from '../../fs/output-stream.ts';
import { truncate } from './layout.ts';
import type { Terminal } from './terminal.ts';

/** Longest wait (ms) for a reader of the log that takes nothing. After a signal to stop also for one of the results. */
const MAX_READER_WAIT_MS = 2_000;
/** Columns that a status leaves free: a full line would wrap, and so would the ^C that a terminal shows. */
const FREE_COLUMNS = 3;
const CLEAR_LINE = '\r\u001b[K';
/** Colours of log lines: dim, yellow, red. */
const COLOURS: Readonly<Partial<Record<LogLevel, number>>> = { debug: 2, warn: 33, error: 31 };

/** Bytes of results that may wait for a reader before a command waits, too. */
const MAX_WAITING_BYTES = 16 << 20;

/** A terminal without a size has 0 columns: that of a container, or of a job without a window. */
export const terminalColumns = ({ columns }: { readonly columns: number }): number => columns || 80;

/** Both streams of this process, which may be one pipe. */
export class ProcessTerminal implements Terminal {
  readonly stdout = openOutputStream(1);
  readonly isInteractive: boolean;
  readonly #hasColours: boolean;
  readonly #clock: Clock;
  /** The line below all others of a terminal, such as a bar. */
  #status = '';
  readonly #results = new OutputQueue(this.stdout);
  readonly #log = new OutputQueue(openOutputStream(2));

  constructor(clock: Clock, env: Env) {
    this.#clock = clock;
    this.isInteractive = isatty(2) && env.TERM !== 'dumb';
    this.#hasColours = this.isInteractive && !env.NO_COLOR;
  }

  get columns(): number {
    return isatty(1) ? terminalColumns(process.stdout) : Number.POSITIVE_INFINITY;
  }

  async print(line: string): Promise<void> {
    this.showStatus();
    this.#results.queue(`${line}\n`);
    // A result that cannot be written is told at the end.
    await this.#results.drain(MAX_WAITING_BYTES).catch(() => {});
  }

  log(line: string, level?: LogLevel): void {
    const colour = this.#hasColours && level !== undefined ? COLOURS[level] : undefined;
    const text = colour === undefined ? line : `\u001b[${colour}m${line}\u001b[0m`;
    this.#log.queue(this.#status === '' ? `${text}\n` : `${CLEAR_LINE}${text}\n${this.#status}`);
  }

  showStatus(line = ''): void {
    const status = truncate(line, terminalColumns(process.stderr) - FREE_COLUMNS);
    if (!this.isInteractive || status === this.#status) return;
    this.#status = status;
    this.#log.queue(`${CLEAR_LINE}${status}`);
  }

  async drainLog(): Promise<void> {
    const logTaken = this.#log.drain().catch(() => {});
    await Promise.race([logTaken, this.#clock.sleep(MAX_READER_WAIT_MS)]);
  }

  /**
   * Waits until all is written, before the process ends. Throws a UserError when a result could not be written, but not
   * when its reader has closed the pipe.
   */
  async drain(signal: AbortSignal): Promise<void> {
    this.showStatus();
    await this.drainLog();
    const stopped = signal.aborted ? Promise.resolve() : once(signal, 'abort');
    const resultsTaken = this.#results.drain().catch(throwUnlessReaderGone);
    await Promise.race([resultsTaken, stopped.then(() => this.#clock.sleep(MAX_READER_WAIT_MS))]);
  }
}

const READER_GONE_CODES: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']);

function throwUnlessReaderGone(error: unknown): void {
  if (!hasCode(error, READER_GONE_CODES)) throw diskError(error, { subject: 'standard output' });
}
