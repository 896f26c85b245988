import { onAbort } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import { enforceCertificateChecks, systemEnv } from '../../base/env.ts';
import { letHeapGrow, runUntilStopped } from '../../base/process.ts';
import { systemRandom } from '../../base/runtime.ts';
import { openOutputStream } from '../../fs/output-stream.ts';
import type { Connector } from './connector.ts';
import { MessageWriter } from './message-writer.ts';
import { runConnector } from './run-connector.ts';

/** Runs the whole process of a connector; the `main.ts` of each connector calls only this. */
export async function runConnectorProcess(connector: Connector): Promise<void> {
  letHeapGrow();
  const failure = new AbortController();
  const writer = new MessageWriter(openOutputStream(1), (error) => failure.abort(error));
  const message = enforceCertificateChecks();
  if (message !== undefined) writer.writeLog({ level: 'warn', event: 'tls.strict', message });
  process.on('uncaughtException', (error) => failure.abort(error));
  process.on('unhandledRejection', (error) => failure.abort(error));
  await runUntilStopped(async (stopped) => {
    const signal = AbortSignal.any([stopped, failure.signal]);
    return await runConnector(connector, {
      args: process.argv.slice(2),
      writer,
      input: { [Symbol.asyncIterator]: () => stdinUntil(signal) },
      clock: systemClock,
      env: systemEnv,
      random: systemRandom,
      signal,
    });
  }, systemClock);
}

/** Reads stdin, which is opened only when somebody reads it; an abort ends the wait for more. */
function stdinUntil(signal: AbortSignal): AsyncIterator<Uint8Array> {
  onAbort(signal, () => process.stdin.destroy());
  return process.stdin[Symbol.asyncIterator]();
}
