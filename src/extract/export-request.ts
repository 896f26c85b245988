import { addDays, type Day } from '../base/days.ts';
import { HashKey } from '../base/hash-key.ts';
import { sha256OfJson } from '../base/json.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { NameCondition, SourceConfig } from '../config/source.ts';
import type { ExportFilters } from '../service/export/protocol.ts';

/** The columns that hold hashes under one key in some rows of a place; without columns, rows of plain values. */
export interface HashedColumns {
  /** Names in the export, sorted. */
  readonly columns: readonly string[];
  /** Check value of the key; null if nothing is hashed. */
  readonly key_check: string | null;
}

export const NOTHING_HASHED: HashedColumns = { columns: [], key_check: null };

/** The settings that decide what happens to the columns. */
export type EditSettings = Pick<SourceConfig, 'columnsDrop' | 'columnsHash' | 'hashKey'>;

/** The columns that a configuration hashes. */
export function hashedColumnsOf({ columnsHash, hashKey }: EditSettings): HashedColumns {
  if (columnsHash.length === 0 || hashKey === undefined) return NOTHING_HASHED;
  return { columns: [...new Set(columnsHash)].sort(), key_check: new HashKey(hashKey).checkValue };
}

/** The columns that a configuration drops or hashes. */
export function editsOf({ columnsDrop, columnsHash, hashKey }: EditSettings): ColumnEdits {
  return { drop: new Set(columnsDrop), hash: new Set(columnsHash), key: hashKey && new HashKey(hashKey) };
}

/** The settings that decide what is requested from which service, and what happens to the columns. */
export type RequestSettings = ExportFilters & EditSettings & Pick<SourceConfig, 'serviceId'>;

/** SHA-256 (hex) of what an export request says beside its days. */
export interface RequestFingerprints {
  readonly service: string;
  /** Of the filters, the columns that are dropped or hashed, and the check value of the hash key. */
  readonly filters: string;
}

export function fingerprintsOf(source: RequestSettings): RequestFingerprints {
  const { columns, key_check } = hashedColumnsOf(source);
  const filters = [
    selection(source.events, source.eventsCondition),
    selection(source.properties, source.propertiesCondition),
    [...new Set(source.columnsDrop)].sort(),
    columns,
    key_check,
  ];
  return { service: serviceFingerprint(source), filters: sha256OfJson(filters) };
}

/** The hash by which the state identifies a service; `base_url` may change. */
export const serviceFingerprint = ({ serviceId }: Pick<SourceConfig, 'serviceId'>): string =>
  sha256OfJson(['dfinery', serviceId]);

/** True if a list filters anything: one without names does not, whatever its condition. */
export const isFilter = (names: readonly string[], condition: NameCondition): boolean =>
  condition !== 'all' && names.length > 0;

/** A form that is equal for filters with equal meaning: order, repetitions and names without effect do not count. */
function selection(names: readonly string[], condition: NameCondition): unknown {
  if (!isFilter(names, condition)) return ['all'];
  return [condition, [...new Set(names)].sort()];
}

export function filtersOf(source: ExportFilters): ExportFilters {
  const { events, eventsCondition, properties, propertiesCondition } = source;
  return { events, eventsCondition, properties, propertiesCondition };
}

/**
 * The `to_date` with which a day is requested. While it is not known whether an export includes its end, rows may come
 * with two days. A target keeps each once.
 */
export const toDateOf = (day: Day, includesEnd: boolean | undefined): Day =>
  includesEnd === true ? day : addDays(day, 1);
