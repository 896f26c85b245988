// This folder: what a person sees. This file is the output of a command, process-terminal.ts that of a process.
// prompts.ts asks, progress.ts shows how far a command is, and layout.ts fits texts and tables into columns.

import type { Writable } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import type { LogLevel, LogSink } from '../../base/log.ts';
import { printable } from '../../base/text.ts';

/** The two streams of the command line: results on stdout, everything else on stderr. No call blocks the process. */
export interface Terminal {
  /** Writes one line of a result on stdout. Resolves when the reader is not far behind, for a caller with many lines. */
  print(line: string): Promise<void>;
  /** Writes one line of log, above the status. */
  log(line: string, level?: LogLevel): void;
  /** Resolves when the reader of the log has taken it, two seconds later at most. */
  drainLog(): Promise<void>;
  /** Shows a line below all others of an interactive terminal until the next status; without a line: none. */
  showStatus(line?: string): void;
  /** The stream of the results, for a command that writes binary data to it; default: the process's stdout. */
  readonly stdout?: Writable | undefined;
  readonly isInteractive: boolean;
  /** The width of the results; infinite where they go to no terminal. */
  readonly columns: number;
}

export const NO_TERMINAL: Terminal = {
  async print() {},
  log() {},
  async drainLog() {},
  showStatus() {},
  isInteractive: false,
  columns: Number.POSITIVE_INFINITY,
};

/** Makes each text one printable line, whatever characters from outside it contains. A quiet command shows no status. */
export const terminalOfCommand = (terminal: Terminal, isQuiet: boolean): Terminal => ({
  stdout: terminal.stdout,
  isInteractive: terminal.isInteractive && !isQuiet,
  columns: terminal.columns,
  print: (line) => terminal.print(printable(line)),
  log: (line, level) => terminal.log(printable(line), level),
  drainLog: () => terminal.drainLog(),
  showStatus: (line) => (isQuiet ? undefined : terminal.showStatus(line)),
});

export const LOG_FORMATS = ['text', 'json'] as const;

const LEVEL_MARKS = { debug: '·', info: ' ', warn: '!', error: '✗' } as const;

/** Writes each event of the log as one line on a terminal, in one of the formats. */
export function terminalLog(terminal: Terminal, clock: Clock, format: (typeof LOG_FORMATS)[number]): LogSink {
  return ({ level, event, message, fields }) => {
    const time = new Date(clock.now()).toISOString();
    const text = `${time.slice(11, 19)}Z ${LEVEL_MARKS[level]} ${message}`;
    terminal.log(format === 'json' ? JSON.stringify({ time, level, event, message, ...fields }) : text, level);
  };
}
