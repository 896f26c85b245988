#!/usr/bin/env node
import { isatty } from 'node:tty';
import { systemClock } from '../base/clock.ts';
import { enforceCertificateChecks, systemEnv } from '../base/env.ts';
import { EXIT, messageOf, UserError } from '../base/errors.ts';
import { letHeapGrow, runUntilStopped } from '../base/process.ts';
import { runCommandLine } from './program.ts';
import { ProcessTerminal } from './terminal/process-terminal.ts';
import { terminalPrompts } from './terminal/prompts.ts';

// Whatever a run leaves anywhere may hold rows.
process.umask(0o077);
letHeapGrow();
const terminal = new ProcessTerminal(systemClock, systemEnv);
const certificateNote = enforceCertificateChecks();
if (certificateNote !== undefined) terminal.log(certificateNote);
await runUntilStopped(async (signal) => {
  const canAsk = isatty(0) && isatty(2);
  const prompts = canAsk ? terminalPrompts(process.stdin, process.stderr, signal) : undefined;
  const system = { terminal, clock: systemClock, env: systemEnv, signal, prompts };
  const exitCode = await runCommandLine(process.argv.slice(2), system);
  try {
    await terminal.drain(signal);
    return exitCode;
  } catch (error) {
    terminal.log(messageOf(error));
    await terminal.drain(signal).catch(() => {});
    return error instanceof UserError ? error.exitCode : EXIT.failed;
  }
}, systemClock);
