import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import { type HeaderColumn, headerColumns, settingNames } from '../header.ts';

/** The columns that are dropped or hashed before anything stores them, by their names in the header, in NFC. */
export interface ColumnEdits {
  readonly drop: ReadonlySet<string>;
  readonly hash: ReadonlySet<string>;
  /** Undefined if nothing is hashed. */
  readonly hashKey: HashKey | undefined;
}

export const NO_EDITS: ColumnEdits = { drop: new Set(), hash: new Set(), hashKey: undefined };

export interface KeptColumn extends HeaderColumn {
  /** Each value but `null` is replaced by its hash: then the column is a string, whatever its name. */
  readonly isHashed: boolean;
}

/** By column of the header; undefined for a dropped one. */
export type EditedColumns = readonly (KeptColumn | undefined)[];

/** The effect of the edits on one header. `editedNames`: those of the edits that it has. */
export function editHeader(
  header: readonly string[],
  { drop, hash }: ColumnEdits,
): { readonly columns: EditedColumns; readonly editedNames: readonly string[] } {
  const editedNames = new Set<string>();
  const columnsBefore = headerColumns(header);
  const columns = columnsBefore.map((column): KeptColumn | undefined => {
    const names = settingNames(nfc(column.source), columnsBefore).filter((name) => drop.has(name) || hash.has(name));
    for (const name of names) editedNames.add(name);
    if (names.some((name) => drop.has(name))) return undefined;
    const isHashed = names.length > 0;
    return isHashed ? { ...column, declaredType: 'string', isHashed } : { ...column, isHashed };
  });
  return { columns, editedNames: [...editedNames] };
}
