import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import valid from '../../../schemas/manifest.validator';
import { codeOf, configError, internalError } from '../../base/errors.ts';
import { isObject, jsonOf } from '../../base/json.ts';
import { firstProblem } from '../../base/validator.ts';
import { VERSION } from '../../base/version.ts';
import type { ExportState } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { isTableName, type StoredColumn, TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { DataFile } from '../files/data-file.ts';
import { type FileNote, notedOf, noteOf } from '../files/log-entries.ts';
import { NO_DATE, PARTITION_FOLDER } from '../files/parquet-file.ts';
import type { Snapshot } from '../files/table-log.ts';

/** The folders and files of this program beside the datasets; absolute, as messages name them. */
export function pathsIn(folder: string) {
  const root = resolve(folder);
  const own = join(root, '_dfinery');
  return {
    root,
    own,
    manifest: join(own, 'manifest.json'),
    journal: join(own, 'journal.json'),
    /** A DuckDB file without tables; the process that has it open is the writer. */
    lock: join(own, 'lock'),
    temporary: join(own, 'tmp'),
  };
}

export type FolderPaths = Readonly<ReturnType<typeof pathsIn>>;

interface ManifestFile extends FileNote {
  /** Path from the folder, with `/`: `events/event_date=2026-01-02/data_0.parquet`. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
}

/** The only truth about a folder of datasets, replaced as a whole. Schema: schemas/manifest.json. */
export interface Manifest {
  readonly v: 1;
  readonly writer: string;
  readonly timezone: string | null;
  readonly tables: readonly TableName[];
  readonly columns: readonly StoredColumn[];
  readonly receipts: readonly StoredReceipt[];
  readonly event_names: readonly string[];
  readonly cursor: ExportState | null;
  readonly changes: readonly ColumnChange[];
  readonly files: readonly ManifestFile[];
}

const LIVE_PATH = new RegExp(`^(${TABLES.join('|')})/${PARTITION_FOLDER}/data_0\\.parquet$`);

/** True for the path of a file that can be part of a dataset. */
export const isLivePath = (path: unknown): path is string => typeof path === 'string' && LIVE_PATH.test(path);

export function manifestOf({ state, files }: Snapshot): Manifest {
  const { eventNames, exportState: cursor, ...rest } = state;
  return {
    v: 1,
    writer: VERSION,
    ...rest,
    event_names: eventNames,
    cursor,
    files: files.map((file) => ({ path: file.path, rows: file.rows, bytes: file.bytes, ...noteOf(file) })),
  };
}

export function snapshotOf(manifest: Manifest): Snapshot {
  const { timezone, tables, columns, receipts, event_names: eventNames, cursor: exportState, changes } = manifest;
  const names: ReadonlySet<string> = new Set([...OWN_COLUMNS, ...typedColumns(columns).map(({ name }) => name)]);
  return {
    state: { timezone, tables, columns, receipts, eventNames, exportState, changes },
    files: manifest.files.map((file) => dataFileOf(file, names)),
    outdated: new Set(),
  };
}

function dataFileOf(file: ManifestFile, names: ReadonlySet<string>): DataFile {
  const { path, rows, bytes } = file;
  const [, table, date] = LIVE_PATH.exec(path) ?? [];
  if (!isTableName(table)) throw internalError('The manifest names a file outside its datasets.');
  const columns = table === 'events' ? names : new Set<string>();
  return { table, path, rows, bytes, date: date === NO_DATE ? null : date, columns, ...notedOf(file) };
}

/** Reads the text of a file; undefined if there is none. Throws UserError if it cannot be read. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw configError(`${path} cannot be read (${codeOf(error) ?? 'unknown error'}): give its owner the right to.`, {
      cause: error,
      where: { file: path },
    });
  }
}

/** Parses a manifest. Throws UserError if it is damaged, or of another version. */
export function parseManifest(text: string, path: string): Manifest {
  const value = jsonOf(text);
  if (value === undefined) throw damagedError(path, 'it is not JSON');
  return checkedManifest(value, path);
}

/** Checks that a value is a manifest of this version whose files lie within its datasets. Throws UserError. */
export function checkedManifest(value: unknown, path: string): Manifest {
  const { v: version } = isObject(value) ? value : {};
  if (typeof version === 'number' && version > 1) {
    throw configError(`${path} has version ${version}, this program knows version 1: use the newer program.`);
  }
  if (!valid<Manifest>(value)) throw damagedError(path, firstProblem(valid));
  if (!value.files.every((file) => isLivePath(file.path)))
    throw damagedError(path, 'it names a file outside its datasets');
  return value;
}

const damagedError = (path: string, why: string) =>
  configError(`${path} cannot be used: ${why}. Restore it, or load the days again into an empty folder.`, {
    where: { file: path },
  });
