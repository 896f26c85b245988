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
import { truncate } from './table.ts';

/** The two streams of the command line: results on stdout, everything else on stderr. No call blocks the process. */
export interface Terminal {
  /** Writes one line of a result: on stdout, unless that is taken by data. */
  result(line: string, on?: 'stderr'): void;
  /** Writes one line of log, above the status. If the reader is too slow, debug lines are dropped first. */
  note(line: string, level?: LogLevel): void;
  /** Shows a line that stays below all others until the next status, in an interactive terminal; without a line: none. */
  status(line?: string): void;
  /** The stream of the results, for a command that writes binary data to it; default: the process's stdout. */
  readonly stdout?: Writable;
  readonly interactive: boolean;
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

/**
 * Opens both streams of this process. A result is written after the notes before it, in case both are the same stream.
 */
export function openTerminal(clock: Clock, env: Env): ProcessTerminal {
  const droppedLine = (count: number) => `${count} lines of the log were dropped: their reader was too slow.\n`;
  const stdout = openOutputStream(1);
  const results = new OutputQueue(stdout, droppedLine);
  const notes = new OutputQueue(openOutputStream(2), droppedLine);
  const within = (ms: number, work: Promise<void>) => Promise.race([work, clock.sleep(ms)]);
  let isNoteReaderBlocked = false;
  const afterNotes = async (ms: number) => {
    if (isNoteReaderBlocked || notes.isEmpty) return;
    isNoteReaderBlocked = true;
    const unblock = () => {
      isNoteReaderBlocked = false;
    };
    await within(
      ms,
      notes.drain().then(unblock, () => {}),
    );
  };
  let inOrder: Promise<void> = Promise.resolve();
  const interactive = isatty(2) && env('TERM') !== 'dumb';
  const hasColours = interactive && !env('NO_COLOR');
  const columns = () => (isatty(2) ? columnsOf(process.stderr) : DEFAULT_COLUMNS);
  let status = '';
  /** The line, in place of the status, which is drawn again below it. */
  const above = (line: string) => (status === '' ? `${line}\n` : `${CLEAR_LINE}${line}\n${status}`);
  const show = (line = '') => {
    // One column is left free: a full line would wrap.
    const shown = interactive && line !== '' ? truncate(line, columns() - 1) : '';
    if (shown === status) return;
    status = shown;
    notes.add(`${CLEAR_LINE}${shown}`, 'kept');
  };
  return {
    result(line, on) {
      if (on === 'stderr') return notes.add(above(line), 'kept');
      show();
      inOrder = inOrder.then(() => afterNotes(READER_WAIT_MS)).then(() => results.add(`${line}\n`, 'kept'));
    },
    note(line, level) {
      const colour = hasColours && level !== undefined ? COLOURS[level] : undefined;
      const text = colour === undefined ? line : `\u001b[${colour}m${line}\u001b[0m`;
      notes.add(above(text), level === 'debug' ? 'debug' : 'log');
    },
    status: show,
    stdout,
    interactive,
    get columns() {
      return columns();
    },
    async drain(signal) {
      show();
      await within(signal.aborted ? STOPPING_WAIT_MS : READER_WAIT_MS + 1, inOrder);
      await afterNotes(signal.aborted ? STOPPING_WAIT_MS : READER_WAIT_MS);
      const stopped = signal.aborted ? Promise.resolve() : once(signal, 'abort');
      await Promise.race([results.drain().catch(refuseLoss), stopped.then(() => clock.sleep(STOPPING_WAIT_MS))]);
    },
  };
}

/** Goes to the begin of the line and empties it. */
const CLEAR_LINE = '\r\u001b[K';
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

/** A reader of both streams may see lines that are written closer together than this in the wrong order. */
const APART_MS = 50;

/**
 * Holds results back until everything else is written: a scheduler takes the last line of both streams as result.
 */
export function holdResults(outer: Terminal, clock: Clock) {
  const held: (() => void)[] = [];
  let lastNote = Number.NEGATIVE_INFINITY;
  const terminal: Terminal = {
    ...outer,
    result: (line, on) => void held.push(() => outer.result(line, on)),
    note(line, level) {
      outer.note(line, level);
      lastNote = clock.now();
    },
  };
  const release = async () => {
    if (held.length > 0) await clock.sleep(Math.max(0, lastNote + APART_MS - clock.now()));
    for (const write of held.splice(0)) write();
  };
  return { terminal, release };
}

export const LOG_FORMATS = ['text', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

const MARKS = { debug: '·', info: ' ', warn: '!', error: '✗' } as const;

export function terminalLog(terminal: Pick<Terminal, 'note'>, format: LogFormat, now: () => number): LogSink {
  return ({ level, event, message, fields }) => {
    const time = new Date(now()).toISOString();
    const json = () => JSON.stringify({ time, level, event, message, ...fields });
    const line = format === 'json' ? json() : `${time.slice(11, 19)} ${MARKS[level]} ${message}`;
    terminal.note(line, level);
  };
}
