// This folder: what a place holds beside its rows, and what a batch of days makes of it. It knows no DuckDB and no disk.
//
// For each batch a sink calls `splitBatch` and `planBatch` of this file, stores the rows, and calls `finishBatch` of
// `commit.ts`. `column-plan.ts` decides the types of columns, `names.ts` their names; `changes.ts` records what became
// of them. `place-state.ts`, `receipts.ts` and `tables.ts` say what is stored. `differences.ts` and `place-warnings.ts`
// have the sentences about a place that is not as it should be.

import { type Day, nameDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../cells/columns/groups.ts';
import type { ColumnType } from '../cells/types/codec.ts';
import type { CellForms } from '../cells/types/forms.ts';
import { canWiden, codecOf, fits, typeOf } from '../cells/types/types.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { DayDownload } from '../extract/checked-day.ts';
import type { RunProgress } from '../extract/export-state.ts';
import {
  type ColumnRules,
  hasValues,
  type IncomingColumns,
  incomingColumns,
  type PlannedColumn,
  planColumns,
  typeByCells,
} from './column-plan.ts';
import type { StoredProfiles, TableState } from './place-state.ts';
import type { Receipts, StoredReceipt } from './receipts.ts';
import { EVENTS, type Table, USER_PROFILES } from './tables.ts';

/** The days of a batch: those whose rows a commit writes, and those whose rows the place holds already. */
interface BatchDays {
  readonly toWrite: readonly DayDownload[];
  readonly unchanged: readonly DayDownload[];
}

/**
 * Splits a batch by what a place holds. A day is unchanged if it has the same bytes and filters, and its rows are
 * there. `countRows` counts them, since a receipt proves nothing.
 */
export async function splitBatch(
  receipts: Receipts,
  batch: readonly DayDownload[],
  { rewrites }: Pick<RunProgress, 'rewrites'>,
  { logger, countRows }: { readonly logger: Logger; countRows(days: Day[]): Promise<ReadonlyMap<Day, number>> },
): Promise<BatchDays> {
  const downloads = leaveOutOlder(receipts, batch, logger);
  const candidates = downloads.filter(({ receipt: { day, sha256, filters } }) => {
    const stored = receipts.get(day);
    return !rewrites && stored?.sha256 === sha256 && stored.filters === filters && stored.pruned !== true;
  });
  const rowsByDay = candidates.length === 0 ? undefined : await countRows(candidates.map(({ receipt }) => receipt.day));
  const unchanged = candidates.filter((download) => {
    const { day } = download.receipt;
    return (rowsByDay?.get(day) ?? 0) === rowsToHold(download, receipts.get(day));
  });
  return { toWrite: downloads.filter((download) => !unchanged.includes(download)), unchanged };
}

/** Leaves out, with a warning, each download that is older than the stored one, unless a user gave its file. */
function leaveOutOlder(receipts: Receipts, batch: readonly DayDownload[], logger: Logger): readonly DayDownload[] {
  const isOlder = ({ receipt: { day, requested_at, source } }: DayDownload) =>
    source !== 'file' && requested_at < (receipts.get(day)?.requested_at ?? '');
  const older = batch.filter(isOlder);
  if (older.length === 0) return batch;
  const days = nameDays(older.map(({ receipt }) => receipt.day));
  const message = `another run has loaded a later download of ${days}, which stays: that of this run is left out.`;
  logger.warn('days.older', message, { days: older.length });
  return batch.filter((download) => !isOlder(download));
}

/**
 * Number of rows by which a place holds all of a download. If the day shares rows with its neighbours, the last commit
 * says how many it left. It does so only if the same people were suppressed.
 */
function rowsToHold({ receipt, mayShareRows }: DayDownload, stored: StoredReceipt | undefined): number {
  if (mayShareRows && stored?.suppressed === receipt.suppressed) return stored.rows_stored;
  return receipt.rows - receipt.suppressed;
}

/** True if the stored snapshot of profiles was requested after this one. */
export const isSuperseded = (stored: StoredProfiles | undefined, { receipt }: DayDownload): boolean =>
  stored !== undefined && stored.receipt.requested_at > receipt.requested_at;

/** How the cells of a column, in files with these forms, become values. */
export interface CellReading {
  readonly forms: CellForms;
  /** The type that cells are read as before they become that of the column; null if none of them is stored. */
  readonly readAs: ColumnType | null;
  /** True when every cell fits `readAs`. */
  readonly isClean: boolean;
  /**
   * True if the cell `null` is a text, and not an absent value: the column is a string. A setting says so, or the cells
   * up to this day.
   */
  readonly isNullText: boolean;
}

/** A day of a batch, and how its cells become values. */
export interface PlannedDay {
  readonly download: DayDownload;
  readonly incoming: IncomingColumns;
  /** The reading of each column of the place, by its key. */
  readonly readings: ReadonlyMap<string, CellReading>;
}

/** The days of a commit: the columns of the place after it, and how the cells of each day are read. */
export interface PlannedBatch {
  /** True if nothing was committed before. */
  readonly isFirst: boolean;
  /** All columns of the place after the batch, by position. */
  readonly columns: readonly PlannedColumn[];
  readonly days: readonly PlannedDay[];
  readonly timezone: string | undefined;
  readonly table: Table;
}

/** The columns of a table before a batch. `isFirst`: nothing was committed to it. */
interface TableBefore extends Pick<TableState, 'columns'> {
  readonly isFirst: boolean;
}

/** Plans the columns of a batch once. Each day is read as if the days were committed one by one. */
export function planBatch(
  { columns: storedColumns, isFirst }: TableBefore,
  batch: readonly DayDownload[],
  rules: ColumnRules,
  table: Table = EVENTS,
): PlannedBatch {
  const columns = planColumns(storedColumns, incomingColumns(batch.flatMap(({ files }) => files)), rules, isFirst);
  const zone = zoneOf(rules.timezone);
  // The forms of each column in all days so far.
  const formsSoFar = new Map(columns.map(({ key, storedForms }) => [key, storedForms]));
  const days = batch.map((download): PlannedDay => {
    const incoming = incomingColumns(download.files);
    for (const [key, { forms }] of incoming) formsSoFar.set(key, (formsSoFar.get(key) ?? 0) | forms);
    const readings = columns.map((column) => {
      const typeSoFar = typeByCells(column.storedType, formsSoFar.get(column.key) ?? 0, zone);
      const isNullText = (column.fixedType ?? typeSoFar) === 'string';
      const forms = incoming.get(column.key)?.forms ?? 0;
      return [column.key, readingOf(column, forms, zone, isNullText)] as const;
    });
    return { download, incoming, readings: new Map(readings) };
  });
  return { isFirst, columns, days, timezone: rules.timezone, table };
}

/**
 * The reading of cells with these forms. They are read as their own type if its conversion to the column's type loses
 * no value. So a batch of days gives the same texts as each day alone.
 */
export function readingOf(
  { fixedType, type }: Pick<PlannedColumn, 'fixedType' | 'type'>,
  forms: CellForms,
  zone: Zone | undefined,
  isNullText: boolean,
): CellReading {
  const common = { forms, isNullText };
  if (!hasValues(forms, isNullText) || type === null) return { ...common, readAs: null, isClean: true };
  const cellType = fixedType ?? typeOf(forms, zone) ?? 'string';
  const readAs = canWiden(cellType, type, forms, zone) ? cellType : type;
  return { ...common, readAs, isClean: fits(codecOf(readAs, zone), forms) };
}

/** True if no cell of the batch goes to `_rescued`. */
export const rescuesNothing = ({ columns, days }: PlannedBatch): boolean =>
  columns.every(({ isRefused }) => !isRefused) &&
  days.every(({ readings }) => [...readings.values()].every(({ isClean }) => isClean));

/** Plans a snapshot of user profiles: columns and types join with those of the snapshot before. Both ids are texts. */
export const planSnapshot = (
  before: StoredProfiles | undefined,
  snapshot: DayDownload,
  rules: ColumnRules,
): PlannedBatch =>
  planBatch(
    { columns: before?.columns ?? USER_PROFILES.firstColumns, isFirst: before === undefined },
    [snapshot],
    {
      ...rules,
      columnTypes: new Map([...rules.columnTypes, [UNIFIED_ID, 'string'], [EXTERNAL_ID, 'string']]),
      pinned: undefined,
    },
    USER_PROFILES,
  );
