import type { DataFile, NewFile } from '../files/data-file.ts';
import { type FileNote, type LoggedColumns, notedOf, noteFrom, noteOf } from '../files/log-entries.ts';
import { unusableError } from './contents.ts';
import type { CatalogFile } from './format/snapshot.ts';

/** The note of a file for the catalog, which has no columns for these facts. */
export function catalogNoteOf(file: NewFile, columns: LoggedColumns): string {
  const nulls = [...file.columns].map((name) => [name, columns.get(name)?.absent ?? file.rows]);
  const note: FileNote = { ...noteOf(file), nulls: Object.fromEntries(nulls) };
  return JSON.stringify(note);
}

/** The data file of a row of the catalog, which messages call `catalog`. Throws UserError for a damaged note. */
export function dataFileOf(
  { table, path, rows, bytes, date = null }: CatalogFile,
  text: string,
  catalog: string,
): DataFile {
  const failed = (why: string) => unusableError(catalog, `its note of ${path} is damaged: ${why}`);
  const note = noteFrom(text, failed);
  if (note.nulls === undefined) throw failed('it has no nulls');
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
