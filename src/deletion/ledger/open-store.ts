import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { internalError } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { Chain } from './chain.ts';
import { headOf, LedgerFolder, refuseForeignFolder, refuseLostKey } from './folder.ts';
import { KEY_VERSION, LedgerKey, storedKey, temporaryKey } from './key.ts';
import { Ledger } from './ledger.ts';
import type { LedgerOutput } from './output.ts';
import { type LedgerStore, NO_UNFINISHED_RUNS } from './store.ts';
import { findUnfinishedRuns } from './unfinished.ts';

export interface StoreOptions {
  readonly config: DestinationConfig;
  /** False: nothing is written or locked. */
  readonly isReal: boolean;
  readonly clock: Clock;
  /** For a run without a folder. */
  readonly lines: LedgerOutput | undefined;
}

/** Opens the ledger of a run; a folder is locked until `close`. */
export async function openLedgerStore(options: StoreOptions): Promise<LedgerStore> {
  const { config, isReal } = options;
  if (!isReal) return dryStore(options);
  if (config.ledgerDir === undefined) return logStore(options);
  const { ledgerKey: key, ledgerDir: folder, baseUrl, serviceId } = config;
  return LedgerFolder.open({ folder, key, service: { baseUrl, serviceId }, clock: options.clock });
}

/** A store for a dry run: reads the ledger and writes nothing. */
async function dryStore({ config, clock }: StoreOptions): Promise<LedgerStore> {
  const { ledgerDir, ledgerKey, baseUrl, serviceId } = config;
  const folder = ledgerDir !== undefined && existsSync(ledgerDir) ? ledgerDir : undefined;
  if (folder !== undefined) refuseForeignFolder(folder);
  const secret = ledgerKey ?? (folder === undefined ? undefined : storedKey(folder));
  if (secret === undefined && folder !== undefined) refuseLostKey(folder);
  const key = secret === undefined ? temporaryKey() : new LedgerKey(secret);
  if (folder !== undefined) await headOf(folder, key);
  return {
    key,
    async findUnfinished(list) {
      if (folder === undefined) return NO_UNFINISHED_RUNS;
      return findUnfinishedRuns({ folder, key, service: { baseUrl, serviceId }, list, now: clock.now() });
    },
    async start() {
      throw internalError('A dry run has no ledger.');
    },
    close() {},
  };
}

function logStore({ config, clock, lines }: StoreOptions): LedgerStore {
  if (config.ledgerKey === undefined || lines === undefined)
    throw internalError('A run without a ledger folder needs a key.');
  const key = new LedgerKey(config.ledgerKey);
  return {
    key,
    async findUnfinished() {
      return NO_UNFINISHED_RUNS;
    },
    async start(content) {
      const ledger = new Ledger(randomBytes(8).toString('hex'), new Chain(key), lines, clock);
      const service = { base_url: config.baseUrl, service_id: config.serviceId };
      await ledger.open({ ...service, key_version: KEY_VERSION, key_check: key.check, ...content });
      return ledger;
    },
    close() {},
  };
}
