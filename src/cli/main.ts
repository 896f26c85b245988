#!/usr/bin/env node
import { systemClock } from '../base/clock.ts';
import { enforceCertificateChecks, systemEnv } from '../base/env.ts';
import { EXIT, messageOf, UserError } from '../base/errors.ts';
import { endNow, letHeapGrow, runUntilStopped } from '../base/process.ts';
import { ProcessTerminal } from './process-terminal.ts';
import { runCommandLine } from './program.ts';
import { systemPrompts } from './prompts.ts';

// Whatever a run leaves anywhere may hold rows.
process.umask(0o077);
letHeapGrow();
const terminal = new ProcessTerminal(systemClock, systemEnv);
const certificateNote = enforceCertificateChecks();
if (certificateNote !== undefined) terminal.log(certificateNote);
await runUntilStopped(async (signal) => {
  const system = { terminal, clock: systemClock, env: systemEnv, signal, prompts: systemPrompts(signal) };
  let code: number = await runCommandLine(process.argv.slice(2), system);
  try {
    await terminal.drain(signal);
  } catch (error) {
    terminal.log(messageOf(error));
    code = error instanceof UserError ? error.exitCode : EXIT.failed;
    await terminal.drain(signal).catch(() => {});
  }
  if (!signal.aborted) endNow(code);
}, systemClock);
