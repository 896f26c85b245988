#!/usr/bin/env node
import { systemClock } from '../base/clock.ts';
import { systemEnv } from '../base/env.ts';
import { setExitCode } from '../base/exit.ts';
import { runUntilStopped } from '../base/signals.ts';
import { runCommandLine } from './program.ts';
import { systemTerminal } from './terminal.ts';

// DuckDB's write-ahead log and spilled blocks hold rows, and it makes them with whatever permissions are usual.
process.umask(0o077);
await runUntilStopped(async (signal) => {
  const io = { terminal: systemTerminal, clock: systemClock, env: systemEnv, signal };
  setExitCode(await runCommandLine(process.argv.slice(2), io));
}, systemClock);
