import { isMainThread } from 'node:worker_threads';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { runCommandLine } from '../../../src/cli/program.ts';
import type { Prompts } from '../../../src/cli/terminal/prompts.ts';

/** The environment of a command line in this process; by default no variables, and nobody who can answer questions. */
export interface CommandEnvironment {
  readonly env?: Readonly<Record<string, string>>;
  readonly prompts?: Prompts | undefined;
  readonly columns?: number;
  /** Waits for the reader of stdout, which by default takes everything at once. */
  readonly waitForResultReader?: () => Promise<void>;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
}

/** How a command line ended. */
export interface CommandOutput {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

// As the program sets it for itself: whatever a run leaves anywhere may hold rows. No thread may set it.
if (isMainThread) process.umask(0o077);

/** Runs one command line in this process: all but the start of a process, its signals and its streams is what users get. */
export async function runHere(
  argv: readonly string[],
  {
    env = {},
    prompts,
    columns = 80,
    waitForResultReader = async () => {},
    clock = systemClock,
    signal = new AbortController().signal,
  }: CommandEnvironment = {},
): Promise<CommandOutput> {
  let stdout = '';
  let stderr = '';
  const terminal = {
    print(line: string) {
      stdout += `${line}\n`;
      return waitForResultReader();
    },
    log(line: string) {
      stderr += `${line}\n`;
    },
    async drainLog() {},
    showStatus() {},
    isInteractive: false,
    columns,
  };
  const code = await runCommandLine(argv, { terminal, clock, env, signal, prompts });
  return { code, stdout, stderr };
}
