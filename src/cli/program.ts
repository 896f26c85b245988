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
import { takeFolderWithoutModes } from '../fs/permissions.ts';
import type { CommandResult } from './command.ts';
import { type CommandLine, parseCommandLine } from './command-line.ts';
import { type Context, contextOf, type System } from './context.ts';
import { failureOf, logFailure } from './failure.ts';
import { helpLines } from './help.ts';
import { terminalLog, terminalOfCommand } from './terminal/terminal.ts';

const NO_MODES = 'is on a file system that keeps no modes: how it is mounted decides who may read the files in it.';

/**
 * A container engine reads both streams by itself: it may swap lines that are written closer together than this (ms).
 * That both were drained does not help.
 */
const APART_MS = 50;

/** Runs one command line and returns its exit code. A failure is logged, not thrown. */
export async function runCommandLine(argv: readonly string[], system: System): Promise<ExitCode> {
  const line = await parseCommandLine(argv);
  if (line.kind !== 'help') return await runCommand(line, system);
  for (const text of await helpLines(line.topic, system.terminal.columns)) system.terminal.print(text);
  return EXIT.done;
}

type LineOfCommand = Extract<CommandLine, { readonly values: object }>;

/** Runs a command, with the log that the options choose. Logs its failure, and prints its result. */
async function runCommand(line: LineOfCommand, system: System): Promise<ExitCode> {
  const { quiet = false, verbose, json = false, logLevel: level, logFormat = 'text' } = line.values;
  const logLevel = level ?? (quiet ? 'error' : verbose ? 'debug' : 'info');
  const terminal = terminalOfCommand(system.terminal, quiet);
  const logSink = terminalLog(terminal, system.clock, logFormat);
  const context = contextOf({ ...system, terminal }, logSink, logLevel, line.kind === 'run' ? line.command.name : '');
  const { result, lines, failure, exitCode = EXIT.done, isStdoutTaken } = await resultOf(line, context);
  if (failure !== undefined) logFailure(failure, context.logger);
  const folder = takeFolderWithoutModes();
  if (folder !== undefined) context.logger.warn('place.modes', `${folder} ${NO_MODES}`);
  const resultObject = failure === undefined ? result : { ...result, exit: failure.exitCode, error: failure.sentence };
  // A scheduler takes the last line of both streams as the result: nothing may follow it.
  await terminal.drainLog();
  if (json) await system.clock.sleep(APART_MS);
  const write = isStdoutTaken === true ? terminal.log : terminal.print;
  for (const text of json ? [JSON.stringify(resultObject)] : lines) write(text);
  return failure?.exitCode ?? exitCode;
}

async function resultOf(line: LineOfCommand, context: Context): Promise<CommandResult> {
  try {
    if (line.kind === 'wrong') throw line.problem;
    return await line.command.run(line.values, context);
  } catch (thrown) {
    return { result: { v: 1, kind: 'failure' }, lines: [], failure: failureOf(thrown, context) };
  }
}
