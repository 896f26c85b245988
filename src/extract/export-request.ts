import type { Day } from '../base/days.ts';
import { sha256 } from '../base/json.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { NameCondition, SourceConfig } from '../config/source.ts';
import type { ExportRequest, Filters } from '../service/export/protocol.ts';

/** The settings that decide what is requested from which service, and what happens to the columns. */
export type RequestSettings = Filters & HashSettings & Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'columnsDrop'>;

/** Hashes of an export request without its days (hex SHA-256). */
export interface RequestHashes {
  /** Hash of the service, the filters and the columns together. */
  readonly request: string;
  readonly service: string;
  /** Hash of the columns that are dropped or hashed, and of the key's check value; absent if there are none. */
  readonly columns?: string;
}

export function hashesOf(source: RequestSettings): RequestHashes {
  const service = serviceWords(source);
  const columns = canonicalEdits(source);
  return {
    service: serviceHash(source),
    request: sha256([...service, ...canonical(source), ...(columns === undefined ? [] : [columns])]),
    ...(columns !== undefined && { columns: sha256(columns) }),
  };
}

/** The hashes under the keys of the state, which calls that of the request `question`. */
export const stateHashes = ({ request, ...others }: RequestHashes) => ({ question: request, ...others });

const serviceWords = ({ baseUrl, serviceId }: Pick<SourceConfig, 'baseUrl' | 'serviceId'>) =>
  ['dfinery', baseUrl, serviceId] as const;

/** The hash by which the state identifies a service. */
export const serviceHash = (service: Pick<SourceConfig, 'baseUrl' | 'serviceId'>): string =>
  sha256(serviceWords(service));

/** The column lists, which change the rows that the service sends; undefined if there are none. */
function canonicalEdits(source: RequestSettings): unknown {
  const dropped = [...new Set(source.columnsDrop)].sort();
  const { columns, key_check } = hashedColumns(source);
  return dropped.length === 0 && columns.length === 0 ? undefined : ['columns', dropped, columns, key_check];
}

/** A form that is equal for filters with equal meaning: order, repetitions and names without effect do not count. */
function canonical(filters: Filters): unknown[] {
  return [
    selection(filters.events, filters.eventsCondition),
    selection(filters.properties, filters.propertiesCondition),
  ];
}

function selection(names: readonly string[], condition: NameCondition): unknown {
  if (condition === 'all' || names.length === 0) return ['all'];
  return [condition, [...new Set(names)].sort()];
}

export function filtersOf(source: Filters): Filters {
  const { events, eventsCondition, properties, propertiesCondition } = source;
  return { events, eventsCondition, properties, propertiesCondition };
}

/** Hash of one request with its days: equal requests get equal answers, apart from when they are sent. */
export function requestKey(request: ExportRequest): string {
  return sha256([request.from, request.to, ...canonical(request)]);
}

/** The days of an export for messages: `2026-01-01` or `2026-01-01..2026-01-03`. */
export const exportName = ({ from, to }: { readonly from: Day; readonly to: Day }): string =>
  from === to ? from : `${from}..${to}`;

/** The columns that hold hashes under one key in some rows of a target; without columns, rows of plain values. */
export interface HashedColumns {
  /** Names in the export, sorted. */
  readonly columns: readonly string[];
  /** Check value of the key; null if nothing is hashed. */
  readonly key_check: string | null;
}

export type HashSettings = Pick<SourceConfig, 'columnsHash' | 'hashKey'>;

const PLAIN: HashedColumns = { columns: [], key_check: null };

/** The columns that a configuration hashes. */
export function hashedColumns({ columnsHash, hashKey }: HashSettings): HashedColumns {
  if (columnsHash.length === 0 || hashKey === undefined) return PLAIN;
  return { columns: [...new Set(columnsHash)].sort(), key_check: new HashKey(hashKey).check };
}

/** The hashed columns of earlier rows of a target, then those of new rows; undefined if none was ever hashed. */
export function hashedAfter(
  state: { readonly hashed?: readonly HashedColumns[] } | undefined,
  settings: HashSettings,
): HashedColumns[] | undefined {
  const before = state === undefined ? [] : (state.hashed ?? [PLAIN]);
  const now = hashedColumns(settings);
  const all = [...before.filter((hashing) => !isSame(hashing, now)), now];
  return all.some(({ columns }) => columns.length > 0) ? all : undefined;
}

const isSame = (a: HashedColumns, b: HashedColumns): boolean =>
  a.key_check === b.key_check && a.columns.join('\0') === b.columns.join('\0');
