import type { ColumnCodec } from '../../../types/codec.ts';
import { fitsWholly, NULL_TEXT } from '../../../types/evidence.ts';
import { TYPES } from '../../../types/index.ts';
import { COLUMN_TYPES, type ColumnType } from '../../../types/type.ts';
import { Zone } from '../../../types/zone.ts';
import { type RecordPlan, UNFIT } from './record-plan.ts';

/** How a column's cells are written; decided once a file, from what its every cell was seen to be. assembly/csv.ts knows the first five. */
export const SKIP = 0;
/** Any text. */
export const TEXT = 1;
/** Numbers that are JSON as they stand. */
export const COPY = 2;
/** Datetimes that all fit, of wall-clock time. */
const DATETIME = 3;
/** Booleans that all fit. */
const BOOLEAN = 4;
/** Other cells that all fit, or are absent. */
const CLEAN = 5;
/** Cells that must be looked at one by one. */
export const CHECKED = 6;
/** Instants are wanted and no zone is configured: only cells with a zone of their own fit. */
export const ZONED_ONLY = 7;

/** How each column of a file is written into one stream. */
export interface CellPlan {
  readonly modes: Uint8Array;
  readonly codecs: readonly (ColumnCodec | undefined)[];
  readonly zones: readonly (Zone | undefined)[];
}

/** `evidence`: per column, over every cell of the file. */
export function planCells(plan: RecordPlan, evidence: readonly number[], timezone: string | undefined): CellPlan {
  const zone = timezone === undefined ? undefined : new Zone(timezone);
  const utc = new Zone('UTC');
  const types = Array.from(plan.kinds, (kind): ColumnType | undefined => COLUMN_TYPES[kind - 1]);
  const modes = types.map((type, i) =>
    plan.kinds[i] === UNFIT ? CHECKED : modeOf(type, evidence[i], plan.zoned[i] === 1, zone),
  );
  return {
    modes: Uint8Array.from(modes),
    codecs: types.map((type) => type && TYPES[type]),
    zones: modes.map((mode, i) => (mode === ZONED_ONLY ? utc : plan.zoned[i] === 1 ? zone : undefined)),
  };
}

/** Of columns without `null` in which every cell fits. */
const FILLED_MODES: ReadonlyMap<ColumnType, number> = new Map([
  ['long', COPY],
  ['double', COPY],
  ['date', TEXT],
  ['boolean', BOOLEAN],
]);

function modeOf(type: ColumnType | undefined, evidence: number, zoned: boolean, zone: Zone | undefined): number {
  if (type === undefined) return SKIP;
  if (type === 'string') return TEXT;
  // Only a datetime is zoned.
  if (zoned && zone === undefined) return ZONED_ONLY;
  if (!fitsWholly(evidence, type, zoned)) return CHECKED;
  // Stryker disable ConditionalExpression,EqualityOperator: the modes of what fits differ in speed alone
  if ((evidence & NULL_TEXT) !== 0) return CLEAN;
  if (type === 'datetime') return zoned ? CLEAN : DATETIME;
  // Stryker restore ConditionalExpression,EqualityOperator
  return FILLED_MODES.get(type) ?? CLEAN;
}
