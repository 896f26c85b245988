import { CORRECTION_DATETIME, SERVER_DATETIME } from '../cells/columns/groups.ts';
import type { Zone } from '../cells/types/zone.ts';
import { sqlWall } from '../cells/types/zone-sql.ts';

/** SQL of a column, by its name in the export. */
type ColumnSql = (source: string) => string;

/** When the event occurred, or if that is unknown when it arrived: hours in `report`, times and days in `models`. */
export const occurredAt = (column: ColumnSql): string =>
  `coalesce(${column(CORRECTION_DATETIME)}, ${column(SERVER_DATETIME)})`;

/**
 * The times between which the changes of a zone are known to SQL; for others it has the nearest offset. Events are
 * younger, unless the clock of a device is wrong. The changes are at most 70 KB of SQL, but for zones that change with
 * Ramadan (up to 400 KB).
 */
const LOCAL_TIMES = ['1970-01-01T00:00:00', '2100-01-01T00:00:00'] as const;

/** The time that a clock of the place's zone shows at a stored time; without a zone it is stored as it was written. */
export const localTime = (time: string, zone: Zone | undefined): string =>
  zone === undefined ? time : sqlWall(time, zone.within(...LOCAL_TIMES));
