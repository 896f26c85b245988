import { close, constants, fstatSync, open } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { onAbort } from '../../base/abort.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { enforceCertificateChecks, systemEnv } from '../../base/env.ts';
import { endNow, letHeapGrow, runUntilStopped } from '../../base/process.ts';
import { systemRandom } from '../../base/runtime.ts';
import { openOutputStream } from '../../fs/output-stream.ts';
import type { Connector } from './connector.ts';
import { MessageWriter } from './message-writer.ts';
import { runConnector } from './run-connector.ts';

/** How often a pipe is checked for a reader (ms). */
const READER_CHECK_MS = 2_000;

/** Runs the whole process of a connector; the `main.ts` of each connector calls only this. */
export async function runConnectorProcess(connector: Connector): Promise<void> {
  letHeapGrow();
  const failure = new AbortController();
  const writer = new MessageWriter(openStdout(systemClock), (error) => failure.abort(error));
  logNodeWarnings(writer);
  const message = enforceCertificateChecks();
  if (message !== undefined) writer.writeLog({ level: 'warn', event: 'tls.strict', message });
  process.on('uncaughtException', (error) => failure.abort(error));
  process.on('unhandledRejection', (error) => failure.abort(error));
  await runUntilStopped(async (stopped) => {
    const signal = AbortSignal.any([stopped, failure.signal]);
    const code = await runConnector(connector, {
      args: process.argv.slice(2),
      writer,
      input: { [Symbol.asyncIterator]: () => stdinUntil(signal) },
      clock: systemClock,
      env: systemEnv,
      random: systemRandom,
      signal,
    });
    if (!stopped.aborted) endNow(code);
  }, systemClock);
}

/** Reads stdin, which is opened only when somebody reads it; an abort ends the wait for more. */
function stdinUntil(signal: AbortSignal): AsyncIterator<Uint8Array> {
  onAbort(signal, () => process.stdin.destroy());
  return process.stdin[Symbol.asyncIterator]();
}

/** Logs Node's warnings, which it would print on stderr, where a platform takes them for errors. */
function logNodeWarnings(writer: MessageWriter): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    writer.writeLog({ level: 'debug', event: 'node.warning', message: `${name}: ${message}` });
  });
}

/**
 * Opens stdout, and closes it once it has no reader any more. Only the next write would show that, and a deletion,
 * which cannot be undone, writes rarely.
 */
function openStdout(clock: Clock): Writable {
  const out = openOutputStream(1);
  if (!(out instanceof Socket) || !fstatSync(1).isFIFO()) return out;
  const checkReader = () =>
    // Linux refuses to open a pipe for writing that nobody reads.
    open('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK, (error, probe) => {
      if (error?.code === 'ENXIO') out.destroy(error);
      if (error) return;
      close(probe, () => {});
      clock.after(READER_CHECK_MS, checkReader);
    });
  clock.after(READER_CHECK_MS, checkReader);
  return out;
}
