import type { Receipt } from '../../../extract/window.ts';
import type { StoredColumn } from '../../../table/columns.ts';
import type { StoredWindow } from '../../../table/receipts.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { missedColumns } from './changes.ts';
import { readColumns } from './columns.ts';
import { countRows, lastNumber, readLiveWindows } from './receipts.ts';
import { readEventNames } from './state.ts';

/**
 * What the tables of a file say before a window. The process that has the file open for writing is the only one that writes
 * to it: what it has committed need not be read again before its next window.
 */
export interface Contents {
  readonly columns: readonly StoredColumn[];
  /** Of the latest window; 0 when there is none. */
  readonly number: number;
  /** Rows in `events` by number of their window; none of a window without rows. */
  readonly rows: ReadonlyMap<number, number>;
  /** Windows that have rows of their own, by their receipts. */
  readonly live: readonly StoredWindow[];
  /** Source names of columns that a window lacked. */
  readonly missed: ReadonlySet<string>;
  readonly eventNames: ReadonlySet<string>;
}

export async function readContents(engine: Engine): Promise<Contents> {
  return {
    columns: await readColumns(engine),
    number: await lastNumber(engine),
    rows: await countRows(engine),
    live: await readLiveWindows(engine),
    missed: await missedColumns(engine),
    eventNames: new Set(await readEventNames(engine)),
  };
}

/** Rows by window after one more, whose rows are all its own; `others`: those of the windows before it. */
export function rowsWith(others: Contents['rows'], number: number, { rows }: Receipt): Map<number, number> {
  return new Map(rows === 0 ? others : [...others, [number, rows]]);
}

/** Live windows after one more that removed no row of the others. */
export function liveWith(live: Contents['live'], number: number, { rows, from, to }: Receipt): readonly StoredWindow[] {
  return rows === 0 ? live : [...live, { number, from, to }];
}
