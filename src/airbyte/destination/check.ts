import { configError, transientError, UserError } from '../../base/errors.ts';
import { sentenceOf } from '../../base/text.ts';
import { parseDestinationConfig } from '../../config/destination.ts';
import { Ledger } from '../../erasure/ledger/ledger.ts';
import { networkProblem } from '../../http/failures.ts';
import { withinTime } from '../../http/time-limit.ts';
import { Transport } from '../../http/transport.ts';
import { readConfig, type Verb, type VerbContext } from '../protocol/connector.ts';
import { connectionStatusMessage } from '../protocol/messages.ts';

const CHECK_TIMEOUT_MS = 20_000;

/**
 * Checks the configuration, the ledger's folder and the connection to the host. Sends no request to the deletion
 * endpoint, not even an empty one. So the token is not checked: only a deletion can do that.
 */
export const check: Verb = async (context) => {
  const config = readConfig(parseDestinationConfig, context);
  const ledger = await Ledger.open(config, { clock: context.clock, isPlan: true });
  await checkHost(config.baseUrl, context);
  const dryRunNote = config.dryRun ? 'dry_run is on: nothing will be deleted. ' : '';
  const ledgerNote = ledger.isKept ? '' : ' There is no ledger_dir: nothing is remembered, and nothing can be proved.';
  const message = `${dryRunNote}The host answers. Whether the token is right only the first deletion shows.${ledgerNote}`;
  return connectionStatusMessage('SUCCEEDED', message);
};

/** Sends a HEAD request without a token to the root of `baseUrl`; resolves on any answer, rejects without one. */
async function checkHost(baseUrl: string, { env, clock, signal }: VerbContext): Promise<void> {
  const { origin } = new URL(baseUrl);
  const transport = new Transport({ baseUrl: origin, env, clock, keptConnections: 0 });
  try {
    const request = { method: 'HEAD', path: '/', headers: {}, body: '' } as const;
    const answer = await withinTime(CHECK_TIMEOUT_MS, { clock, signal }, (timedSignal) =>
      transport.send(request, timedSignal),
    );
    answer.close();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UserError) throw error;
    const { needsUser, clause } = networkProblem(error, transport.host);
    if (needsUser) throw configError(sentenceOf(clause), { cause: error });
    throw transientError(`${transport.host} was not reached: ${clause}; check base_url.`, { cause: error });
  } finally {
    await transport.close();
  }
}
