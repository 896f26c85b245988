import type { Clock } from '../base/clock.ts';
import type { Env } from '../base/env.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { SourceConfig } from '../config/source.ts';
import { type ColumnEdits, columnEdits } from '../schema/column-edits.ts';
import { UNIFIED_ID } from '../schema/groups.ts';
import { HashKey } from '../schema/hash-key.ts';
import { ExportClient } from '../service/export/client.ts';
import type { ExportService } from '../service/export/protocol.ts';
import { ExportQuota, type ExportQuotaOptions } from '../service/quota/quota.ts';
import { loadSuppression } from '../suppression/list.ts';
import { type ExtractDeps, type ExtractOptions, newExtractCounts } from './deps.ts';

/** What an extraction needs of the process: a part of the context of commands and connectors. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly env: Env;
  readonly signal: AbortSignal;
}

/** The clients of the service and its quota for one run. `close` closes both. */
export interface ExportSession {
  readonly service: ExportService;
  readonly quota: ExportQuota;
  close(): Promise<void>;
}

type WaitOptions = Pick<ExportQuotaOptions, 'maxWaitMs' | 'onWait'>;

/** Opens the quota of a configured service, which the processes of this machine share through the spool folder. */
export function openQuota(config: SourceConfig, { clock, random, logger }: Runtime, waits?: WaitOptions): ExportQuota {
  return new ExportQuota({ ...config, stateRoot: config.spoolDir, clock, random, logger, ...waits });
}

export function openExportSession(config: SourceConfig, runtime: Runtime, waits?: WaitOptions): ExportSession {
  const { clock, env } = runtime;
  const quota = openQuota(config, runtime, waits);
  const service = new ExportClient({ ...config, clock, env, quota });
  return { service, quota, close: () => service.close() };
}

/** The dependencies of an extraction. Reads the suppression file; throws a UserError if it cannot. */
export function extractDeps(
  config: SourceConfig,
  service: ExportService,
  { clock, random, logger, signal }: Runtime,
): ExtractDeps {
  const options = extractOptions(config);
  return { service, clock, random, logger, signal, spoolDir: config.spoolDir, options, counts: newExtractCounts() };
}

/** The columns that a configuration drops or hashes; undefined if it lists none. */
export function editsOf({ columnsDrop, columnsHash, hashKey }: SourceConfig): ColumnEdits | undefined {
  return columnEdits(columnsDrop, columnsHash, hashKey && new HashKey(hashKey));
}

/** The options for reading exports. Reads the suppression file; throws a UserError if it cannot. */
export function extractOptions(config: SourceConfig): ExtractOptions {
  const { suppressionFile: file, suppressionKey: key } = config;
  const edits = editsOf(config);
  const idKey = edits?.hash.has(UNIFIED_ID) ? edits.key : undefined;
  return {
    maxConcurrentExports: config.maxConcurrentExports,
    emptyBody: config.emptyBody,
    timezone: config.timezone,
    ...(edits !== undefined && { edits }),
    ...(file !== undefined && key !== undefined && { suppression: loadSuppression(file, key, idKey) }),
  };
}
