import { CORRECTION_DATETIME, SERVER_DATETIME } from '../cells/columns/groups.ts';
import { sqlWall, type Zone } from '../cells/types/zone.ts';

/** SQL of a column, by its name in the export. */
type ColumnSql = (source: string) => string;

/** When the event occurred, or if that is unknown when it arrived: hours in `report`, times and days in `models`. */
export const occurredAt = (column: ColumnSql): string =>
  `coalesce(${column(CORRECTION_DATETIME)}, ${column(SERVER_DATETIME)})`;

/** The time that a clock of the place's zone shows at a stored time; without a zone it is stored as it was written. */
export const localTime = (time: string, zone: Zone | undefined): string =>
  zone === undefined ? time : sqlWall(time, zone);
