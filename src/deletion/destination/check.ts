import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CheckVerb, VerbContext } from '../../airbyte/connector.ts';
import { succeeded } from '../../airbyte/messages.ts';
import { configFailure, messageOf } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { requireLedger } from '../case.ts';
import { openLedgerStore } from '../ledger/open-store.ts';
import { configured } from './configured.ts';
import { checkHost } from './host-check.ts';

/**
 * Checks the configuration, the ledger's folder and the connection to the host. Sends no request to the deletion endpoint,
 * not even an empty one, so the token is not checked: only a deletion can do that.
 */
export const check: CheckVerb = async (value, context) => {
  const config = configured(value, context);
  if (!config.dryRun) requireLedger(config);
  if (config.ledgerDir !== undefined) await checkLedger(config.ledgerDir, config, context);
  await checkHost(config.baseUrl, context.env, context.signal);
  const mode = config.dryRun ? 'dry_run is on: nothing will be deleted. ' : '';
  return succeeded(`${mode}The host answers. Whether the token is right only the first deletion shows.`);
};

/** Checks that the folder can be written (or made) and that its last file is intact under this key. Leaves no file. */
async function checkLedger(folder: string, config: DestinationConfig, context: VerbContext): Promise<void> {
  let at = folder;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  try {
    rmdirSync(mkdtempSync(join(at, '.dfinery-check-')));
  } catch (error) {
    throw configFailure(`ledger_dir ${folder} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
  (await openLedgerStore({ config, isReal: false, clock: context.clock, lines: undefined })).close();
}
