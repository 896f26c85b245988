import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command, Options } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { contextOf, type Io } from '../../src/cli/context.ts';
import { outcomeOf } from '../../src/cli/outcome.ts';
import { loadConnectors } from './connectors.ts';

/** A command line that is parsed already: the parser takes longer than most runs of a simulation. */
export interface Line {
  /** `sync duckdb`. */
  readonly command: string;
  readonly options: Readonly<Record<string, unknown>>;
}

const GLOBAL = { logLevel: 'info', logFormat: 'text' } as const;
const DEFAULTS = { ...GLOBAL, json: true, lockWait: '30s' };
const USED = /^(sync|verify|compact) (duckdb|parquet|delta|arrow) |^forget/;

const handlers = new Map<string, Command['run']>();

/** Loads what commands load when they are run: no simulation waits for files of the program. */
export async function loadCommands(): Promise<void> {
  await loadConnectors();
  for (const { usage, load } of COMMANDS) {
    if (USED.test(usage)) handlers.set(usage.replace(/ <.*/, ''), (await load()).run);
  }
  for (const target of ['duckdb', 'files', 'parquet', 'delta', 'arrow']) {
    const folder = join(import.meta.dirname, '../../src/sinks', target);
    for (const name of readdirSync(folder).filter((one) => one.endsWith('.ts'))) await import(join(folder, name));
  }
}

/** Runs it as the program does; gives its exit code. */
export async function runLine({ command, options }: Line, io: Io): Promise<number> {
  const context = contextOf(io, GLOBAL);
  try {
    const handler = handlers.get(command);
    if (handler === undefined) throw new Error(`no command ${command}`);
    return await handler({ ...DEFAULTS, ...options } as Options, context);
  } catch (error) {
    const outcome = outcomeOf(error, context.signal);
    outcome.log(context.logger);
    return outcome.exit;
  }
}

const TELLING = ['fullRefresh', 'execute', 'purge', 'verifyLedger'];
const SHOWN = ['from', 'to'];

/** For people: what was run, and with what that matters. */
export const shownLine = ({ command, options }: Line): string => {
  const names = Object.keys(options);
  const reported = names.filter((name) => TELLING.includes(name));
  return [
    command,
    ...reported,
    ...names.filter((name) => SHOWN.includes(name)).map((name) => `${name} ${options[name]}`),
  ].join(' ');
};
