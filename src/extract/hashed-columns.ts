import type { SourceConfig } from '../config/source.ts';
import { HashKey } from '../schema/hash-key.ts';

/** Columns that hold hashes under one key, of some rows of a target (S47). No column: those rows are as they came. */
export interface HashedColumns {
  /** Names in the export, sorted. */
  readonly columns: readonly string[];
  /** Tells the key; null where nothing is hashed. */
  readonly key_check: string | null;
}

export type HashSettings = Pick<SourceConfig, 'columnsHash' | 'hashKey'>;

const PLAIN: HashedColumns = { columns: [], key_check: null };

/** What a configuration hashes. */
export function hashedColumns({ columnsHash, hashKey }: HashSettings): HashedColumns {
  if (columnsHash.length === 0 || hashKey === undefined) return PLAIN;
  return { columns: [...new Set(columnsHash)].sort(), key_check: new HashKey(hashKey).check };
}

/**
 * What a target holds of hashed columns once windows of these settings are in it: that of earlier rows, then theirs. Undefined
 * where nothing ever was hashed.
 */
export function hashedAfter(
  state: { readonly hashed?: readonly HashedColumns[] } | undefined,
  settings: HashSettings,
): HashedColumns[] | undefined {
  const before = state === undefined ? [] : (state.hashed ?? [PLAIN]);
  const now = hashedColumns(settings);
  const all = [...before.filter((form) => !isSame(form, now)), now];
  return all.some(({ columns }) => columns.length > 0) ? all : undefined;
}

const isSame = (a: HashedColumns, b: HashedColumns): boolean =>
  a.key_check === b.key_check && a.columns.join('\0') === b.columns.join('\0');
