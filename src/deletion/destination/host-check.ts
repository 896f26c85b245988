import { systemClock } from '../../base/clock.ts';
import type { Env } from '../../base/env.ts';
import { configFailure, Failure, transientFailure } from '../../base/errors.ts';
import { withinTime } from '../../service/http/abort.ts';
import { networkProblem } from '../../service/http/network.ts';
import { Transport } from '../../service/http/transport.ts';

const TIMEOUT_MS = 20_000;

/** Sends a HEAD request without a token to the root of `baseUrl`; resolves on any answer, rejects without one. */
export async function checkHost(baseUrl: string, env: Env, signal: AbortSignal): Promise<void> {
  const { origin } = new URL(baseUrl);
  const transport = new Transport({ baseUrl: origin, env, clock: systemClock, keptConnections: 0 });
  try {
    const request = { method: 'HEAD', path: '/', headers: {}, body: '' } as const;
    const answer = await withinTime(TIMEOUT_MS, { clock: systemClock, signal }, (limited) =>
      transport.send(request, limited),
    );
    answer.disconnect();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Failure) throw error;
    const { config, message } = networkProblem(error, transport.host);
    const text = config ? message : `${transport.host} was not reached: ${message}; check base_url.`;
    throw config ? configFailure(text, { cause: error }) : transientFailure(text, { cause: error });
  } finally {
    await transport.close();
  }
}
