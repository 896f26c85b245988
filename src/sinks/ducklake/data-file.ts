import { isObject, jsonOf } from '../../base/json.ts';
import type { DataFile, NewFile } from '../files/data-file.ts';
import { type FileNote, type LoggedColumns, notedOf, noteOf } from '../files/log-entries.ts';
import { type CatalogFile, unusableError } from './contents.ts';

/** The facts about a file for which the catalog has no column. */
interface CatalogNote extends FileNote {
  /** Number of rows without a value by column: every column that the file has, except its date. */
  readonly nulls: Readonly<Record<string, number>>;
}

export function catalogNoteOf(file: NewFile, columns: LoggedColumns): string {
  const nulls = [...file.columns].map((name) => [name, columns.get(name)?.absent ?? file.rows]);
  const note: CatalogNote = { ...noteOf(file), nulls: Object.fromEntries(nulls) };
  return JSON.stringify(note);
}

/** The data file of a row of the catalog, which messages call `catalog`. Throws UserError for a damaged note. */
export function dataFileOf(
  { table, path, rows, bytes, date = null, note: text }: CatalogFile,
  catalog: string,
): DataFile {
  const note = jsonOf(text ?? '') as CatalogNote | null | undefined;
  if (typeof note?.id !== 'string' || !isObject(note.nulls) || !isObject(note.windows ?? {}))
    throw unusableError(catalog, `its note of ${path} is damaged`);
  const nulls = new Map(Object.entries(note.nulls));
  return { table, path, date, rows, bytes, columns: new Set(nulls.keys()), nulls, ...notedOf(note) };
}

/** A data file for a file that another program changed, which a change can remove. */
export const changedFile = ({ table, path, rows, bytes, date = null }: CatalogFile): DataFile => ({
  table,
  path,
  id: path,
  date,
  rows,
  bytes,
  sha256: undefined,
  columns: new Set(),
  windows: new Map(),
  isSorted: false,
});
