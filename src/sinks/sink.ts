import type { Clock } from '../base/clock.ts';
import type { Day } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import type { SchemaMode } from '../config/source.ts';
import type { State, Window } from '../extract/window.ts';
import type { ColumnType } from '../types/type.ts';

/** What every local target is told: how cells become values, and what it may use. */
export interface TargetOptions {
  /** Zone of datetimes without one; a target that stays is bound to the one of its first load. */
  readonly timezone: string | undefined;
  /** By source name; beats what the data says. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: SchemaMode;
  /** Types of a pinned schema, by source name. */
  readonly pinned?: ReadonlyMap<string, ColumnType> | undefined;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** What one committed window did to the target. */
export interface Commit {
  readonly rows: number;
  /** Table columns that did not exist before. */
  readonly columnsAdded: readonly string[];
  /** Cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
}

/** What a target remembers of earlier runs. */
export interface Memory {
  readonly state: State | undefined;
  /** Days that committed receipts cover. */
  readonly covered: ReadonlySet<Day>;
  /** Event names seen so far, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** Rows of the latest receipt that asked for exactly these days; without it a re-read is compared with nothing (S8). */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

/**
 * A place where windows end up. `commit` stores the data, its receipt and the state in one step, or nothing at all;
 * windows come one at a time. `close` releases locks and files and is safe after any failure.
 */
export interface Sink {
  recall(): Promise<Memory>;
  commit(window: Window, signal: AbortSignal): Promise<Commit>;
  close(): Promise<void>;
}
