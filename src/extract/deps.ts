import type { Day } from '../base/days.ts';
import type { Runtime } from '../base/runtime.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { Suppression } from '../cells/columns/row-filter.ts';
import type { ExportService } from '../service/export/protocol.ts';
import type { OnWait } from '../service/export/retry.ts';
import type { WaitLimits } from '../service/quota/wait-limits.ts';
import type { ImplausibleDay } from './plausible.ts';

export interface ExtractOptions {
  readonly maxConcurrentExports: number;
  readonly timezone: string | undefined;
  readonly suppression?: Suppression | undefined;
  /** Columns that are dropped or hashed before anything is written. */
  readonly edits?: ColumnEdits | undefined;
}

export interface ExtractDeps extends Omit<Runtime, 'env'>, WaitLimits {
  readonly service: ExportService;
  /** Folder under which the folder of the run is made. */
  readonly spoolDir: string;
  /** Called when a wait that the service asks for begins and ends, of each export that waits. */
  readonly onWait?: OnWait | undefined;
  readonly options: ExtractOptions;
  /** Event names that the place has, asked for when a day is too large. */
  readonly eventNames?: (() => Promise<readonly string[]>) | undefined;
  readonly counts: ExtractCounts;
}

/** Counts of an extraction, which fills them while it runs. */
export const newExtractCounts = () => ({
  /** Number of requests sent. */
  exports: 0,
  /** Bytes of CSV received, also by requests that failed. */
  bytes: 0,
  /** Whether an export contains its `to_date`, if the run has proved it. */
  toDateInclusive: undefined as boolean | undefined,
  /** Days that are lost at the service, in order. */
  gaps: [] as Day[],
  /** Days that the caller named, and that were not over when they were loaded. */
  openDays: [] as Day[],
  implausibleDays: [] as ImplausibleDay[],
});

export type ExtractCounts = ReturnType<typeof newExtractCounts>;
