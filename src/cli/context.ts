import { secretFrom } from '../base/env.ts';
import { createLogger, type LogLevel } from '../base/log.ts';
import { type Runtime, systemRandom } from '../base/runtime.ts';
import { Redactor, Secret } from '../base/secrets.ts';
import type { Prompts } from './prompts.ts';
import { type LogFormat, type Terminal, terminalLog } from './terminal.ts';

export interface Io extends Omit<Runtime, 'logger' | 'random'> {
  readonly terminal: Terminal;
  /** Absent without an interactive terminal. */
  readonly prompts?: Prompts | undefined;
}

export interface Context extends Io, Runtime {
  readonly redactor: Redactor;
}

export function contextOf(io: Io, logLevel: LogLevel, logFormat: LogFormat): Context {
  const redactor = new Redactor();
  const sink = terminalLog(io.terminal, logFormat, () => io.clock.now());
  return { ...io, random: systemRandom, redactor, logger: createLogger(sink, logLevel, redactor.mask) };
}

/** A secret from the variable, or from the file that `NAME_FILE` names; masked in every message from then on. */
export function secretOf(name: string, { env, redactor }: Pick<Context, 'env' | 'redactor'>): Secret | undefined {
  const { text } = secretFrom(env, name) ?? {};
  const secret = text === undefined ? undefined : new Secret(text);
  redactor.add(secret);
  return secret;
}
