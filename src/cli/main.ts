#!/usr/bin/env node
import { systemClock } from '../base/clock.ts';
import { requireTrustedCertificates, systemEnv, TRUST_MESSAGE } from '../base/env.ts';
import { EXIT, Failure, messageOf } from '../base/errors.ts';
import { endNow } from '../base/exit.ts';
import { runUntilStopped } from '../base/signals.ts';
import { runCommandLine } from './program.ts';
import { systemPrompts } from './prompts.ts';
import { openTerminal } from './terminal.ts';

// Whatever a run leaves anywhere may hold rows.
process.umask(0o077);
const terminal = openTerminal(systemClock);
if (requireTrustedCertificates()) terminal.note(TRUST_MESSAGE);
await runUntilStopped(async (signal) => {
  const workers = new URL('../workers/', import.meta.url);
  const io = { terminal, clock: systemClock, env: systemEnv, signal, prompts: systemPrompts(signal), workers };
  let code: number = await runCommandLine(process.argv.slice(2), io);
  try {
    await terminal.drain(signal);
  } catch (error) {
    terminal.note(messageOf(error));
    code = error instanceof Failure ? error.exitCode : EXIT.failed;
    await terminal.drain(signal).catch(() => {});
  }
  if (!signal.aborted) endNow(code);
}, systemClock);
