import type { Day } from '../base/days.ts';
import type { UserError } from '../base/errors.ts';
import type { Runtime } from '../base/runtime.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { Suppression } from '../cells/columns/row-filter.ts';
import type { ExportService } from '../service/export/protocol.ts';
import type { LastRefusal, OnWait, WaitBudget } from '../service/export/retry.ts';
import type { WaitLimits } from '../service/quota/wait-limits.ts';

export interface ExtractOptions {
  readonly maxConcurrentExports: number;
  readonly emptyBody: 'retry' | 'no_rows';
  readonly timezone: string | undefined;
  readonly suppression?: Suppression | undefined;
  /** Columns that are dropped or hashed before anything is written. */
  readonly edits?: ColumnEdits | undefined;
}

/** The relation between the targets of a command, which share its downloads. */
interface Sharing {
  /** Id of the command: its downloads are used again, whatever their days. */
  readonly command: string;
  /** True if further targets follow, or an earlier one has failed: the downloads stay for them. */
  readonly keep: boolean;
  /** Refusals of exports to earlier targets, by request: those requests are not sent again. */
  readonly refusals: Map<string, LastRefusal | UserError>;
  /** How long exports may still be kept waiting, by their first day. */
  readonly waitBudgets: Map<Day, WaitBudget>;
  readonly concurrency: Concurrency;
}

/** The maximum number of downloads at once for which the disk of the spool had room; infinite until it lacked room. */
export interface Concurrency {
  max: number;
}

export interface ExtractDeps extends Omit<Runtime, 'env'>, WaitLimits {
  readonly service: ExportService;
  /** Folder under which the spool folder of these filters is made. */
  readonly spoolDir: string;
  /** Called when a wait that the service asks for begins and ends, of each export that waits. */
  readonly onWait?: OnWait | undefined;
  readonly options: ExtractOptions;
  /** Set if several targets load the same exports one after the other. */
  readonly sharing?: Sharing | undefined;
  /** Called with the bytes so far while a body arrives, so that its reader can get ready. */
  readonly onReceived?: ((bytes: number) => void) | undefined;
  readonly counts: ExtractCounts;
}

/** Counts of an extraction, which fills them while it runs. */
export const newExtractCounts = () => ({
  /** Number of requests sent. */
  exports: 0,
  /** Bytes of CSV received, also by requests that failed. */
  bytes: 0,
  /** Whether an export contains its `to_date`, if the extraction has proved it. */
  singleDaysInclusive: undefined as boolean | undefined,
  /** Days that are lost at the service, in no order. */
  gaps: [] as Day[],
});

export type ExtractCounts = ReturnType<typeof newExtractCounts>;
