import { HashKey } from '../cells/columns/hash-key.ts';
import type { SourceConfig } from '../config/source.ts';

/** The columns that hold hashes under one key in some rows of a place; without columns, rows of plain values. */
export interface HashedColumns {
  /** Names in the export, sorted. */
  readonly columns: readonly string[];
  /** Check value of the key; null if nothing is hashed. */
  readonly key_check: string | null;
}

/** The settings that say what is hashed. */
export type HashSettings = Pick<SourceConfig, 'columnsHash' | 'hashKey'>;

export const NOTHING_HASHED: HashedColumns = { columns: [], key_check: null };

/** The columns that a configuration hashes. */
export function hashedColumnsOf({ columnsHash, hashKey }: HashSettings): HashedColumns {
  if (columnsHash.length === 0 || hashKey === undefined) return NOTHING_HASHED;
  return { columns: [...new Set(columnsHash)].sort(), key_check: new HashKey(hashKey).check };
}

/** The hashed columns of earlier rows of a place, then those of new rows; undefined if none was ever hashed. */
export function hashedAfter(
  state: { readonly hashed?: readonly HashedColumns[] } | undefined,
  now: HashedColumns,
): readonly HashedColumns[] | undefined {
  const before = state === undefined ? [] : (state.hashed ?? [NOTHING_HASHED]);
  const hashings = [...before.filter((hashing) => !isSame(hashing, now)), now];
  return hashings.some(({ columns }) => columns.length > 0) ? hashings : undefined;
}

const isSame = (a: HashedColumns, b: HashedColumns): boolean =>
  a.key_check === b.key_check && a.columns.join('\0') === b.columns.join('\0');
