import type { HashKey } from '../cells/columns/hash-key.ts';
import type { SuppressionMark } from '../cells/columns/row-filter.ts';
import type { RewriteResult } from './maintenance.ts';
import type { PlaceOptions } from './place-options.ts';

/**
 * The look-up of people in a place that was loaded, and their removal: `findPeople` of `sql/people.ts` is the one
 * look-up, and its condition is what is removed. Each call opens the place, and has closed it when it ends; where
 * nothing was loaded yet it throws a configuration failure (exit 2). A deletion calls them in this order: `copies`
 * and `find` of every place, for the plan; `tryPurge` of every place, before anybody is deleted at the service; `purge`
 * of one place after the other, once all are deleted there. `find` and `rows` show people what is stored about them.
 */
export interface People {
  /**
   * The people as they are now: a forecast, since their removal looks them up again. Read-only, except that a change
   * which a dead writer left half-way may be finished first.
   */
  find(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PeopleFound>;
  /**
   * The copies for readers that a purge of the place publishes anew. Throws a configuration failure for a place
   * that is never purged itself: such a copy. Absent for a target without copies (`withCopies`). Read-only.
   */
  copies?(place: string, options: PlaceOptions): Promise<readonly string[]>;
  /**
   * The rows of `events` that a purge would remove, as JSON objects without the columns that are null: other tables
   * hold nothing that these lack. All are of one version of the place, whatever is written meanwhile. Read-only.
   */
  rows(place: string, query: PeopleQuery, options: PlaceOptions): AsyncIterable<string>;
  /**
   * Runs all steps of a purge of these people except the one that puts the result in place, so that a purge that cannot
   * succeed is noticed before anything is deleted: it throws what `purge` would throw.
   */
  tryPurge(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PurgeTrial>;
  /**
   * Takes the place's lock, looks the people up in what is there now, calls `onFound`, and removes all their rows in
   * one commit. Where the commit decides between two writers and another writer was first, the purge begins again with
   * the look-up. After the commit it removes every byte of a value that only these rows had: from data, log,
   * checkpoint, statistics, write-ahead log, temporary folder, earlier versions of objects and published copies. What
   * it cannot reach is named in `unreached`. A kill leaves either all rows or none of them; the same purge, run again,
   * finishes the rest. If `onFound` throws, nothing is removed.
   */
  purge(place: string, query: PeopleQuery, options: PurgeOptions): Promise<PurgeResult>;
}

/** The people to look for, by a column or by a mapping, never by both. */
export interface PeopleQuery {
  /** External ids, each once, without placeholders. */
  readonly ids: readonly string[];
  /** Name in the export of the column that holds such ids. */
  readonly column?: string | undefined;
  /** Unified ids by external id. */
  readonly mapping?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Key of the columns that are hashed in the place; it also tells that a hash and a value are one person. */
  readonly hashKey?: HashKey | undefined;
  /** Everybody on a suppression list, in place of ids. */
  readonly suppressed?: SuppressedPeople | undefined;
}

/** The people of a suppression list: HMACs of a `df_unified_id`, or of `COLUMN U+0000 ID`, under a key. */
export interface SuppressedPeople {
  readonly key: HashKey;
  readonly entries: readonly { readonly hmac: string; readonly column?: string | undefined }[];
}

/** A `df_unified_id` in the form that rows of a place hold. */
export interface UnifiedId {
  readonly text: string;
  /** Check value of the key under which it is a hash; undefined for a plain one. */
  readonly hashKey: string | undefined;
}

export interface PeopleFound {
  /** Every form of the people's unified ids in the rows, without placeholders. */
  readonly unifiedIds: readonly UnifiedId[];
  /** Number of people; each counts once, whatever the number of forms. */
  readonly people: number;
  /** The requested ids that have a row, each with the number of rows that a purge removes for it. */
  readonly rowsOf: ReadonlyMap<string, number>;
  /** The ids among them whose rows name no unified id. */
  readonly idsWithoutUnifiedId: readonly string[];
  /** The ids without a row of which a trimmed or case-folded form has one. */
  readonly near: readonly string[];
  /** Number of rows of `events` that a purge removes. */
  readonly rows: number;
  /** Number of people whose rows also carry other ids in the column. */
  readonly shared: number;
  /** The name of the query's column as the place has it. */
  readonly column: string | undefined;
  /** Hash of the service whose data the place holds, as in the state; undefined if the state does not name it. */
  readonly service: string | undefined;
  /** The suppression list that the place was purged with. */
  readonly suppression: SuppressionMark | undefined;
  /** Sentences about rows that could not be searched. */
  readonly warnings: readonly string[];
}

export const NOBODY: PeopleFound = {
  unifiedIds: [],
  people: 0,
  rowsOf: new Map(),
  idsWithoutUnifiedId: [],
  near: [],
  rows: 0,
  shared: 0,
  column: undefined,
  service: undefined,
  suppression: undefined,
  warnings: [],
};

export interface PurgeTrial {
  readonly found: PeopleFound;
  /** Tables in the place, types and the like that are not this program's: they stay, and may name the people. */
  readonly foreignTables: readonly string[];
  /** Copies for readers of the original, if the place is or was a plain copy: it cannot replace them. */
  readonly copiesOfOriginal?: readonly string[];
}

export interface PurgeOptions extends PlaceOptions {
  /**
   * Called with those who are found, under the lock, before anything is changed: the ledger and the suppression list
   * get their lines here. Called again where a lost race makes the purge begin again. The mark that it returns is
   * stored in the state of the place, in the commit that removes the people; undefined: the stored one stays.
   */
  readonly onFound: (found: PeopleFound) => Promise<SuppressionMark | undefined>;
  /** Copies for readers that the place is to remove from its list. */
  readonly forgetCopies?: readonly string[] | undefined;
}

export interface PurgeResult extends RewriteResult {
  readonly found: PeopleFound;
  /** Sentences about what still holds the people, such as copies: with any of them the purge is not done. */
  readonly unreached: readonly string[];
  /** Folders of the place in which other runs have rows that are alive, or may be; absent if none can have any. */
  readonly inUse?: readonly string[];
}
