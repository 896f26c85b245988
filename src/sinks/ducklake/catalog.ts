import { randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import pLimit, { type LimitFunction } from 'p-limit';
import { configError, messageOf } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { VERSION } from '../../base/version.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { checkWritable, makeFolders } from '../../fs/private-folder.ts';
import { isTableName, TABLES, type TableName } from '../../table/columns.ts';
import { literal } from '../../types/sql.ts';
import { refuseSecondName } from '../failures.ts';
import type { IdentifiedColumn, IdentifiedTable } from '../files/field-ids.ts';
import { PARTITION } from '../files/parquet-file.ts';
import { COPIES_TABLE, type CopiedFormat, identityOf, publishOld, withRewritten } from '../sql/copies.ts';
import { realFile, SMALL_BLOCKS } from '../sql/engine/database-file.ts';
import { type Engine, type EngineOptions, type Row, withFile } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';

/** The version of DuckLake's format that this program reads and writes. */
const FORMAT = '1.0';

/** The tables of a catalog in format 1.0, as the reference extension makes them. */
const CATALOG_TABLES: readonly string[] = [
  'ducklake_column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order ' +
    'BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, ' +
    'nulls_allowed BOOLEAN, parent_column BIGINT, default_value_type VARCHAR, default_value_dialect VARCHAR)',
  'ducklake_column_mapping(mapping_id BIGINT, table_id BIGINT, "type" VARCHAR)',
  'ducklake_column_tag(table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR)',
  'ducklake_data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot ' +
    'BIGINT, file_order BIGINT, path VARCHAR, path_is_relative BOOLEAN, file_format VARCHAR, record_count BIGINT, ' +
    'file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, ' +
    'mapping_id BIGINT, partial_max BIGINT)',
  'ducklake_delete_file(delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot ' +
    'BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, format VARCHAR, delete_count BIGINT, ' +
    'file_size_bytes BIGINT, footer_size BIGINT, encryption_key VARCHAR, partial_max BIGINT)',
  'ducklake_file_column_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT, ' +
    'value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats ' +
    'VARCHAR)',
  'ducklake_file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR)',
  'ducklake_file_variant_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, ' +
    'shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, ' +
    'max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR)',
  'ducklake_files_scheduled_for_deletion(data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, schedule_start TIMESTAMPTZ)',
  'ducklake_inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT)',
  'ducklake_macro(schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT)',
  'ducklake_macro_impl(macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, "sql" VARCHAR, "type" VARCHAR)',
  'ducklake_macro_parameters(macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, ' +
    'parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR)',
  'ducklake_metadata("key" VARCHAR NOT NULL, "value" VARCHAR NOT NULL, "scope" VARCHAR, scope_id BIGINT)',
  'ducklake_name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, parent_column BIGINT, is_partition BOOLEAN)',
  'ducklake_partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, "transform" VARCHAR)',
  'ducklake_partition_info(partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT)',
  'ducklake_schema(schema_id BIGINT PRIMARY KEY, schema_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, ' +
    'schema_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN)',
  'ducklake_schema_versions(begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT)',
  'ducklake_snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time TIMESTAMPTZ, schema_version BIGINT, next_catalog_id BIGINT, next_file_id BIGINT)',
  'ducklake_snapshot_changes(snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, commit_extra_info VARCHAR)',
  'ducklake_sort_expression(sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect ' +
    'VARCHAR, sort_direction VARCHAR, null_order VARCHAR)',
  'ducklake_sort_info(sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT)',
  'ducklake_table(table_id BIGINT, table_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, ' +
    'table_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN)',
  'ducklake_table_column_stats(table_id BIGINT, column_id BIGINT, contains_null BOOLEAN, contains_nan BOOLEAN, ' +
    'min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR)',
  'ducklake_table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT)',
  'ducklake_tag(object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR)',
  'ducklake_view(view_id BIGINT, view_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, ' +
    'view_name VARCHAR, dialect VARCHAR, "sql" VARCHAR, column_aliases VARCHAR)',
];
/** The table with the mark: which file this catalog is, or of which catalog it is a copy. */
const MARKS = '_dfinery_mark';
/**
 * Tables of this program in a catalog: the state of the export, and facts about files for which the format has no
 * column.
 */
const OWN_TABLES = [
  '_dfinery_state(v INTEGER, "name" VARCHAR, "value" VARCHAR)',
  '_dfinery_files(v INTEGER, data_file_id BIGINT, "value" VARCHAR)',
  `${MARKS}(database VARCHAR, file VARCHAR, copy_of VARCHAR)`,
  `${COPIES_TABLE}(path VARCHAR, published_at TIMESTAMPTZ)`,
];

interface LakeTable extends IdentifiedTable {
  readonly id: number;
  readonly partitionId: number;
  readonly nextRowId: number;
}

/** A live data file of one of this program's tables. */
export interface LakeFile {
  readonly id: number;
  readonly table: TableName;
  /** Path from the folder of the schema. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  /** The value of its partition; undefined if it has none. */
  readonly date: string | null | undefined;
  /** This program's note of the file; undefined if another program wrote it. */
  readonly note: string | undefined;
  /** Rows that another program deleted: their positions, and paths of files with further positions. */
  readonly deleted: { readonly positions: readonly number[]; readonly files: readonly string[] };
}

/** The contents of a catalog at its latest snapshot. */
export interface Lake {
  readonly snapshotId: number;
  readonly schemaVersion: number;
  readonly nextCatalogId: number;
  readonly nextFileId: number;
  /** Ids and times (ms) of all snapshots, the latest last. */
  readonly snapshots: readonly { readonly id: number; readonly time: number }[];
  readonly schemaId: number;
  /** Location of the schema's data: a folder, or an address in a bucket, with `/` at the end. */
  readonly dataPath: string;
  readonly schemaPath: string;
  readonly tables: ReadonlyMap<TableName, LakeTable>;
  readonly files: readonly LakeFile[];
  /** Number of rows in the catalog itself, which another program inserted, by table. */
  readonly inlinedRows: ReadonlyMap<TableName, number>;
  /** The state of the export as texts by name. */
  readonly state: ReadonlyMap<string, string>;
  /**
   * The id of the catalog of which this is a copy for readers; null for a catalog itself; undefined if this program
   * never loaded it.
   */
  readonly copyOf: string | null | undefined;
  /** True if copies of it were published for readers. */
  readonly hasCopies: boolean;
}

export type CatalogOptions = Pick<EngineOptions, 'lockWaitMs' | 'clock' | 'signal'>;

/**
 * Queues by file. The lock of a file excludes other processes; its queue lets one caller of this process work at a
 * time.
 */
const queues = new Map<string, LimitFunction>();

/** A catalog of DuckLake in a DuckDB file. It is open only while something is read or written. */
export class Catalog {
  readonly file: string;
  readonly #options: CatalogOptions;
  readonly #beside: Engine | undefined;

  /** `beside`: the engine in whose instance of DuckDB the catalog is read and written, if there is one. */
  constructor(file: string, options: CatalogOptions, beside?: Engine) {
    this.file = realFile(file);
    const { lockWaitMs, clock, signal } = options;
    this.#options = { lockWaitMs, clock, signal };
    this.#beside = beside;
  }

  get exists(): boolean {
    return existsSync(this.file);
  }

  /** Runs work on the open catalog; undefined if there is no file. Throws UserError. */
  async read<T>(work: (engine: Engine) => Promise<T>): Promise<T | undefined> {
    return this.exists
      ? this.#open({ readOnly: true, beside: this.#beside }, (engine) => work(engine).catch(damaged(this.file)))
      : undefined;
  }

  /**
   * Runs work in one transaction of the catalog, which is made if it is missing. Throws what the work throws, or
   * UserError.
   */
  write<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
    makeFolders(dirname(this.file));
    const inTransaction = (engine: Engine) => engine.transaction(() => work(engine), this.#options.signal);
    return this.#open({ beside: this.#beside }, inTransaction);
  }

  /** Throws UserError unless the catalog can be written, or made if there is none: a run finds out before its first export. */
  async checkWritable(): Promise<void> {
    const folder = dirname(this.file);
    try {
      makeFolders(folder);
      await access(folder, constants.W_OK | constants.X_OK);
      if (this.exists) await access(this.file, constants.W_OK);
    } catch (error) {
      throw diskError(error, { what: this.file, path: this.file, consequence: 'nothing was changed' });
    }
  }

  /**
   * Publishes each copy for readers again that ends before this snapshot: its rows may be in files that only earlier snapshots
   * have. Throws UserError for one that cannot be replaced.
   */
  publishOlder(snapshot: number): Promise<void> {
    const isOlder = async (copy: Engine) => (await lastSnapshot(copy)) < snapshot;
    return publishOld(COPIED, { ...this.#options, file: this.file }, isOlder);
  }

  /** Throws a configuration failure unless `rewrite` can replace this file by another. */
  async checkRewrite(): Promise<void> {
    refuseSecondName(this.file);
    await checkWritable(dirname(this.file));
  }

  /** Rewrites the catalog, so that no byte of the rows that were removed from it remains. Throws UserError. */
  async rewrite(): Promise<void> {
    await this.#open({}, async (engine) => {
      await engine.emptyLog();
      const fill = () => engine.run('COPY FROM DATABASE target TO rewritten');
      await withRewritten(COPIED, engine, SMALL_BLOCKS, fill, (path) => moveFile(path, this.file));
    });
  }

  #open<T>(how: Pick<EngineOptions, 'readOnly' | 'beside'>, work: (engine: Engine) => Promise<T>): Promise<T> {
    return openCatalog({ ...this.#options, ...how, file: this.file }, work);
  }
}

async function openCatalog<T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T> {
  const file = realFile(options.file);
  const key = join(await realpath(dirname(file)), basename(file));
  const queue = queues.get(key) ?? pLimit(1);
  queues.set(key, queue);
  return queue(() => withFile({ ...options, file, smallBlocks: true }, work));
}

/** The functions that identify a catalog, and check it before it is published. */
export const COPIED: CopiedFormat = {
  noun: 'catalog',
  marks: MARKS,
  withFile: openCatalog,
  check: checkOurs,
  checkWhole: checkOurs,
};

async function checkOurs(engine: Engine): Promise<void> {
  if ((await readLake(engine))?.copyOf !== undefined) return;
  throw configError(`${engine.file} holds no tables loaded by this program: nothing was done.`);
}

/** Creates an empty lake in a file without tables. */
export async function createLake(engine: Engine, dataPath: string, at: string): Promise<Lake> {
  for (const table of CATALOG_TABLES) await engine.run(`CREATE TABLE ${table}`);
  await engine.append('ducklake_metadata', [
    ['version', FORMAT, null, null],
    ['created_by', `dfinery-elt ${VERSION}`, null, null],
    ['data_path', dataPath, null, null],
    ['encrypted', 'false', null, null],
  ]);
  await engine.append('ducklake_schema', [[0, randomUUID(), 0, null, 'main', 'main/', true]]);
  await engine.append('ducklake_snapshot', [[0, at, 0, 1, 0]]);
  await engine.append('ducklake_snapshot_changes', [[0, 'created_schema:"main"', null, null, null]]);
  const lake = await readLake(engine);
  if (lake === undefined) throw new RangeError('a catalog that was just made is empty');
  return lake;
}

export async function createOwnTables(engine: Engine): Promise<void> {
  for (const table of OWN_TABLES) await engine.run(`CREATE TABLE IF NOT EXISTS ${table}`);
  await engine.run(`INSERT INTO ${MARKS} SELECT CAST(uuid() AS VARCHAR), $1, NULL WHERE NOT EXISTS (FROM ${MARKS})`, [
    identityOf(engine.file),
  ]);
}

const live = (table: string, at: number): string =>
  `${table}.begin_snapshot <= ${at} AND (${table}.end_snapshot IS NULL OR ${table}.end_snapshot > ${at})`;

/**
 * Converts an error of DuckDB. This program's queries fit every catalog of this format: a catalog that DuckDB refuses
 * lacks a table or a column.
 */
const damaged = (file: string) => (thrown: unknown) => {
  const text = messageOf(thrown);
  if (!/^(Catalog|Binder|Conversion) Error/.test(text)) throw thrown;
  throw configError(
    `${file} is no whole catalog of DuckLake ${FORMAT}, since a table or a column of it is missing or of another ` +
      'type: restore it, or load the days again into another file.',
    { internal: text.split('\n')[0], where: { file } },
  );
};

/** The failure for a catalog in which another program changed what this one stored. */
export const unusable = (file: string, why: string) =>
  configError(`${file} cannot be used: ${why}. Restore it, or load the days again into another catalog.`, {
    where: { file },
  });

/** Reads the open catalog at its latest snapshot; undefined if the file has no table. Throws UserError. */
export async function readLake(engine: Engine): Promise<Lake | undefined> {
  const { file } = engine;
  const names = await tableNames(engine);
  if (names.size === 0) return undefined;
  if (!names.has('ducklake_metadata') || !names.has('ducklake_snapshot')) {
    throw configError(`${file} is a DuckDB file without a catalog of DuckLake: give another file.`);
  }
  const dataPath = await readMetadata(engine);
  const snapshots = await engine.rows(
    'SELECT snapshot_id AS id, epoch_ms(snapshot_time) AS time, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot ORDER BY id',
  );
  const last = snapshots.at(-1);
  const snapshotId = Number(last?.id);
  const schema = await engine.row(
    `SELECT schema_id AS id, path, path_is_relative FROM ducklake_schema s WHERE schema_name = 'main' AND ${live('s', snapshotId)}`,
  );
  if (last === undefined || schema.path_is_relative !== true) {
    throw configError(`${file} has no snapshot, or no schema "main" among its data: restore it, or give another file.`);
  }
  const at = { snapshotId, schemaId: Number(schema.id) };
  const tables = await readTables(engine, at);
  return {
    ...at,
    schemaVersion: Number(last.schema_version),
    nextCatalogId: Number(last.next_catalog_id),
    nextFileId: Number(last.next_file_id),
    snapshots: snapshots.map(({ id, time }) => ({ id: Number(id), time: Number(time) })),
    dataPath,
    schemaPath: String(schema.path),
    tables,
    files: await readLakeFiles(engine, at, tables, names),
    inlinedRows: await readInlined(engine, at, names),
    state: names.has('_dfinery_state') ? await readState(engine) : new Map(),
    copyOf: names.has(MARKS) ? await readCopyOf(engine) : undefined,
    hasCopies: names.has(COPIES_TABLE) && (await engine.count(COPIES_TABLE)) > 0,
  };
}

async function tableNames(engine: Engine): Promise<Set<string>> {
  const tables = await engine.rows(
    'SELECT table_name AS name FROM duckdb_tables() WHERE database_name = current_database()',
  );
  return new Set(tables.map(({ name }) => String(name)));
}

/** True if nobody has committed anything since a read. */
export async function isLatest(engine: Engine, { snapshotId, state }: Lake): Promise<boolean> {
  const names = await tableNames(engine);
  if (!names.has('ducklake_snapshot') || !names.has('_dfinery_state')) return false;
  const { id, change } = await engine.row(
    "SELECT max(snapshot_id) AS id, (SELECT value FROM _dfinery_state WHERE name = 'change') AS change FROM ducklake_snapshot",
  );
  return Number(id) === snapshotId && change === state.get('change');
}

const lastSnapshot = async (engine: Engine): Promise<number> =>
  Number((await engine.row('SELECT max(snapshot_id) AS id FROM ducklake_snapshot')).id);

async function readState(engine: Engine): Promise<ReadonlyMap<string, string>> {
  const rows = await engine.rows('SELECT v, name, value FROM _dfinery_state ORDER BY name');
  if (rows.some(({ v }) => Number(v) !== 1)) {
    throw configError(`${engine.file} was written by a later version of this program: update it.`);
  }
  return new Map(rows.map(({ name, value }) => [String(name), String(value)]));
}

async function readCopyOf(engine: Engine): Promise<string | null> {
  const { copy_of: copyOf } = await engine.row(`SELECT copy_of FROM ${MARKS}`);
  return typeof copyOf === 'string' ? copyOf : null;
}

/** Checks the format; returns the path of the data, with `/` at its end. */
async function readMetadata(engine: Engine): Promise<string> {
  const { file } = engine;
  const rows = await engine.rows("SELECT key, value FROM ducklake_metadata WHERE scope IS NULL OR scope = 'global'");
  const values = new Map(rows.map(({ key, value }) => [String(key), String(value)]));
  if (values.get('version') !== FORMAT) {
    throw configError(
      `${file} is a catalog of DuckLake ${values.get('version') ?? 'without a version'}, ` +
        `this program knows ${FORMAT}: load into another file.`,
    );
  }
  if (values.get('encrypted') === 'true') {
    throw configError(`${file} is a catalog of encrypted files, which this program cannot write: give another file.`);
  }
  const path = values.get('data_path') ?? '';
  if (!isAbsolute(path) && !path.startsWith('s3://')) {
    throw configError(`${file} says that its data are in ${JSON.stringify(path)}: wanted an absolute path or s3://….`);
  }
  return path.endsWith('/') ? path : `${path}/`;
}

/** A snapshot, and the schema of this program's tables. */
type At = Pick<Lake, 'snapshotId' | 'schemaId'>;

/** The relation of this program's tables at a snapshot. */
const dataTables = ({ snapshotId, schemaId }: At): string =>
  `(SELECT table_id, table_name, coalesce(path_is_relative AND path = table_name || '/', false) AS has_own_folder
  FROM ducklake_table t WHERE schema_id = ${schemaId} AND table_name IN (${TABLES.map(literal).join(', ')}) AND ${live('t', snapshotId)})`;

async function readTables(engine: Engine, at: At): Promise<Map<TableName, LakeTable>> {
  const { snapshotId } = at;
  const rows = await engine.rows(
    `SELECT o.table_name AS name, o.table_id AS id, any_value(p.partition_id) AS partition,
      bool_and(has_own_folder AND k.transform = 'identity' AND c.column_name = ${literal(PARTITION)}) AND count(*) = 1 AS is_ours,
      any_value(last) AS last, any_value(next) AS next
    FROM ${dataTables(at)} o LEFT JOIN (SELECT table_id, max(column_id) AS last FROM ducklake_column GROUP BY table_id) USING (table_id)
    LEFT JOIN (SELECT table_id, max(next_row_id) AS next FROM ducklake_table_stats GROUP BY table_id) USING (table_id)
    LEFT JOIN ducklake_partition_info p ON p.table_id = o.table_id AND ${live('p', snapshotId)}
    LEFT JOIN ducklake_partition_column k ON k.partition_id = p.partition_id
    LEFT JOIN ducklake_column c ON c.table_id = o.table_id AND c.column_id = k.column_id AND ${live('c', snapshotId)}
    GROUP BY ALL ORDER BY id`,
  );
  const columns = await engine.rows(
    `SELECT o.table_name AS table, c.column_id AS id, c.column_name AS name, c.column_type AS type, e.column_id AS element_id,
      e.column_type AS element_type FROM ducklake_column c JOIN ${dataTables(at)} o USING (table_id)
    LEFT JOIN ducklake_column e ON c.column_type = 'list' AND e.table_id = c.table_id AND e.parent_column = c.column_id AND ${live('e', snapshotId)}
    WHERE c.parent_column IS NULL AND ${live('c', snapshotId)} ORDER BY c.column_order`,
  );
  const byTable = groupBy(columns, ({ table }) => table);
  return new Map(
    rows.map(({ name, id, partition, is_ours, last, next }) => {
      if (is_ours !== true) {
        throw configError(
          `${engine.file}: the table ${name} is not partitioned by ${PARTITION}, or not in a folder of its name: ` +
            'another program made or changed it. Nothing was done.',
        );
      }
      const table = {
        id: Number(id),
        partitionId: Number(partition),
        columns: (byTable.get(name) ?? []).map(columnOf),
        lastColumnId: Number(last),
        nextRowId: Number(next),
      };
      return [name as TableName, table];
    }),
  );
}

function columnOf({ id, name, type, element_id: element, element_type: elementType }: Row): IdentifiedColumn {
  const column = { id: Number(id), name: String(name), type: String(type) };
  return element === null ? column : { ...column, element: { id: Number(element), type: String(elementType) } };
}

const KNOWN_TABLES: ReadonlySet<string> = new Set(
  [...CATALOG_TABLES, ...OWN_TABLES].map((table) => table.split('(')[0]),
);

/**
 * True for a table of the format or of this program. Tables whose names begin like those of the format's inlined data
 * may hold rows of any table of the lake.
 */
const isKnown = (name: string): boolean => KNOWN_TABLES.has(name) || /^ducklake_(inlined|temp)_/.test(name);

/** Names of tables, in the file or in the lake, that are not this program's. */
export async function foreignTables(engine: Engine, { snapshotId: at }: Lake): Promise<string[]> {
  const rows = await engine.rows(
    `SELECT schema_name AS schema, table_name AS name FROM ducklake_table t JOIN ducklake_schema s USING (schema_id)
    WHERE ${live('t', at)} AND ${live('s', at)}`,
  );
  const others = rows.filter(({ schema, name }) => schema !== 'main' || !isTableName(name));
  const inFile = [...(await tableNames(engine))].filter((name) => !isKnown(name));
  return [...inFile, ...others.map(({ schema, name }) => `${schema}.${name}`)].sort();
}

async function readLakeFiles(
  engine: Engine,
  at: At,
  tables: Lake['tables'],
  names: ReadonlySet<string>,
): Promise<LakeFile[]> {
  const hasNotes = names.has('_dfinery_files');
  const rows = await engine.rows(
    `SELECT f.data_file_id AS id, o.table_name AS table, f.path, f.record_count AS rows, f.file_size_bytes AS bytes,
      p.data_file_id IS NOT NULL AS dated, p.partition_value AS date, ${hasNotes ? 'n.value' : 'NULL'} AS note, d.paths AS deletes,
      CASE WHEN f.path_is_relative AND f.file_format = 'parquet' AND f.mapping_id IS NULL THEN d.unreadable ELSE f.path END AS unreadable
    FROM ducklake_data_file f JOIN ${dataTables(at)} o USING (table_id)
    LEFT JOIN ducklake_file_partition_value p ON p.data_file_id = f.data_file_id AND p.partition_key_index = 0
    LEFT JOIN (SELECT data_file_id, list(path ORDER BY path) AS paths,
      min(CASE WHEN path_is_relative AND format = 'parquet' THEN NULL ELSE path END) AS unreadable
      FROM ducklake_delete_file d WHERE ${live('d', at.snapshotId)} GROUP BY data_file_id) d ON d.data_file_id = f.data_file_id
    ${hasNotes ? 'LEFT JOIN _dfinery_files n ON n.data_file_id = f.data_file_id' : ''}
    WHERE ${live('f', at.snapshotId)} ORDER BY f.path`,
  );
  const positions: Row[] = [];
  for (const { id } of tables.values()) {
    const inlined = `ducklake_inlined_delete_${id}`;
    if (!names.has(inlined)) continue;
    positions.push(...(await engine.rows(`SELECT file_id AS id, row_id AS position FROM ${inlined}`)));
  }
  const byFile = groupBy(positions, ({ id }) => Number(id));
  return rows.map(({ id, table, path, rows: count, bytes, dated, date, note, deletes, unreadable }) => {
    if (unreadable !== null) {
      throw configError(
        `${engine.file}: another program added ${unreadable} to ${table}, which this one cannot read: remove it there.`,
      );
    }
    return {
      id: Number(id),
      table: table as TableName,
      path: `${table}/${path}`,
      rows: Number(count),
      bytes: Number(bytes),
      date: dated === true ? (date === null ? null : String(date)) : undefined,
      note: note === null ? undefined : String(note),
      deleted: {
        positions: (byFile.get(Number(id)) ?? []).map(({ position }) => Number(position)),
        files: ((deletes ?? []) as readonly string[]).map((one) => `${table}/${one}`),
      },
    };
  });
}

/** Paths, from the folder of the schema, of files that left the tables and are kept for older snapshots. */
export async function keptPaths(engine: Engine, lake: Lake): Promise<Set<string>> {
  const own = dataTables(lake);
  const rows = await engine.rows(
    `SELECT table_name || '/' || path AS path FROM ducklake_data_file JOIN ${own} USING (table_id) WHERE end_snapshot <= ${lake.snapshotId}
    UNION ALL SELECT table_name || '/' || path FROM ducklake_delete_file JOIN ${own} USING (table_id)
    UNION ALL SELECT substr(path, ${lake.schemaPath.length + 1}) FROM ducklake_files_scheduled_for_deletion WHERE path_is_relative`,
  );
  return new Set(rows.map(({ path }) => String(path)));
}

/**
 * Names of files that this program noted and that no other table of the catalog lists: no program removes files in that
 * way.
 */
export async function lostNames(engine: Engine): Promise<Set<string>> {
  const listed = ['ducklake_data_file', 'ducklake_files_scheduled_for_deletion']
    .map((table) => `data_file_id NOT IN (SELECT data_file_id FROM ${table} WHERE data_file_id IS NOT NULL)`)
    .join(' AND ');
  const rows = await engine.rows(
    `SELECT 'part-' || json_extract_string(TRY_CAST(value AS JSON), '$.id') || '.parquet' AS name FROM _dfinery_files WHERE ${listed}`,
  );
  if (rows.some(({ name }) => name === null))
    throw unusable(engine.file, 'a row of _dfinery_files is not what this program stored');
  return new Set(rows.map(({ name }) => String(name)));
}

async function readInlined(engine: Engine, at: At, names: ReadonlySet<string>): Promise<Map<TableName, number>> {
  const found = new Map<TableName, number>();
  for (const { table, inlined } of await inlinedTables(engine, at, names)) {
    const rows = await engine.count(`${identifier(inlined)} WHERE end_snapshot IS NULL`);
    if (rows > 0) found.set(table, (found.get(table) ?? 0) + rows);
  }
  return found;
}

/** The tables of the catalog with rows of this program's tables, which another program inserted. */
async function inlinedTables(engine: Engine, at: At, names: ReadonlySet<string>) {
  const rows = await engine.rows(
    `SELECT o.table_name AS table, i.table_name AS inlined FROM ducklake_inlined_data_tables i
    JOIN ${dataTables(at)} o USING (table_id) ORDER BY ALL`,
  );
  const tables = rows.map(({ table, inlined }) => ({ table: table as TableName, inlined: String(inlined) }));
  return tables.filter(({ inlined }) => names.has(inlined));
}

/**
 * Removes all snapshots before one, and everything that only they had in the catalog: files, statistics, and rows in
 * the catalog itself. Files of other programs' tables are left to `ducklake_cleanup_old_files`. Called inside a
 * transaction; returns the paths of this program's files, from the folder of the schema.
 */
export async function expireSnapshots(engine: Engine, lake: Lake, before: number, at: string): Promise<string[]> {
  for (const table of ['ducklake_snapshot', 'ducklake_snapshot_changes']) {
    await engine.run(`DELETE FROM ${table} WHERE snapshot_id < ${before}`);
  }
  const paths: string[] = [];
  for (const kind of ['data', 'delete']) {
    const [files, isOver] = [`ducklake_${kind}_file`, `end_snapshot <= ${before}`];
    const own = await engine.rows(
      `SELECT table_name || '/' || path AS path FROM ${files} JOIN ${dataTables(lake)} USING (table_id) WHERE ${isOver}`,
    );
    paths.push(...own.map(({ path }) => String(path)));
    await engine.run(
      `INSERT INTO ducklake_files_scheduled_for_deletion
      SELECT f.${kind}_file_id, CASE WHEN f.path_is_relative THEN s.path || t.path || f.path ELSE f.path END,
        f.path_is_relative AND s.path_is_relative AND t.path_is_relative, ${literal(at)}
      FROM ${files} f JOIN (SELECT table_id, any_value(schema_id) AS schema_id, any_value(path) AS path,
        any_value(path_is_relative) AS path_is_relative FROM ducklake_table GROUP BY table_id) t USING (table_id)
      JOIN (SELECT schema_id, any_value(path) AS path, any_value(path_is_relative) AS path_is_relative FROM ducklake_schema
        GROUP BY schema_id) s USING (schema_id)
      WHERE f.${isOver} AND f.table_id NOT IN (SELECT table_id FROM ${dataTables(lake)})`,
    );
    await engine.run(`DELETE FROM ${files} WHERE ${isOver}`);
  }
  for (const table of ['ducklake_file_column_stats', 'ducklake_file_partition_value', '_dfinery_files']) {
    await engine.run(`DELETE FROM ${table} WHERE data_file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)`);
  }
  const names = await tableNames(engine);
  for (const { inlined } of await inlinedTables(engine, lake, names)) {
    await engine.run(`DELETE FROM ${identifier(inlined)} WHERE end_snapshot <= ${before}`);
  }
  for (const { id } of lake.tables.values()) {
    const inlined = `ducklake_inlined_delete_${id}`;
    if (!names.has(inlined)) continue;
    await engine.run(`DELETE FROM ${inlined} WHERE file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)`);
  }
  return paths;
}
