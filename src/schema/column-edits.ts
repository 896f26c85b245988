import { DROP, HASH, HASH_BUT_NULL, KEEP, RowEditor } from '../csv/row-editor.ts';
import { EVENT_NAME, eventNameIndex, ITEM_PREFIX } from './groups.ts';
import type { HashKey } from './hash-key.ts';

/** What becomes of columns before anything holds them (S47). Names are those of an export's header, letter by letter. */
export interface ColumnEdits {
  readonly drop: ReadonlySet<string>;
  readonly hash: ReadonlySet<string>;
  readonly key: HashKey | undefined;
  newEditor(): RowEditor;
}

/** Undefined where no column is listed. */
export function columnEdits(
  drop: readonly string[],
  hash: readonly string[],
  key: HashKey | undefined,
): ColumnEdits | undefined {
  if (drop.length === 0 && hash.length === 0) return undefined;
  return { drop: new Set(drop), hash: new Set(hash), key, newEditor: () => new RowEditor(key) };
}

/** What the lists do to one header. */
export interface EditedHeader {
  /** For each column what the editor does with its cells. */
  readonly actions: Uint8Array;
  /** The columns that stay, and which of them hold hashes. */
  readonly kept: readonly { readonly name: string; readonly isHashed: boolean }[];
  /** Names of the lists that the header has. */
  readonly listed: readonly string[];
}

export function editHeader(header: readonly string[], edits: ColumnEdits): EditedHeader {
  const eventName = eventNameIndex(header);
  // The event name is meant by `df_event_name` too, whichever of its names is there.
  const names = header.map((name, i) => (i === eventName && !isListed(name, edits) ? EVENT_NAME : name));
  const actions = Uint8Array.from(names, (name) => actionOf(name, edits));
  return {
    actions,
    kept: header.flatMap((name, i) => (actions[i] === DROP ? [] : [{ name, isHashed: actions[i] !== KEEP }])),
    listed: [...new Set(names.filter((_, i) => actions[i] !== KEEP))],
  };
}

const isListed = (name: string, { drop, hash }: ColumnEdits): boolean => drop.has(name) || hash.has(name);

function actionOf(name: string, { drop, hash }: ColumnEdits): number {
  if (drop.has(name)) return DROP;
  if (!hash.has(name)) return KEEP;
  // In an item column the text `null` is no value (S15).
  return name.startsWith(ITEM_PREFIX) ? HASH_BUT_NULL : HASH;
}

/** Names of the lists that no header had: they were misspelt, or the columns are gone. */
export const unlisted = ({ drop, hash }: ColumnEdits, listed: ReadonlySet<string>): string[] =>
  [...drop, ...hash].filter((name) => !listed.has(name));
