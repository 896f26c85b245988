import type { Day } from '../base/days.ts';
import type { RunContext, Runtime } from '../base/runtime.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { Suppression } from '../cells/columns/scanner.ts';
import { defaultSpoolDir } from '../config/local.ts';
import type { SourceConfig } from '../config/source.ts';
import { ExportClient } from '../service/export/client.ts';
import type { DownloadCounts } from '../service/export/download.ts';
import type { ExportService } from '../service/export/protocol.ts';
import { ExportQuota, type ExportQuotaOptions } from '../service/export/quota.ts';
import type { ImplausibleDay } from './doubtful-days.ts';

/** The client of the service, with its quota, for one run. */
export function openExportClient(
  { baseUrl, serviceId, exportToken, maxConcurrentExports }: SourceConfig,
  { clock, env, logger }: Runtime,
  waits?: Pick<ExportQuotaOptions, 'maxWaitMs' | 'onWait'>,
): ExportClient {
  const quota = new ExportQuota({ maxConcurrentExports, clock, logger, ...waits });
  return new ExportClient({ baseUrl, serviceId, exportToken, clock, env, quota });
}

export interface ExtractDeps extends RunContext, Pick<SourceConfig, 'maxConcurrentExports' | 'timezone'> {
  readonly service: ExportService;
  /** Folder under which the folder of the run is made. */
  readonly spoolDir: string;
  readonly suppression?: Suppression | undefined;
  /** Columns that are dropped or hashed before anything is written. */
  readonly edits: ColumnEdits;
  /** Columns to drop or hash that no export of this run has had so far. At the end the run warns of them. */
  readonly unseenColumns: Set<string>;
  readonly counts: DownloadCounts;
  readonly report: DaysReport;
}

export function extractDeps(
  config: SourceConfig & { readonly spoolDir?: string },
  service: ExportService,
  runtime: Runtime,
  suppression?: Suppression,
): ExtractDeps {
  const { spoolDir = defaultSpoolDir(), timezone, maxConcurrentExports } = config;
  return {
    ...runtime,
    service,
    spoolDir,
    timezone,
    maxConcurrentExports,
    suppression,
    edits: editsOf(config),
    unseenColumns: new Set([...config.columnsDrop, ...config.columnsHash]),
    counts: newDownloadCounts(),
    report: newDaysReport(),
  };
}

/** The columns that a configuration drops or hashes. */
export function editsOf({
  columnsDrop,
  columnsHash,
  hashKey,
}: Pick<SourceConfig, 'columnsDrop' | 'columnsHash' | 'hashKey'>): ColumnEdits {
  return { drop: new Set(columnsDrop), hash: new Set(columnsHash), key: hashKey && new HashKey(hashKey) };
}

export const newDownloadCounts = (): DownloadCounts => ({ exports: 0, bytes: 0, clockWarnings: 0 });

/** What the days of an extraction come to; it grows while they are delivered. */
export interface DaysReport {
  /** Whether an export contains its `to_date`, if that is known. */
  includesEnd: boolean | undefined;
  /** Days that an earlier run wanted, or that the caller named, and that the service no longer exports. */
  readonly gaps: Day[];
  /** Days that the caller named, and that were not over when they were loaded. */
  readonly openDays: Day[];
  readonly implausibleDays: ImplausibleDay[];
}

export const newDaysReport = (): DaysReport => ({
  includesEnd: undefined,
  gaps: [],
  openDays: [],
  implausibleDays: [],
});
