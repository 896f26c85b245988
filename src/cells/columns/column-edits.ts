import { type HeaderColumn, headerColumns, nfc } from '../csv/header.ts';
import { DROP, HASH, KEEP } from '../csv/row-writer.ts';
import type { HashKey } from './hash-key.ts';

/** The columns that are dropped or hashed before anything stores them, by their names in the header, in NFC. */
export interface ColumnEdits {
  readonly drop: ReadonlySet<string>;
  readonly hash: ReadonlySet<string>;
  readonly key: HashKey | undefined;
}

export const NO_EDITS: ColumnEdits = { drop: new Set(), hash: new Set(), key: undefined };

/** The effect of the edits on one header. */
export interface EditedHeader {
  /** For each column the action of the writer on its cells. */
  readonly actions: Uint8Array;
  /** By the same index: undefined for a dropped one. One of hashes is a string, whatever type the service fixes. */
  readonly columns: readonly (HeaderColumn | undefined)[];
  /** The names of the edits that the header has. */
  readonly foundNames: readonly string[];
}

export function editHeader(header: readonly string[], edits: ColumnEdits): EditedHeader {
  // An edit of `df_event_name` is one of `event_name` too, where that is the name of the same column.
  const actionOf = (name: string) => (edits.drop.has(name) ? DROP : edits.hash.has(name) ? HASH : KEEP);
  const names = headerColumns(header).map(({ name, source }) => nfc(actionOf(nfc(name)) === KEEP ? source : name));
  const actions = Uint8Array.from(names, actionOf);
  // As for all readers of the file, what is kept decides: without `df_event_name`, `event_name` is the event name.
  const kept = headerColumns(header.filter((_, i) => actions[i] !== DROP)).values();
  return {
    actions,
    columns: Array.from(actions, (action) => {
      const column = action === DROP ? undefined : kept.next().value;
      return column && action === HASH ? { ...column, declared: 'string' } : column;
    }),
    foundNames: [...new Set(names.filter((_, i) => actions[i] !== KEEP))],
  };
}

/** The names of the edits that no header had: they were misspelt, or the columns no longer exist. */
export const namesNotFound = ({ drop, hash }: ColumnEdits, foundNames: ReadonlySet<string>): string[] =>
  [...drop, ...hash].filter((name) => !foundNames.has(name));
