import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import type { Io } from '../../src/cli/context.ts';
import { runCommandLine } from '../../src/cli/program.ts';
import { TARGETS } from '../../src/targets/targets.ts';
import { loadConnectors } from './connectors.ts';

/** A command line, its options by their names in the program, its place among them. */
export interface Line {
  /** `sync duckdb`. */
  readonly command: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Loads what commands load when they are run: no simulation waits for files of the program. */
export async function loadCommands(): Promise<void> {
  await loadConnectors();
  for (const { load } of Object.values(COMMANDS)) await load();
  for (const name of ['files', ...TARGETS.map((target) => target.name)]) {
    const folder = join(import.meta.dirname, '../../src/sinks', name);
    for (const file of readdirSync(folder).filter((one) => one.endsWith('.ts'))) await import(join(folder, file));
  }
}

/** Runs it as the program does; gives its exit code. */
export async function runLine({ command, options }: Line, io: Io): Promise<number> {
  const words = Object.entries(options).flatMap(([key, value]) => wordsFor(command, key, value));
  return await runCommandLine([...command.split(' '), ...words, '--json'], io);
}

const PLACE = /^(file|dir|url)$/;

function wordsFor(command: string, key: string, value: unknown): string[] {
  if (PLACE.test(key) && command.includes(' ')) return [`${value}`];
  const name = `--${key.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;
  return [name, ...(value === true ? [] : [value].flat().map(String))];
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
