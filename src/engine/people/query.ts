// This folder: finds people in the rows of a place, for all targets.
//
// Rows know a person by `df_unified_id`, and by the company's own id in a column that the query names. Either may be
// hashed, in all rows or in some. `find.ts` fills a table of stored texts: those that a cell may hold for an id. A
// condition in SQL selects the rows with such a cell. A purge removes the rows of that condition, so it removes what
// was found. A key is always one of HMAC.

import type { HashKey } from '../../cells/columns/hash-key.ts';

/** Unified ids by external id. */
export type PeopleById = ReadonlyMap<string, readonly string[]>;

/** The people to look for in a place: those of some ids, and everybody else on the suppression list. */
export interface PeopleQuery {
  /** External ids, each once, without placeholders. */
  readonly ids: readonly string[];
  /** Name in the export of the column that holds such ids; a place may lack it. */
  readonly column?: string | undefined;
  /** True to look the ids up in the table `user_profiles`, too, as exact text. */
  readonly searchesProfiles?: boolean | undefined;
  /** The people of the ids as they were found outside of the place. */
  readonly knownPeople?: PeopleById | undefined;
  /** Key of the hashed columns of the place. It also tells that a hash and a value are one person. */
  readonly hashKey?: HashKey | undefined;
  readonly suppressed?: SuppressedPeople | undefined;
}

/** The people of a suppression list: an HMAC of each `df_unified_id`, or of its hash, under a key. */
export interface SuppressedPeople {
  readonly key: HashKey;
  readonly hmacs: readonly string[];
}

/** A `df_unified_id` as rows of a place hold it. */
export interface UnifiedId {
  readonly text: string;
  /** Check value of the key under which it is a hash; undefined for a plain one. */
  readonly keyCheck: string | undefined;
}

/** Who was found in a place. Every count but `suppressedOthers` is of the people of the ids alone. */
export interface PeopleFound {
  /** The people's unified ids as the rows hold them, plain and hashed, without placeholders. */
  readonly unifiedIds: readonly UnifiedId[];
  /** Number of people; each counts once, whether plain, hashed or both. */
  readonly personCount: number;
  /** The requested ids that have a row, each with the number of rows that a purge removes for it. */
  readonly rowsOf: ReadonlyMap<string, number>;
  /** The unified ids of the rows whose column, or whose external id, is an id. */
  readonly peopleOf: PeopleById;
  /** Of ids without a row: a text of the column that differs only in its spelling. */
  readonly alikeTexts: ReadonlyMap<string, string>;
  /** Number of rows, of events and of profiles, that a purge removes for the ids. */
  readonly rowCount: number;
  /** The people whose rows also carry other ids in the column. */
  readonly peopleWithOtherIds: ReadonlySet<string>;
  /** The people of the suppression list who have rows, but for those of the ids. */
  readonly suppressedOthers: { readonly personCount: number; readonly rowCount: number };
  /** What the look-up tells of the place, whoever was found there. */
  readonly place: {
    /** The name of the query's column as the place has it; undefined if it lacks it. */
    readonly column: string | undefined;
    /** True if the ids were looked up in a table `user_profiles`. */
    readonly searchedProfiles: boolean;
    /** Hash of the service whose data the place holds; undefined if its state does not name it. */
    readonly service: string | undefined;
    /** Number of people on the suppression list with which the place was purged last. */
    readonly suppressionLength: number;
  };
  /** Sentences about rows that could not be searched. */
  readonly warnings: readonly string[];
}

/** The people of each id, from all of these sources. */
export function joinPeople(...sources: readonly (PeopleById | undefined)[]): PeopleById {
  const peopleOf = new Map<string, readonly string[]>();
  for (const source of sources) {
    for (const [id, texts] of source ?? []) peopleOf.set(id, [...new Set([...(peopleOf.get(id) ?? []), ...texts])]);
  }
  return peopleOf;
}

const HASHED_VALUE = /^[0-9a-f]{64}$/;

/** True for a text that may be a hash of a value. */
export const isHash = (text: string): boolean => HASHED_VALUE.test(text);

/** A text that is equal for a unified id and its hash, so that both count as one person. */
export const personOf = (text: string, hashKey: HashKey | undefined): string =>
  hashKey === undefined || isHash(text) ? text : hashKey.hashOf(text);
