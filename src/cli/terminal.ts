import { writeSync } from 'node:fs';
import type { LogEvent, LogSink } from '../base/log.ts';

/** The two streams of the command line: results on stdout, everything else on stderr. */
export interface Terminal {
  /** Writes one line of a result. */
  result(line: string): void;
  /** Writes one line of log or progress. */
  note(line: string): void;
  /** True when a person is watching stderr. */
  readonly interactive: boolean;
  readonly columns: number;
}

/** Writes synchronously, so that nothing is lost when the process ends; a closed pipe is nobody listening. */
function writeAll(fd: 1 | 2, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === 'EAGAIN') continue;
      if (code === 'EPIPE') return;
      throw error;
    }
  }
}

export const systemTerminal: Terminal = {
  result: (line) => writeAll(1, `${line}\n`),
  note: (line) => writeAll(2, `${line}\n`),
  interactive: process.stderr.isTTY === true,
  columns: process.stderr.columns ?? 80,
};

const MARKS = { debug: '·', info: ' ', warn: '!', error: '✗' } as const;

/** Log lines as text for people, or as JSON for collectors. */
export function terminalLog(terminal: Pick<Terminal, 'note'>, format: 'text' | 'json', now: () => number): LogSink {
  if (format === 'json') {
    return ({ level, event, message, fields }) =>
      terminal.note(JSON.stringify({ time: new Date(now()).toISOString(), level, event, message, ...fields }));
  }
  return (event: LogEvent) =>
    terminal.note(`${new Date(now()).toISOString().slice(11, 19)} ${MARKS[event.level]} ${event.message}`);
}
