import { HashKey } from '../base/hash-key.ts';
import { sha256OfJson } from '../base/json.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { ScannerOptions, Suppression } from '../cells/columns/export-scanner.ts';
import type { NameCondition, SourceConfig } from '../config/source.ts';
import type { ExportFilters } from '../service/export/export-service.ts';

/** The configuration of the source, without its access to the service: a day from a file needs none. */
export type ExportSettings = Omit<SourceConfig, 'baseUrl' | 'exportToken'>;

export function editsOf(settings: Pick<ExportSettings, 'columnsDrop' | 'columnsHash' | 'hashKey'>): ColumnEdits {
  const { columnsDrop, columnsHash, hashKey } = settings;
  return { drop: new Set(columnsDrop), hash: new Set(columnsHash), hashKey: hashKey && new HashKey(hashKey) };
}

/** True if a column that is not required stays in the exports, as far as the configuration says it. */
export function keepsColumn(name: string, settings: ExportSettings): boolean {
  const { properties, propertiesCondition: condition, columnsDrop } = settings;
  const isExported = !filtersAnything(properties, condition) || properties.includes(name) === (condition === 'include');
  return isExported && !columnsDrop.includes(name);
}

export const scannerOptionsOf = (settings: ExportSettings, suppression?: Suppression): ScannerOptions => ({
  timezone: settings.timezone,
  needsEventColumns: true,
  edits: editsOf(settings),
  suppression,
});

/** Columns that hold hashes, at least in some rows. */
export interface HashedColumns {
  /** Names in the export, sorted. */
  readonly columns: readonly string[];
  /** Check value of the key. */
  readonly key_check: string;
}

/** By what a state knows the settings of its last run again. Hashes are SHA-256 (hex). */
export interface SettingsFingerprints {
  readonly serviceHash: string;
  /** Hash of the filters, the columns that are dropped or hashed, and the check value of the hash key. */
  readonly filtersHash: string;
  /** Undefined if nothing is hashed. */
  readonly hashedColumns: HashedColumns | undefined;
}

export const fingerprintsOf = (settings: ExportSettings): SettingsFingerprints =>
  fingerprintsWith(settings, [
    canonicalFilter(settings.events, settings.eventsCondition),
    canonicalFilter(settings.properties, settings.propertiesCondition),
  ]);

/** Those of the profiles, which have no filters. */
export const profileFingerprintsOf = (settings: ExportSettings): SettingsFingerprints => fingerprintsWith(settings, []);

function fingerprintsWith(settings: ExportSettings, canonicalFilters: readonly unknown[]): SettingsFingerprints {
  const { columnsDrop, columnsHash, hashKey } = settings;
  const hashesAny = columnsHash.length > 0 && hashKey !== undefined;
  const hashedColumns = hashesAny
    ? { columns: canonicalNames(columnsHash), key_check: new HashKey(hashKey).keyCheck }
    : undefined;
  const filtersHash = sha256OfJson([...canonicalFilters, canonicalNames(columnsDrop), hashedColumns ?? null]);
  return { serviceHash: serviceFingerprint(settings), filtersHash, hashedColumns };
}

/** Names without repetitions, in an order that does not depend on theirs. */
export const canonicalNames = (names: readonly string[]): readonly string[] => [...new Set(names)].sort();

/** The hash by which the state identifies a service; `base_url` may change. */
export const serviceFingerprint = ({ serviceId }: Pick<SourceConfig, 'serviceId'>): string =>
  sha256OfJson(['dfinery', serviceId]);

/** A form that is equal for filters with equal meaning: order, repetitions and names without effect do not count. */
const canonicalFilter = (names: readonly string[], condition: NameCondition): readonly unknown[] =>
  filtersAnything(names, condition) ? [condition, canonicalNames(names)] : ['all'];

/** True if a list filters anything: one without names does not, whatever its condition. */
export const filtersAnything = (names: readonly string[], condition: NameCondition): boolean =>
  condition !== 'all' && names.length > 0;

/** The filters alone, as a request has them. */
export function filtersOf(settings: ExportFilters): ExportFilters {
  const { events, eventsCondition, properties, propertiesCondition } = settings;
  return { events, eventsCondition, properties, propertiesCondition };
}
