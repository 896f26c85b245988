import { systemClock } from '../base/clock.ts';
import { requireTrustedCertificates, systemEnv, TRUST_MESSAGE } from '../base/env.ts';
import { endNow } from '../base/exit.ts';
import { systemRandom } from '../base/random.ts';
import { runUntilStopped } from '../base/signals.ts';
import type { Connector } from './connector.ts';
import { runConnector } from './entrypoint.ts';
import { MessageWriter, openStdout } from './writer.ts';

/** The whole process of a connector: what `main.ts` of each calls, and nothing else. */
export async function runConnectorProcess(connector: Connector): Promise<void> {
  let code = 1;
  const writer = new MessageWriter(openStdout(systemClock));
  tellWarnings(writer);
  if (requireTrustedCertificates()) writer.sink({ level: 'warn', event: 'tls.strict', message: TRUST_MESSAGE });
  await runUntilStopped(async (signal) => {
    code = await runConnector(connector, {
      words: process.argv.slice(2),
      writer,
      input: { [Symbol.asyncIterator]: () => stdinUntil(signal) },
      clock: systemClock,
      env: systemEnv,
      random: systemRandom,
      signal,
      onUncaught,
    });
    if (!signal.aborted) endNow(code);
  }, systemClock);
}

/** Opened only when somebody reads it; a stop ends the wait for more. */
function stdinUntil(signal: AbortSignal): AsyncIterator<Uint8Array> {
  signal.addEventListener('abort', () => process.stdin.destroy());
  return process.stdin[Symbol.asyncIterator]();
}

/** Node prints its warnings on stderr, which a platform shows as errors. */
function tellWarnings(writer: MessageWriter): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    writer.sink({ level: 'debug', event: 'node.warning', message: `${name}: ${message}` });
  });
}

function onUncaught(listener: (error: unknown) => void): () => void {
  process.on('uncaughtException', listener);
  process.on('unhandledRejection', listener);
  return () => {
    process.off('uncaughtException', listener);
    process.off('unhandledRejection', listener);
  };
}
