import type { Day } from '../base/days.ts';
import type { RunIo, Runtime } from '../base/runtime.ts';
import { type ColumnEdits, columnEdits } from '../cells/columns/column-edits.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { Suppression } from '../cells/columns/scanner.ts';
import type { SourceConfig } from '../config/source.ts';
import { ExportClient } from '../service/export/client.ts';
import type { ExportService } from '../service/export/protocol.ts';
import { ExportQuota, type ExportQuotaOptions } from '../service/quota/quota.ts';
import type { ImplausibleDay } from './plan/doubtful-days.ts';

/** The client of the service, with its quota, for one run. */
export function openExportClient(
  { baseUrl, serviceId, exportToken, maxConcurrentExports }: SourceConfig,
  { clock, env, logger }: Runtime,
  waits?: Pick<ExportQuotaOptions, 'maxWaitMs' | 'onWait'>,
): ExportClient {
  const quota = new ExportQuota({ maxConcurrentExports, clock, logger, ...waits });
  return new ExportClient({ baseUrl, serviceId, exportToken, clock, env, quota });
}

export interface ExtractDeps extends RunIo, Pick<SourceConfig, 'maxConcurrentExports' | 'timezone'> {
  readonly service: ExportService;
  /** Folder under which the folder of the run is made. */
  readonly spoolDir: string;
  readonly suppression?: Suppression | undefined;
  /** Columns that are dropped or hashed before anything is written. */
  readonly edits?: ColumnEdits | undefined;
  readonly counts: ExtractCounts;
}

export function extractDeps(
  config: SourceConfig,
  service: ExportService,
  { clock, random, logger, signal }: Runtime,
  suppression?: Suppression,
): ExtractDeps {
  const { spoolDir, timezone, maxConcurrentExports } = config;
  const runtime = { clock, random, logger, signal };
  const counts = newExtractCounts();
  return { ...runtime, service, spoolDir, timezone, maxConcurrentExports, suppression, edits: editsOf(config), counts };
}

/** The columns that a configuration drops or hashes; undefined if it lists none. */
export function editsOf({
  columnsDrop,
  columnsHash,
  hashKey,
}: Pick<SourceConfig, 'columnsDrop' | 'columnsHash' | 'hashKey'>): ColumnEdits | undefined {
  return columnEdits(columnsDrop, columnsHash, hashKey && new HashKey(hashKey));
}

/** Counts of an extraction, which fills them while it runs; the first three as `DownloadCounts` says. */
export const newExtractCounts = () => ({
  exports: 0,
  bytes: 0,
  isWarnedOfClock: false,
  /** Whether an export contains its `to_date`, if the run has proved it. */
  toDateInclusive: undefined as boolean | undefined,
  /** Days that are lost at the service, in order. */
  gaps: [] as Day[],
  /** Days that the caller named, and that were not over when they were loaded. */
  openDays: [] as Day[],
  implausibleDays: [] as ImplausibleDay[],
  /** Columns to drop or hash that the export of profiles had; undefined: it may have them, and was not asked. */
  listedInProfiles: new Set() as ReadonlySet<string> | undefined,
});

export type ExtractCounts = ReturnType<typeof newExtractCounts>;
