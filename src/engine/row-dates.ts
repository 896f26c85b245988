import { CORRECTION_DATETIME, SERVER_DATETIME } from '../cells/columns/groups.ts';
import { asText } from '../cells/types/sql.ts';
import { sqlWall, type Zone } from '../cells/types/zone.ts';
import type { StoredColumn } from '../table/columns.ts';
import { columnOfSource } from './views.ts';

// The times and dates of a row, which may differ: which column each is read from, and by which clock.
// docs/architecture.md, "The dates of a row", says which of them answers which question. The dates of an export are in
// its receipt.

/** SQL of a column, by its name in the export. */
type ColumnSql = (source: string) => string;

/**
 * The columns whose text has the date of the partition, the first that holds one:
 * `src/targets/files/partition-date.ts`.
 */
export const PARTITION_SOURCES = [SERVER_DATETIME, CORRECTION_DATETIME] as const;

/** When the event arrived at the service: events of a day and the newest event in `report`. */
export const arrivedAt = (column: ColumnSql): string => column(SERVER_DATETIME);

/** When the event occurred, or if that is unknown when it arrived: hours in `report`, times and days in `models`. */
export const occurredAt = (column: ColumnSql): string =>
  `coalesce(${column(CORRECTION_DATETIME)}, ${column(SERVER_DATETIME)})`;

/** The time that a clock of the target's zone shows at a stored time; without a zone it is stored as it was written. */
export const localTime = (time: string, zone: Zone | undefined): string =>
  zone === undefined ? time : sqlWall(time, zone);

/**
 * The local date (text) by which a row that is read again is known: of its arrival, or if that is unknown of its
 * occurrence; without a zone as the export writes it. Older files may have another type of the columns: each value is
 * asked for its own.
 */
export function rereadDate(columns: readonly StoredColumn[], zone: Zone | undefined): string {
  const local = (source: string) => {
    const name = columnOfSource(columns, source);
    if (zone === undefined) return asText(name);
    const text = asText(localTime(`TRY_CAST(${name} AS TIMESTAMPTZ)`, zone));
    return `CASE WHEN typeof(${name}) = 'TIMESTAMP WITH TIME ZONE' THEN ${text} ELSE ${asText(name)} END`;
  };
  return `coalesce(left(coalesce(${local(SERVER_DATETIME)}, ${local(CORRECTION_DATETIME)}), 10), '')`;
}
