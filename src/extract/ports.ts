import type { Clock } from '../base/clock.ts';
import type { Day } from '../base/days.ts';
import type { UserError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { ColumnEdits } from '../schema/column-edits.ts';
import type { ExportService } from '../service/export/protocol.ts';
import type { Suppression } from '../suppression/list.ts';

export interface ExtractOptions {
  readonly maxConcurrentExports: number;
  readonly emptyBody: 'retry' | 'no_rows';
  readonly timezone: string | undefined;
  readonly suppression?: Suppression | undefined;
  /** Columns that are dropped or hashed before anything is written. */
  readonly edits?: ColumnEdits | undefined;
}

/** How the downloads of a command serve several targets. */
export interface Sharing {
  /** Identifies the command: what it has downloaded is used again, whatever its days. */
  readonly command: string;
  /** True if further targets follow, or one before has failed: the downloads stay for them. */
  readonly keep: boolean;
  /** How the service refused exports to earlier targets, by request: those are not sent again. */
  readonly refused: Map<string, NoFile | UserError>;
}

/**
 * The service has no file for an export. `gone`: it no longer has the first day. `invalid`: a 400, perhaps for a day that has
 * not begun. `too_big`: it failed so often that fewer days, or fewer event names, have to be requested.
 */
export interface NoFile {
  readonly kind: 'gone' | 'invalid' | 'too_big';
  readonly files: readonly [];
  readonly message: string;
}

/** What an extraction works with. */
export interface ExtractDeps {
  readonly service: ExportService;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Folder under which the spool folder of these filters is made. */
  readonly spoolDir: string;
  readonly options: ExtractOptions;
  /** Set if several targets load the same exports one after the other (S54). */
  readonly sharing?: Sharing | undefined;
  /** Called while a body arrives, with its bytes so far: whoever is to read it can get ready. */
  readonly onReceived?: ((bytes: number) => void) | undefined;
  /** Filled while the extraction runs. */
  readonly counts: ExtractCounts;
}

/** What an extraction counts while it runs. */
export interface ExtractCounts {
  /** Requests sent. */
  exports: number;
  /** CSV received, of requests that failed too. */
  bytes: number;
  /** What the extraction has proved about `to_date` (S2); undefined: nothing. */
  inclusive: boolean | undefined;
  /** Days that are lost at the service, in no order. */
  gaps: Day[];
}

export const newExtractCounts = (): ExtractCounts => ({ exports: 0, bytes: 0, inclusive: undefined, gaps: [] });
