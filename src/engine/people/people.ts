// This folder: finds people in the rows of a place, for all targets.
//
// Rows know a person by `df_unified_id`, and by the company's own id in a column that the query names. Either may be
// hashed, in all rows or in some. For the id `A-1` in the column `member` these rows are selected:
//
//   1. `member` holds `A-1` or its hash: such a row names the unified id `u7`, or nobody
//   2. `df_unified_id` holds `u7` or its hash: the other rows of the person
//
// `findPeople` of `find-people.ts` is the way in, and does these steps. `id-column.ts` knows what cells of such a column
// may hold for an id, and `spelling.ts` which ids are nearly equal. A purge removes the rows by the same condition by
// which they were counted. A hash is always an HMAC under one of these keys:
//
// | key                     | what is hashed under it                                                         |
// | ----------------------- | ------------------------------------------------------------------------------- |
// | `hashKey` of the query  | cells of hashed columns. A place has one such key, for good                     |
// | of the suppression list | the unified id of each person on it, or its hash; with `hashKey` both             |

import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import type { PlaceState, TableState } from '../../table/place-state.ts';
import type { ByTable, StoredColumn, TableName } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';

/** A place that is searched. */
export interface SearchedPlace {
  readonly engine: Engine;
  /** The place as messages name it. */
  readonly placeName: string;
  readonly state: PlaceState;
  /** SQL after FROM that gives all rows of each table, with all columns; undefined if the place lacks the table. */
  readonly relations: ByTable<string | undefined>;
  /** Sentences about rows that cannot be searched. */
  readonly warnings: readonly string[];
}

/** A table of such a place. */
export interface SearchedTable extends Pick<SearchedPlace, 'engine' | 'placeName'> {
  readonly name: TableName;
  readonly state: TableState;
  readonly relation: string;
}

/** Unified ids by external id. */
export type UnifiedIdsById = ReadonlyMap<string, readonly string[]>;

/** The people to look for in a place: those of some ids, and everybody else on the suppression list. */
export interface PeopleQuery {
  /** External ids, each once, without placeholders. */
  readonly ids: readonly string[];
  /** Name in the export of the column that holds such ids. A place may lack it, or have its cells in `_rescued`. */
  readonly byColumn?: string | undefined;
  /** True to look the ids up in the table `user_profiles`, too, as exact text. */
  readonly searchesProfiles?: boolean | undefined;
  /** True to find `similarIdsById`, which takes most of the time of a search. */
  readonly searchesSimilarIds?: boolean | undefined;
  /** Unified ids of the ids that profiles, a mapping or other places have; those of this place's rows are added. */
  readonly knownUnifiedIdsById?: UnifiedIdsById | undefined;
  /** Key of the hashed columns of the place. It also tells that a hash and a value are one person. */
  readonly hashKey?: HashKey | undefined;
  readonly suppressionHmacs?: SuppressionHmacs | undefined;
}

/** The people of a suppression list, each by an HMAC of the `df_unified_id`, or of its hash, under a key. */
export interface SuppressionHmacs {
  readonly key: HashKey;
  readonly hmacs: readonly string[];
}

/** Who was found in a place. Every count but `suppressedOthers` is of the people of the ids alone. */
export interface PeopleFindings {
  /** The people's unified ids, as their rows have them, without placeholders. */
  readonly unifiedIds: ReadonlySet<string>;
  /** Number of people. With the key, one who is there both plain and hashed counts once. */
  readonly personCount: number;
  /** The requested ids that have a row, each with the number of rows that a purge removes for it. */
  readonly rowCountById: ReadonlyMap<string, number>;
  /** Of the ids that have a row: their unified ids, as these rows and the query have them. */
  readonly unifiedIdsById: UnifiedIdsById;
  /** Of ids without a row: those of the column that differ only in their spelling, or a hash of one. */
  readonly similarIdsById: ReadonlyMap<string, readonly string[]>;
  /** Number of rows, of events and of profiles, that a purge removes for the ids. */
  readonly rowCount: number;
  /** Number of those that name nobody: no suppression list can keep them away. */
  readonly namelessRowCount: number;
  /** The person ids of those whose rows also carry other ids in the column. */
  readonly sharedPersonIds: ReadonlySet<string>;
  /** The people of the suppression list who have rows, but for those of the ids. */
  readonly suppressedOthers: { readonly personCount: number; readonly rowCount: number };
  /** True if events have the column of the query, be it in `_rescued` alone. */
  readonly hasByColumn: boolean;
  /** The state of the place, whoever was found there. */
  readonly state: PlaceState;
  /** Those of the place. */
  readonly warnings: readonly string[];
}

/** The ids by each key, every one once, from all of these sources. */
export function joinIds(
  ...sources: readonly (Iterable<readonly [key: string, ids: readonly string[]]> | undefined)[]
): ReadonlyMap<string, readonly string[]> {
  const idsByKey = new Map<string, Set<string>>();
  for (const [key, ids] of sources.flatMap((source) => [...(source ?? [])])) {
    const joined = idsByKey.get(key) ?? new Set();
    for (const id of ids) joined.add(id);
    idsByKey.set(key, joined);
  }
  return new Map(Array.from(idsByKey, ([key, ids]) => [key, [...ids]]));
}

/** The columns that have this name in the export, whose Unicode form may be another; also those that the table lacks. */
export const columnsNamed = ({ columns }: TableState, name: string): StoredColumn[] =>
  columns.filter(({ source }) => nfc(source) === nfc(name));

/** True for a text that may be a hash of a value. */
export const looksHashed = (text: string): boolean => /^[0-9a-f]{64}$/.test(text);

/** The person id: it is equal for a unified id and its hash, so that both count as one person. */
export const personIdOf = (unifiedId: string, hashKey: HashKey | undefined): string =>
  hashKey === undefined || looksHashed(unifiedId) ? unifiedId : hashKey.hashOf(unifiedId);
