import type { HashKey } from '../../cells/columns/hash-key.ts';

/** The people to look for in a place: those of some ids, and everybody else on the suppression list. */
export interface PeopleQuery {
  /** External ids, each once, without placeholders. */
  readonly ids: readonly string[];
  /** Name in the export of the column that holds such ids; a place may lack it. */
  readonly column?: string | undefined;
  /** True if the table of profiles, where there is one, tells whose the ids are. They are compared as exact text. */
  readonly asksProfiles?: boolean | undefined;
  /** Unified ids by external id, as they were found outside of the place. */
  readonly people?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Key of the columns that are hashed in the place; it also tells that a hash and a value are one person. */
  readonly hashKey?: HashKey | undefined;
  readonly suppressed?: SuppressedPeople | undefined;
}

/** The people of a suppression list: an HMAC of each `df_unified_id`, or of its hash, under a key. */
export interface SuppressedPeople {
  readonly key: HashKey;
  readonly hmacs: readonly string[];
}

/** A `df_unified_id` in the form that rows of a place hold. */
export interface UnifiedId {
  readonly text: string;
  /** Check value of the key under which it is a hash; undefined for a plain one. */
  readonly hashKey: string | undefined;
}

/** Who was found in a place. Every count but `others` is of the people of the ids alone. */
export interface PeopleFound {
  /** Every form of the people's unified ids in the rows, without placeholders. */
  readonly unifiedIds: readonly UnifiedId[];
  /** Number of people; each counts once, whatever the number of forms. */
  readonly people: number;
  /** The requested ids that have a row, each with the number of rows that a purge removes for it. */
  readonly rowsOf: ReadonlyMap<string, number>;
  /** The unified ids of the rows whose column, or whose external id, is an id. */
  readonly peopleOf: ReadonlyMap<string, readonly string[]>;
  /** Of ids that the column does not hold: a text that it holds, and that differs only in its spelling. */
  readonly near: ReadonlyMap<string, string>;
  /** Number of rows, of events and of profiles, that a purge removes for the ids. */
  readonly rows: number;
  /** Number of people whose rows also carry other ids in the column. */
  readonly shared: number;
  /** The people of the suppression list who have rows, but for those of the ids. */
  readonly others: { readonly people: number; readonly rows: number };
  /** True if a table of profiles was asked whose the ids are. */
  readonly hasProfiles: boolean;
  /** The name of the query's column as the place has it; undefined if it lacks it. */
  readonly column: string | undefined;
  /** Hash of the service whose data the place holds, as in the state; undefined if the state does not name it. */
  readonly service: string | undefined;
  /** Number of people on the suppression list with which the place was purged last. */
  readonly suppressionLength: number;
  /** Sentences about rows that could not be searched. */
  readonly warnings: readonly string[];
}

export const NOBODY: PeopleFound = {
  unifiedIds: [],
  people: 0,
  rowsOf: new Map(),
  peopleOf: new Map(),
  near: new Map(),
  rows: 0,
  shared: 0,
  others: { people: 0, rows: 0 },
  hasProfiles: false,
  column: undefined,
  service: undefined,
  suppressionLength: 0,
  warnings: [],
};
