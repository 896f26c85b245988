import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CheckVerb, VerbContext } from '../../airbyte/connector.ts';
import { succeeded } from '../../airbyte/messages.ts';
import { configFailure, messageOf } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { requireLedger } from '../execute/deletion-run.ts';
import { openLedgerStore } from '../ledger/open-store.ts';
import { configured } from './configured.ts';
import { checkHost } from './host-check.ts';

/**
 * Looks at the configuration, the ledger's folder and the way to the host. The path of deletions is never asked, not even
 * with nothing to delete: so this says nothing about the token, which only a deletion can prove.
 */
export const check: CheckVerb = async (value, context) => {
  const config = configured(value, context);
  if (!config.dryRun) requireLedger(config);
  if (config.ledgerDir !== undefined) await checkLedger(config.ledgerDir, config, context);
  await checkHost(config.baseUrl, context.env, context.signal);
  const mode = config.dryRun ? 'dry_run is on: nothing will be deleted. ' : '';
  return succeeded(`${mode}The host answers. Whether the token is right only the first deletion shows.`);
};

/** The folder can be written (or made), and its last file is whole and under this key. Nothing is left behind. */
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
