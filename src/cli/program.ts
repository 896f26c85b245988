// This folder: the command line, from its words to an exit code.
//
//   main.ts             the process: its streams, signals and exit code
//   program.ts          one command line: prints a page of help, or runs a command and prints its result
//   command-line.ts     what its words ask for; command.ts says what a command and an option are
//   context.ts          what a command runs in: terminal, log, clock, environment, signal
//   commands/           one file a command; most of them begin with readPlaceAndConfig of places.ts
//   configuration.ts    the keys of file and environment, and which of them a command needs
//   pinned-types.ts     the types that a file of `--schema` has
//   people-options.ts   whom `forget` and `person` look for, and where
//   results.ts          the objects of `--json`; failure.ts: what is told of an error; help.ts: the pages of --help
//   library.ts          four commands as functions
//
// `terminal/` is what a person sees, `run/` the run of `sync`, and `report/` the pages of HTML.

import { EXIT, type ExitCode } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { folderWithoutModes } from '../fs/permissions.ts';
import type { CommandResult } from './command.ts';
import { type CommandLine, parseCommandLine } from './command-line.ts';
import { contextOf, type System } from './context.ts';
import { failureOf, logFailure } from './failure.ts';
import { helpLines } from './help.ts';
import { printableTerminal, terminalLog } from './terminal/terminal.ts';

const NO_MODES = 'is on a file system that keeps no modes: how it is mounted decides who may read the files in it.';

/**
 * A container engine reads both streams by itself: it may swap lines that are written closer together than this (ms).
 * That both were drained does not help.
 */
const APART_MS = 50;

/** Runs one command line and returns its exit code. A failure is logged, not thrown. */
export async function runCommandLine(argv: readonly string[], system: System): Promise<ExitCode> {
  const line = await parseCommandLine(argv);
  if (line.kind === 'run' || line.kind === 'wrong') return await runCommand(line, system);
  const lines = line.kind === 'version' ? [VERSION] : await helpLines(line.topic, system.terminal.columns);
  for (const text of lines) system.terminal.print(text);
  return EXIT.done;
}

/** Runs a command, with the log that the options choose. Prints its result, or logs its failure. */
async function runCommand(line: CommandLine & { readonly kind: 'run' | 'wrong' }, system: System): Promise<ExitCode> {
  const { quiet = false, verbose, json = false, logFormat = 'text' }: (typeof line)['values'] = line.values;
  const logLevel = line.values.logLevel ?? (quiet ? 'error' : verbose ? 'debug' : 'info');
  const terminal = printableTerminal(system.terminal, quiet);
  const logSink = terminalLog(terminal, system.clock, logFormat);
  const context = contextOf({ ...system, terminal }, logSink, logLevel, line.kind === 'run' ? line.command.name : '');
  let commandResult: CommandResult;
  try {
    if (line.kind === 'wrong') throw line.problem;
    commandResult = await line.command.run(line.values, context);
  } catch (thrown) {
    const failure = failureOf(thrown, context);
    logFailure(failure, context.logger);
    const { exitCode, sentence: error } = failure;
    commandResult = { result: { v: 1, kind: 'failure', exit: exitCode, error }, lines: [], exitCode };
  }
  const folder = folderWithoutModes();
  if (folder !== undefined) context.logger.warn('place.modes', `${folder} ${NO_MODES}`);
  const { result, lines, exitCode = EXIT.done, isStdoutTaken } = commandResult;
  // A scheduler takes the last line of both streams as the result: nothing may follow it.
  if (json) await system.clock.sleep(APART_MS);
  const write = isStdoutTaken === true ? terminal.log : terminal.print;
  for (const text of json ? [JSON.stringify(result)] : lines) write(text);
  return exitCode;
}
