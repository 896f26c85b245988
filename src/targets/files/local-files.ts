import { randomUUID } from 'node:crypto';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { identifier } from '../../base/sql.ts';
import { COLUMN_TYPES, codecOf, widenSql } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { castToColumnSql } from '../../engine/column-sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import type { Storage } from '../../storage/storage.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type Table, typedColumns, USER_PROFILES } from '../../table/tables.ts';
import {
  type ColumnTypes,
  type FileLayout,
  PARTITION_COLUMN,
  parquetColumns,
  type TableColumns,
} from './file-layout.ts';
import type { FileChange, LiveFile, NewFile, PlaceChange } from './place-version.ts';
import { columnRanges, readParquetSql } from './read-parquet.ts';
import { type FileContent, writeParquet } from './write-parquet.ts';

/** Bytes of the end of a file that are read first. They hold most footers, and a small file as a whole. */
const TAIL_BYTES = 64 * 1024;
/** The last bytes of a Parquet file: the length of its footer (32 bits), and a mark. */
const MARK_BYTES = 8;

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

  /**
   * A local file of which only `columns` may be read. On a disk it is the stored file itself. From a bucket it is a copy
   * of the same size. Only the footer and the bytes from the first of these columns to the last are downloaded; the rest
   * is empty.
   */
  async fetchColumns({ path, bytes }: LiveFile, columns: readonly string[]): Promise<string> {
    const { storage, engine } = this;
    const fetched = this.#copies.get(path);
    if (fetched !== undefined) return fetched;
    const copy = this.#freePath();
    if (storage.readRange === undefined) return storage.localFile(path, copy);
    const readRange = storage.readRange.bind(storage);
    const file = await open(copy, 'wx', PRIVATE_FILE_MODE);
    const read = async (from: number, to: number): Promise<Buffer> => {
      const part = await readRange(path, from, to);
      // A disk that is nearly full takes a part of a write and reports no error.
      for (let done = 0; done < part.length; ) {
        done += (await file.write(part, done, part.length - done, from + done)).bytesWritten;
      }
      return part;
    };
    try {
      await file.truncate(bytes);
      const tailFrom = Math.max(0, bytes - TAIL_BYTES);
      const tail = await read(tailFrom, bytes);
      // DuckDB refuses a damaged file, such as one whose footer would begin before the file.
      const footerBytes = tail.length < MARK_BYTES ? 0 : tail.readUInt32LE(tail.length - MARK_BYTES);
      const footerFrom = Math.max(0, bytes - MARK_BYTES - footerBytes);
      if (footerFrom < tailFrom) await read(footerFrom, tailFrom);
      for (const { from, until } of await columnRanges(engine, copy, columns)) {
        if (from < tailFrom) await read(from, Math.min(until, tailFrom));
      }
      return copy;
    } finally {
      await file.close();
    }
  }

  /** Writes a query into a local file, which the next commit may store. */
  async write(table: Table['name'], content: FileContent): Promise<NewFile> {
    const written = await writeParquet(this.engine, content, this.#freePath());
    const { day } = content.receipt;
    return { ...written, table, day, path: this.layout.newPath(day, table) };
  }

  /**
   * Writes a file anew, with the columns of its table after a change, in their types, and with its receipt there.
   * `leavingSql` is TRUE for the rows that leave, else FALSE. Undefined if no row is left.
   */
  async rewrite(file: LiveFile, table: TableState | undefined, leavingSql = 'false'): Promise<NewFile | undefined> {
    const receipt = table?.receipts.get(file.day);
    if (table === undefined || receipt === undefined) throw new RangeError(`${file.path} has no receipt`);
    if (receipt.rows_stored === 0) return undefined;
    const local = await this.fetch(file);
    const { hasAllColumns, columnsOf } = this.layout;
    const columns = [...columnsOf(table).keys()].filter((name) => hasAllColumns || file.columns.has(name));
    // The condition may be about a column that the file lacks.
    const rowsSql = tableRowsSql(local, file.columns, table);
    const names = columns.map(identifier).join(', ');
    const query = `SELECT ${names} FROM (${rowsSql}) WHERE NOT ${leavingSql}`;
    const snapshot = file.table === USER_PROFILES.name ? table : undefined;
    const written = await this.write(file.table, { query, receipt, snapshot });
    if (written.rows === receipt.rows_stored) return written;
    throw new RangeError(`${local} came to ${written.rows} rows instead of ${receipt.rows_stored}`);
  }

  /** Writes those files of days anew, one after the other, that have other columns after a change, or other types. */
  async *rewriteOutdated(
    files: readonly LiveFile[],
    { state, files: changes }: PlaceChange,
  ): AsyncGenerator<FileChange> {
    const types = this.layout.columnsOf(state.events);
    for (const file of files) {
      const { table, day, columns } = file;
      const isReplaced = changes.some((change) => change.table === table && change.day === day);
      if (isReplaced || table !== EVENTS.name) continue;
      const isComplete = !this.layout.hasAllColumns || columns.size === types.size;
      if (isComplete && [...columns].every(([name, type]) => types.get(name) === type)) continue;
      yield { table, day, file: await this.rewrite(file, state.events) };
    }
  }

  /** A free path in the folder of this run. */
  #freePath(): string {
    return join(this.runFolder, randomUUID());
  }
}

/**
 * The SELECT of the rows of a file, with all columns of a table in their types. It widens values of an earlier type.
 * A column that the file lacks is NULL. `fileColumns`: the columns in the file.
 */
function tableRowsSql(path: string, fileColumns: ColumnTypes, { columns, timezone }: TableColumns): string {
  const zone = zoneOf(timezone);
  const ownColumns = parquetColumns({ columns: [], timezone }).keys();
  const values = typedColumns(columns).map(({ name, type }) => {
    const fileType = fileColumns.get(name);
    const before = COLUMN_TYPES.find((columnType) => codecOf(columnType, zone).duckdbType === fileType);
    const value = before === undefined ? 'NULL' : widenSql(identifier(name), before, type, zone);
    return `${castToColumnSql(value, type, zone)} AS ${identifier(name)}`;
  });
  return `SELECT ${[...ownColumns, ...values].join(', ')} FROM ${readParquetSql([path])}`;
}
