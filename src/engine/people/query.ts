import type { HashKey } from '../../cells/columns/hash-key.ts';
import type { SuppressionVersion } from '../../cells/columns/row-filter.ts';

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
  readonly suppression: SuppressionVersion | undefined;
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
