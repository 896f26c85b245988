import type { Runtime } from '../base/runtime.ts';
import { type ColumnEdits, columnEdits } from '../cells/columns/column-edits.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { Suppression } from '../cells/columns/row-filter.ts';
import type { SourceConfig } from '../config/source.ts';
import { ExportClient } from '../service/export/client.ts';
import type { ExportService } from '../service/export/protocol.ts';
import type { OnWait } from '../service/export/retry.ts';
import { ExportQuota, type ExportQuotaOptions } from '../service/quota/quota.ts';
import type { WaitLimits } from '../service/quota/wait-limits.ts';
import { type ExtractDeps, type ExtractOptions, newExtractCounts } from './deps.ts';

/** The clients of the service and its quota for one run. `close` closes both. */
export interface ExportSession {
  readonly service: ExportService;
  readonly quota: ExportQuota;
  close(): Promise<void>;
}

type WaitOptions = WaitLimits & Pick<ExportQuotaOptions, 'onWait'>;

export function openQuota(
  { maxConcurrentExports }: SourceConfig,
  { clock, logger }: Runtime,
  waits?: WaitOptions,
): ExportQuota {
  return new ExportQuota({ maxConcurrentExports, clock, logger, ...waits });
}

export function openExportSession(config: SourceConfig, runtime: Runtime, waits?: WaitOptions): ExportSession {
  const { clock, env } = runtime;
  const { baseUrl, serviceId, exportToken } = config;
  const quota = openQuota(config, runtime, waits);
  const service = new ExportClient({ baseUrl, serviceId, exportToken, clock, env, quota });
  return { service, quota, close: () => service.close() };
}

export function extractDeps(
  config: SourceConfig,
  service: ExportService,
  { clock, random, logger, signal }: Runtime,
  suppression?: Suppression,
): ExtractDeps {
  const options = extractOptions(config, suppression);
  return { service, clock, random, logger, signal, spoolDir: config.spoolDir, options, counts: newExtractCounts() };
}

/** The columns that a configuration drops or hashes; undefined if it lists none. */
export function editsOf({ columnsDrop, columnsHash, hashKey }: SourceConfig): ColumnEdits | undefined {
  return columnEdits(columnsDrop, columnsHash, hashKey && new HashKey(hashKey));
}

function extractOptions(config: SourceConfig, suppression: Suppression | undefined): ExtractOptions {
  const edits = editsOf(config);
  return {
    maxConcurrentExports: config.maxConcurrentExports,
    timezone: config.timezone,
    ...(edits !== undefined && { edits }),
    suppression,
  };
}

/**
 * For the waits of the quota and of exports that failed, of which there may be several: `show` is called with the end
 * of the one that ends first, and with undefined when none is left.
 */
export function waitsAsOne(show: (until: number | undefined) => void): OnWait {
  const ends = new Map<object | undefined, number>();
  let shown: number | undefined;
  return (until, owner) => {
    if (until === undefined) ends.delete(owner);
    else ends.set(owner, until);
    const first = ends.size === 0 ? undefined : Math.min(...ends.values());
    if (first === shown) return;
    shown = first;
    show(first);
  };
}
