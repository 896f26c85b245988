import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import { type HeaderColumn, headerColumns } from '../csv/header.ts';

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
export type KeptColumns = readonly (KeptColumn | undefined)[];

/** The effect of the edits on one header. `editedNames`: those of the edits that it has. */
export function editHeader(
  header: readonly string[],
  { drop, hash }: ColumnEdits,
): { readonly columns: KeptColumns; readonly editedNames: readonly string[] } {
  const isEdited = (name: string) => drop.has(name) || hash.has(name);
  // An edit of `df_event_name` is one of `event_name` too, where that is the name of the same column.
  const editNameOf = ({ headerName, source }: HeaderColumn) => nfc(isEdited(nfc(headerName)) ? headerName : source);
  const columnsOfHeader = headerColumns(header);
  const columns = columnsOfHeader.map((column): KeptColumn | undefined => {
    const editName = editNameOf(column);
    if (drop.has(editName)) return undefined;
    return hash.has(editName) ? { ...column, declaredType: 'string', isHashed: true } : { ...column, isHashed: false };
  });
  return { columns, editedNames: [...new Set(columnsOfHeader.map(editNameOf).filter(isEdited))] };
}
