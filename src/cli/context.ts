import { createLogger, type LogLevel, type LogSink } from '../base/log.ts';
import { type Runtime, systemRandom } from '../base/runtime.ts';
import { Redactor } from '../base/secrets.ts';
import type { Prompts } from './terminal/prompts.ts';
import type { Terminal } from './terminal/terminal.ts';

/** The process behind a command line, or a test in its place. */
export interface System extends Omit<Runtime, 'logger' | 'random'> {
  readonly terminal: Terminal;
  /** Absent without an interactive terminal. */
  readonly prompts?: Prompts | undefined;
}

export interface Context extends System, Runtime {
  /** The command that runs, for messages that say what to write; empty outside of one. */
  readonly commandName: string;
  readonly redactor: Redactor;
}

export function contextOf(system: System, log: LogSink, logLevel: LogLevel, commandName = ''): Context {
  const redactor = new Redactor();
  const logger = createLogger(log, logLevel, redactor.mask);
  return { ...system, commandName, random: systemRandom, redactor, logger };
}
