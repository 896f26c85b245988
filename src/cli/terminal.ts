import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import type { Clock } from '../base/clock.ts';
import type { Env } from '../base/env.ts';
import { codeOf } from '../base/errors.ts';
import type { LogLevel, LogSink } from '../base/log.ts';
import { OutputQueue } from '../base/output-queue.ts';
import { printable } from '../base/printable.ts';
import { diskError } from '../fs/disk-failure.ts';
import { openOutputStream } from '../fs/output-stream.ts';
import { truncate, widthOf } from './text-layout.ts';

/** The two streams of the command line: results on stdout, everything else on stderr. No call blocks the process. */
export interface Terminal {
  /** Writes one line of a result: on stdout, unless that is taken by data. */
  result(line: string, on?: 'stderr'): void;
  /** Writes one line of log, above the status. */
  note(line: string, level?: LogLevel): void;
  /** Shows a line below all others of an interactive terminal until the next status; without a line: none. */
  status(line?: string): void;
  /** The stream of the results, for a command that writes binary data to it; default: the process's stdout. */
  readonly stdout?: Writable;
  readonly interactive: boolean;
  /** The width of the results; infinite where they go to no terminal. */
  readonly columns: number;
}

/** The terminal of a process, which flushes its output before the process ends. */
export interface ProcessTerminal extends Terminal {
  /** Throws a UserError when a result could not be written, but not when the reader has closed the pipe. */
  drain(signal: AbortSignal): Promise<void>;
}

/** Time (ms) to wait for a slow reader of the log: before a result is written, and at the end of a run. */
const READER_WAIT_MS = 3_000;
/** Time to wait for such a reader after a signal to stop (ms). */
const STOPPING_WAIT_MS = 1_000;

const DEFAULT_COLUMNS = 80;

/** A terminal that has no size has 0 columns: that of a container or of a job that no window belongs to. */
export const columnsOf = ({ columns }: { readonly columns: number }): number => columns || DEFAULT_COLUMNS;

/** The line below all others of a terminal, such as a bar. */
export class StatusLine {
  readonly #columns: () => number;
  #text = '';

  constructor(columns: () => number) {
    this.#columns = columns;
  }

  /** What shows another text in its place. */
  replaced(line: string): string {
    // Some columns are left free: a full line would wrap, and so would the ^C that a terminal shows.
    const text = line === '' ? '' : truncate(line, this.#columns() - FREE_COLUMNS);
    const before = this.#text;
    this.#text = text;
    return text === before ? '' : `${this.#cleared(before)}${text}`;
  }

  /** What shows a line of text above it. */
  above(line: string): string {
    return this.#text === '' ? `${line}\n` : `${this.#cleared(this.#text)}${line}\n${this.#text}`;
  }

  /** A window that was made narrower shows the text in several rows. */
  #cleared(text: string): string {
    const rows = Math.ceil(widthOf(text) / this.#columns());
    return rows > 1 ? `\r\u001b[${rows - 1}A\u001b[J` : '\r\u001b[K';
  }
}

/** The results after the notes that came before them, in case both are the same stream. */
class OrderedOutput {
  readonly stdout = openOutputStream(1);
  readonly #clock: Clock;
  readonly #results = new OutputQueue(this.stdout);
  readonly #notes = new OutputQueue(openOutputStream(2));
  #isWaitingForNotes = false;
  #inOrder: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  result(line: string): void {
    this.#inOrder = this.#inOrder
      .then(() => this.#afterNotes(READER_WAIT_MS))
      .then(() => this.#results.add(`${line}\n`));
  }

  note(text: string): void {
    this.#notes.add(text);
  }

  async drain(signal: AbortSignal): Promise<void> {
    await this.#within(signal.aborted ? STOPPING_WAIT_MS : READER_WAIT_MS + 1, this.#inOrder);
    await this.#afterNotes(signal.aborted ? STOPPING_WAIT_MS : READER_WAIT_MS);
    const stopped = signal.aborted ? Promise.resolve() : once(signal, 'abort');
    const written = this.#results.drain().catch(refuseLoss);
    await Promise.race([written, stopped.then(() => this.#clock.sleep(STOPPING_WAIT_MS))]);
  }

  async #afterNotes(ms: number): Promise<void> {
    if (this.#isWaitingForNotes || this.#notes.isEmpty) return;
    this.#isWaitingForNotes = true;
    const unblock = () => {
      this.#isWaitingForNotes = false;
    };
    await this.#within(
      ms,
      this.#notes.drain().then(unblock, () => {}),
    );
  }

  #within(ms: number, work: Promise<void>): Promise<void> {
    return Promise.race([work, this.#clock.sleep(ms)]);
  }
}

/** Opens both streams of this process. */
export function openTerminal(clock: Clock, env: Env): ProcessTerminal {
  const output = new OrderedOutput(clock);
  const interactive = isatty(2) && env('TERM') !== 'dumb';
  const hasColours = interactive && !env('NO_COLOR');
  const status = new StatusLine(() => columnsOf(process.stderr));
  const show = (line = '') => {
    const shown = interactive ? status.replaced(line) : '';
    if (shown !== '') output.note(shown);
  };
  return {
    result(line, on) {
      if (on === 'stderr') return output.note(status.above(line));
      show();
      output.result(line);
    },
    note(line, level) {
      const colour = hasColours && level !== undefined ? COLOURS[level] : undefined;
      const text = colour === undefined ? line : `\u001b[${colour}m${line}\u001b[0m`;
      output.note(status.above(text));
    },
    status: show,
    stdout: output.stdout,
    interactive,
    get columns() {
      return isatty(1) ? columnsOf(process.stdout) : Number.POSITIVE_INFINITY;
    },
    async drain(signal) {
      show();
      await output.drain(signal);
    },
  };
}

/** Columns that a status leaves free at the end of its line. */
const FREE_COLUMNS = 3;
/** Colours of log lines: dim, yellow, red. */
const COLOURS: Readonly<Partial<Record<LogLevel, number>>> = { debug: 2, warn: 33, error: 31 };

const READER_GONE = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']);

function refuseLoss(error: unknown): void {
  if (!READER_GONE.has(codeOf(error) ?? '')) throw diskError(error, { what: 'standard output', path: 'stdout' });
}

/** Makes each text one printable line, whatever characters from outside it contains. */
export const printableTerminal = (terminal: Terminal): Terminal => ({
  ...terminal,
  get columns() {
    return terminal.columns;
  },
  result: (line, on) => terminal.result(printable(line), on),
  note: (line, level) => terminal.note(printable(line), level),
  status: (line) => terminal.status(line === undefined ? undefined : printable(line)),
});

export const LOG_FORMATS = ['text', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

const MARKS = { debug: '·', info: ' ', warn: '!', error: '✗' } as const;

export function terminalLog(terminal: Pick<Terminal, 'note'>, format: LogFormat, now: () => number): LogSink {
  return ({ level, event, message, fields }) => {
    const time = new Date(now()).toISOString();
    const json = () => JSON.stringify({ time, level, event, message, ...fields });
    const line = format === 'json' ? json() : `${time.slice(11, 19)}Z ${MARKS[level]} ${message}`;
    terminal.note(line, level);
  };
}
