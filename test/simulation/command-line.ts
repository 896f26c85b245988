import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, wordsOf } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { contextOf, type Io } from '../../src/cli/context.ts';
import { failureOf } from '../../src/cli/failure.ts';
import { optionName, parseCommandLine } from '../../src/cli/parse.ts';
import { TARGETS } from '../../src/targets/targets.ts';
import { loadConnectors } from './connectors.ts';

/** A command line, its options by their names in the program, its place among them. */
export interface Line {
  /** `sync duckdb`. */
  readonly command: string;
  readonly options: Readonly<Record<string, unknown>>;
}

const commands = new Map<string, Command>();

/** Loads what commands load when they are run: no simulation waits for files of the program. */
export async function loadCommands(): Promise<void> {
  await loadConnectors();
  for (const load of Object.values(COMMANDS)) {
    for (const one of (await load()).commands) commands.set(wordsOf(one).join(' '), one);
  }
  for (const name of ['files', ...TARGETS.map((target) => target.name)]) {
    const folder = join(import.meta.dirname, '../../src/sinks', name);
    for (const file of readdirSync(folder).filter((one) => one.endsWith('.ts'))) await import(join(folder, file));
  }
}

/** Runs it as the program does; gives its exit code. */
export async function runLine({ command: name, options }: Line, io: Io): Promise<number> {
  const context = contextOf(io, { logLevel: 'info', logFormat: 'text' });
  try {
    const command = commands.get(name);
    if (command === undefined) throw new Error(`no command ${name}`);
    const argv = Object.entries(options).flatMap(([key, value]) => wordsFor(command, key, value));
    const { values, problem } = parseCommandLine([...argv, '--json'], command.options, []);
    if (problem !== undefined) throw problem;
    return await command.run(values, context);
  } catch (error) {
    const failure = failureOf(error, context.signal);
    failure.log(context.logger);
    return failure.exit;
  }
}

function wordsFor({ options }: Command, key: string, value: unknown): string[] {
  const option = options[key];
  if (option === undefined) return [`${value}`];
  return [optionName(key, option), ...(value === true ? [] : [value].flat().map(String))];
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
