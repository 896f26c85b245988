import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Day } from '../../base/days.ts';
import { identifier } from '../../base/sql.ts';
import type { DuckDbColumn } from '../../cells/types/codec.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { Storage } from '../../storage/storage.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../table/tables.ts';
import { fetchColumns } from './fetch-columns.ts';
import {
  columnTypes,
  type FileContent,
  PARTITION_COLUMN,
  selectConformed,
  type TableColumns,
  writeParquet,
} from './parquet-file.ts';
import type { Change, FileChange, LiveFile, NewFile } from './place-version.ts';

/** Where the files of a format are, and which columns they have. */
export interface FileLayout {
  /** True if all files have all columns, in the same order; else a file lacks columns without a value. */
  readonly isUniform: boolean;
  /** The path of a new file, from the root of the storage. */
  newPath(day: Day, table: Table['name']): string;
  /** All columns that a file can have, in their order, with their types. */
  columnsOf(columns: TableColumns): DuckDbColumn[];
}

/** The files of a place on this machine: fetched, and written for a commit. */
export class LocalFiles {
  readonly layout: FileLayout;
  readonly storage: Storage;
  readonly engine: Engine;
  /** A local folder of this run. */
  readonly runFolder: string;
  /** The local copies of files of a bucket, by the path of the file. */
  readonly #copies = new Map<string, string>();

  constructor(layout: FileLayout, storage: Storage, engine: Engine, runFolder: string) {
    this.layout = layout;
    this.storage = storage;
    this.engine = engine;
    this.runFolder = runFolder;
  }

  /** The local path of a file: on a disk the file itself, else a copy, made once. */
  async fetch({ day, path }: LiveFile): Promise<string> {
    const copy = this.#copies.get(path);
    if (copy !== undefined) return copy;
    const local = await this.storage.localFile(path, join(this.runFolder, `${PARTITION_COLUMN}=${day}`, randomUUID()));
    this.#copies.set(path, local);
    return local;
  }

  /** A local file of which only `columns` may be read: `fetchColumns`. */
  async fetchColumns(file: LiveFile, columns: readonly string[]): Promise<string> {
    return this.#copies.get(file.path) ?? fetchColumns(this, file, columns, this.#newPath());
  }

  /** Writes a query into a local file, which the next commit may store. */
  async write(table: Table['name'], content: FileContent): Promise<NewFile> {
    const written = await writeParquet(this.engine, content, this.#newPath());
    const { day } = content.receipt;
    return { ...written, table, day, path: this.layout.newPath(day, table) };
  }

  /**
   * Writes a file anew, with the columns that its table has in a state, in their types, and with its receipt there.
   * `leavingSql` is TRUE for the rows that leave, else FALSE. Undefined if no row is left.
   */
  async rewrite(file: LiveFile, state: PlaceState, leavingSql = 'false'): Promise<NewFile | undefined> {
    const table = state[file.table];
    const receipt = table?.receipts.get(file.day);
    if (table === undefined || receipt === undefined) throw new RangeError(`${file.path} has no receipt`);
    if (receipt.rows_stored === 0) return undefined;
    const local = await this.fetch(file);
    const { isUniform, columnsOf } = this.layout;
    const columns = columnsOf(table).filter(({ name }) => isUniform || file.columns.has(name));
    // The condition may be about a column that the file lacks.
    const conformed = selectConformed(local, file.columns, table);
    const names = columns.map(({ name }) => identifier(name)).join(', ');
    const query = `SELECT ${names} FROM (${conformed}) WHERE NOT ${leavingSql}`;
    const snapshot = file.table === USER_PROFILES.name ? table : undefined;
    const written = await this.write(file.table, { query, receipt, snapshot });
    if (written.rows === receipt.rows_stored) return written;
    throw new RangeError(`${local} came to ${written.rows} rows instead of ${receipt.rows_stored}`);
  }

  /** Writes the outdated files anew, one after the other, but for those that a change replaces. */
  async *conform(files: readonly LiveFile[], { state, files: changed }: Change): AsyncGenerator<FileChange> {
    const changedDays = new Set(changed.flatMap(({ table, day }) => (table === EVENTS.name ? [day] : [])));
    for (const file of this.outdatedFiles(files, state)) {
      const { table, day } = file;
      if (!changedDays.has(day)) yield { table, day, file: await this.rewrite(file, state) };
    }
  }

  /** Those files of `events` that have other columns than the table in a state, or columns of other types. */
  outdatedFiles(files: readonly LiveFile[], state: PlaceState): LiveFile[] {
    const types = columnTypes(this.layout.columnsOf(state.events));
    const hasOtherColumns = ({ columns }: LiveFile) =>
      (this.layout.isUniform && columns.size !== types.size) ||
      [...columns].some(([name, type]) => types.get(name) !== type);
    return files.filter((file) => file.table === EVENTS.name && hasOtherColumns(file));
  }

  /** A free path in the folder of this run. */
  #newPath(): string {
    return join(this.runFolder, randomUUID());
  }
}
