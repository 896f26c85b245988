import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { configError, messageOf, transientError, UserError } from '../../base/errors.ts';
import { type DestinationConfig, parseDestinationConfig } from '../../config/destination.ts';
import { LedgerStore, requireLedger } from '../../erasure/ledger/ledger.ts';
import { withinTime } from '../../service/http/abort.ts';
import { networkProblem } from '../../service/http/network.ts';
import { Transport } from '../../service/http/transport.ts';
import { type CheckVerb, openConfig, type VerbContext } from '../protocol/connector.ts';

const DESTINATION_CHECK_TIMEOUT_MS = 20_000;

/**
 * Checks the configuration, the ledger's folder and the connection to the host. Sends no request to the deletion
 * endpoint, not even an empty one, so the token is not checked: only a deletion can do that.
 */
export const check: CheckVerb = async (value, context) => {
  const config = openConfig(parseDestinationConfig(value, context.env), context);
  if (!config.dryRun) requireLedger(config);
  if (config.ledgerDir !== undefined) await checkLedger(config.ledgerDir, config, context);
  await checkHost(config.baseUrl, context);
  const mode = config.dryRun ? 'dry_run is on: nothing will be deleted. ' : '';
  return `${mode}The host answers. Whether the token is right only the first deletion shows.`;
};

/** Checks that the folder can be written (or made) and that its last file is intact under this key. Leaves no file. */
async function checkLedger(folder: string, config: DestinationConfig, context: VerbContext): Promise<void> {
  let at = folder;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  try {
    rmdirSync(mkdtempSync(join(at, '.dfinery-check-')));
  } catch (error) {
    throw configError(`ledger_dir ${folder} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
  await (await LedgerStore.open({ config, isReal: false, clock: context.clock, lines: undefined })).close();
}

/** Sends a HEAD request without a token to the root of `baseUrl`; resolves on any answer, rejects without one. */
export async function checkHost(
  baseUrl: string,
  { env, clock, signal }: Pick<VerbContext, 'env' | 'clock' | 'signal'>,
): Promise<void> {
  const { origin } = new URL(baseUrl);
  const transport = new Transport({ baseUrl: origin, env, clock, keptConnections: 0 });
  try {
    const request = { method: 'HEAD', path: '/', headers: {}, body: '' } as const;
    const answer = await withinTime(DESTINATION_CHECK_TIMEOUT_MS, { clock, signal }, (limited) =>
      transport.send(request, limited),
    );
    answer.disconnect();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UserError) throw error;
    const { config, message } = networkProblem(error, transport.host);
    const text = config ? message : `${transport.host} was not reached: ${message}; check base_url.`;
    throw config ? configError(text, { cause: error }) : transientError(text, { cause: error });
  } finally {
    await transport.close();
  }
}
