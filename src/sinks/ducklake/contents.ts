import { randomUUID } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { configError } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { VERSION } from '../../base/version.ts';
import { isTableName, TABLES, type TableName } from '../../table/columns.ts';
import { literal } from '../../types/sql.ts';
import type { IdentifiedColumn, IdentifiedTable } from '../files/field-ids.ts';
import { PARTITION_COLUMN } from '../files/parquet-file.ts';
import { identityOf } from '../sql/copies/mark.ts';
import { COPIES_TABLE, CREATE_COPIES } from '../sql/copies/publish.ts';
import type { Engine, Row } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';
import type { NamedTexts } from '../sql/naming-objects.ts';
import CATALOG_TABLES from './catalog.sql';
import { appendRows, CATALOG_TABLE_NAMES } from './catalog-rows.ts';

export const FORMAT = '1.0';

/** The table with the mark: which file this catalog is, or of which catalog it is a copy. */
export const MARKS = '_dfinery_mark';
/** This program's tables in a catalog: the state, and facts about files for which the format has no column. */
const OWN_TABLES = [
  '_dfinery_state(v INTEGER, "name" VARCHAR, "value" VARCHAR)',
  '_dfinery_files(v INTEGER, data_file_id BIGINT, "value" VARCHAR)',
  `${MARKS}(database VARCHAR, file VARCHAR, copy_of VARCHAR)`,
];

export interface CatalogTable extends IdentifiedTable {
  readonly id: number;
  readonly partitionId: number;
  readonly nextRowId: number;
}

export interface CatalogFile {
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
export interface CatalogContents {
  readonly snapshotId: number;
  readonly schemaVersion: number;
  readonly nextCatalogId: number;
  readonly nextFileId: number;
  /** All snapshots, times in ms, the latest last. */
  readonly snapshots: readonly { readonly id: number; readonly time: number }[];
  readonly schemaId: number;
  /** Location of the schema's data: a folder, or an address in a bucket, with `/` at the end. */
  readonly dataPath: string;
  readonly schemaPath: string;
  readonly tables: ReadonlyMap<TableName, CatalogTable>;
  readonly files: readonly CatalogFile[];
  /** Number of rows in the catalog itself, which another program inserted, by table. */
  readonly inlinedRows: ReadonlyMap<TableName, number>;
  readonly state: ReadonlyMap<string, string>;
  /** Id of the catalog of which this is a copy; null for a catalog itself; undefined if it was never loaded. */
  readonly copyOf: string | null | undefined;
  readonly hasCopies: boolean;
}

export async function createContents(engine: Engine, dataPath: string, at: string): Promise<CatalogContents> {
  await engine.run(CATALOG_TABLES);
  await appendRows(engine, 'ducklake_metadata', [
    { key: 'version', value: FORMAT },
    { key: 'created_by', value: `dfinery-elt ${VERSION}` },
    { key: 'data_path', value: dataPath },
    { key: 'encrypted', value: 'false' },
  ]);
  const schema = { schema_id: 0, schema_uuid: randomUUID(), schema_name: 'main', path: 'main/' };
  await appendRows(engine, 'ducklake_schema', [{ ...schema, begin_snapshot: 0, path_is_relative: true }]);
  const snapshot = { snapshot_id: 0, snapshot_time: at, schema_version: 0 };
  await appendRows(engine, 'ducklake_snapshot', [{ ...snapshot, next_catalog_id: 1, next_file_id: 0 }]);
  await appendRows(engine, 'ducklake_snapshot_changes', [{ snapshot_id: 0, changes_made: 'created_schema:"main"' }]);
  const contents = await readContents(engine);
  if (contents === undefined) throw new RangeError('a catalog that was just made is empty');
  return contents;
}

export async function createOwnTables(engine: Engine): Promise<void> {
  for (const table of OWN_TABLES) await engine.run(`CREATE TABLE IF NOT EXISTS ${table}`);
  await engine.run(CREATE_COPIES);
  await engine.run(`INSERT INTO ${MARKS} SELECT CAST(uuid() AS VARCHAR), $1, NULL WHERE NOT EXISTS (FROM ${MARKS})`, [
    identityOf(engine.file),
  ]);
}

const isLiveAt = (table: string, snapshot: number): string =>
  `${table}.begin_snapshot <= ${snapshot} AND (${table}.end_snapshot IS NULL OR ${table}.end_snapshot > ${snapshot})`;

/** The failure for a catalog in which another program changed what this one stored. */
export const unusableError = (file: string, why: string) =>
  configError(`${file} cannot be used: ${why}. Restore it, or load the days again into another catalog.`, {
    where: { file },
  });

/** Reads the open catalog at its latest snapshot; undefined if the file has no table. Throws UserError. */
export async function readContents(engine: Engine): Promise<CatalogContents | undefined> {
  const { file } = engine;
  const names = await tableNames(engine);
  if (names.size === 0) return undefined;
  if (!names.has('ducklake_metadata') || !names.has('ducklake_snapshot')) {
    if (names.has('_dfinery_windows')) {
      throw configError(`${file} was loaded by sync duckdb: say duckdb in place of ducklake, or give another file.`);
    }
    throw configError(`${file} is a DuckDB file without a catalog of DuckLake: give another file.`);
  }
  const dataPath = await readMetadata(engine);
  const snapshots = await engine.rows(
    `SELECT snapshot_id AS id, epoch_ms(snapshot_time) AS time, schema_version, next_catalog_id, next_file_id
    FROM ducklake_snapshot ORDER BY id`,
  );
  const last = snapshots.at(-1);
  const snapshotId = Number(last?.id);
  const schema = await engine.row(
    `SELECT schema_id AS id, path, path_is_relative FROM ducklake_schema s
    WHERE schema_name = 'main' AND ${isLiveAt('s', snapshotId)}`,
  );
  if (last === undefined || schema.path_is_relative !== true) {
    throw configError(`${file} has no snapshot, or no schema "main" among its data: restore it, or give another file.`);
  }
  const snapshot = { snapshotId, schemaId: Number(schema.id) };
  const tables = await readTables(engine, snapshot);
  return {
    ...snapshot,
    schemaVersion: Number(last.schema_version),
    nextCatalogId: Number(last.next_catalog_id),
    nextFileId: Number(last.next_file_id),
    snapshots: snapshots.map(({ id, time }) => ({ id: Number(id), time: Number(time) })),
    dataPath,
    schemaPath: String(schema.path),
    tables,
    files: await readCatalogFiles(engine, snapshot, tables, names),
    inlinedRows: await readInlined(engine, snapshot),
    state: names.has('_dfinery_state') ? await readStateEntries(engine) : new Map(),
    copyOf: names.has(MARKS)
      ? (((await engine.row(`SELECT copy_of FROM ${MARKS}`)).copy_of ?? null) as string | null)
      : undefined,
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
export async function isLatest(engine: Engine, { snapshotId, state }: CatalogContents): Promise<boolean> {
  const names = await tableNames(engine);
  if (!names.has('ducklake_snapshot') || !names.has('_dfinery_state')) return false;
  const { id, change } = await engine.row(
    `SELECT max(snapshot_id) AS id, (SELECT value FROM _dfinery_state WHERE name = 'change') AS change
    FROM ducklake_snapshot`,
  );
  return Number(id) === snapshotId && change === state.get('change');
}

export const lastSnapshot = async (engine: Engine): Promise<number> =>
  Number((await engine.row('SELECT max(snapshot_id) AS id FROM ducklake_snapshot')).id);

async function readStateEntries(engine: Engine): Promise<ReadonlyMap<string, string>> {
  const rows = await engine.rows('SELECT v, name, value FROM _dfinery_state ORDER BY name');
  if (rows.some(({ v }) => Number(v) !== 1)) {
    throw configError(`${engine.file} was written by a later version of this program: update it.`);
  }
  return new Map(rows.map(({ name, value }) => [String(name), String(value)]));
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

/** A snapshot of the catalog, and the schema with this program's tables. */
type SnapshotOfSchema = Pick<CatalogContents, 'snapshotId' | 'schemaId'>;

/** The relation of this program's tables at a snapshot. */
const dataTables = ({ snapshotId, schemaId }: SnapshotOfSchema): string =>
  `(SELECT table_id, table_name, coalesce(path_is_relative AND path = table_name || '/', false) AS has_own_folder
  FROM ducklake_table t
  WHERE schema_id = ${schemaId} AND table_name IN (${TABLES.map(literal).join(', ')}) AND ${isLiveAt('t', snapshotId)})`;

async function readTables(engine: Engine, snapshot: SnapshotOfSchema): Promise<Map<TableName, CatalogTable>> {
  const { snapshotId } = snapshot;
  const rows = await engine.rows(
    `SELECT o.table_name AS name, o.table_id AS id, any_value(p.partition_id) AS partition,
      any_value(last) AS last, any_value(next) AS next,
      count(*) = 1 AND bool_and(has_own_folder
        AND k.transform = 'identity' AND c.column_name = ${literal(PARTITION_COLUMN)}) AS is_ours
    FROM ${dataTables(snapshot)} o
    LEFT JOIN (SELECT table_id, max(column_id) AS last FROM ducklake_column GROUP BY table_id) USING (table_id)
    LEFT JOIN (SELECT table_id, max(next_row_id) AS next FROM ducklake_table_stats GROUP BY table_id) USING (table_id)
    LEFT JOIN ducklake_partition_info p ON p.table_id = o.table_id AND ${isLiveAt('p', snapshotId)}
    LEFT JOIN ducklake_partition_column k ON k.partition_id = p.partition_id
    LEFT JOIN ducklake_column c
      ON c.table_id = o.table_id AND c.column_id = k.column_id AND ${isLiveAt('c', snapshotId)}
    GROUP BY ALL ORDER BY id`,
  );
  const columns = await engine.rows(
    `SELECT o.table_name AS table, c.column_id AS id, c.column_name AS name, c.column_type AS type,
      e.column_id AS element_id, e.column_type AS element_type
    FROM ducklake_column c JOIN ${dataTables(snapshot)} o USING (table_id)
    LEFT JOIN ducklake_column e ON c.column_type = 'list'
      AND e.table_id = c.table_id AND e.parent_column = c.column_id AND ${isLiveAt('e', snapshotId)}
    WHERE c.parent_column IS NULL AND ${isLiveAt('c', snapshotId)} ORDER BY c.column_order`,
  );
  const byTable = groupBy(columns, ({ table }) => table);
  return new Map(
    rows.map(({ name, id, partition, last, next, is_ours }) => {
      if (is_ours !== true) {
        throw configError(
          `${engine.file}: the table ${name} is not partitioned by ${PARTITION_COLUMN}, or not in a folder of its name: ` +
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

const KNOWN_TABLES: ReadonlySet<string> = new Set([
  ...CATALOG_TABLE_NAMES,
  ...[...OWN_TABLES, COPIES_TABLE].map((table) => table.split('(')[0]),
]);

/** Names of tables, in the file or in the catalog, that are not this program's. */
export async function foreignTables(engine: Engine, { snapshotId }: CatalogContents): Promise<string[]> {
  const rows = await engine.rows(
    `SELECT schema_name AS schema, table_name AS name FROM ducklake_table t JOIN ducklake_schema s USING (schema_id)
    WHERE ${isLiveAt('t', snapshotId)} AND ${isLiveAt('s', snapshotId)}`,
  );
  const others = rows.filter(({ schema, name }) => schema !== 'main' || !isTableName(name));
  // Tables of the format include the inlined data of any table.
  const isKnown = (name: string) => KNOWN_TABLES.has(name) || /^ducklake_(inlined|temp)_/.test(name);
  const inFile = [...(await tableNames(engine))].filter((name) => !isKnown(name));
  return [...inFile, ...others.map(({ schema, name }) => `${schema}.${name}`)].sort();
}

/** Where a catalog keeps texts, also of older snapshots, as rows. */
export const CATALOG_TEXTS: readonly NamedTexts[] = [
  ['view', 'ducklake_view', 'view_name', 'sql', 'sql'],
  ['macro', 'ducklake_macro_impl JOIN ducklake_macro USING (macro_id)', 'macro_name', 'sql', 'sql'],
  ['tag', 'ducklake_tag', 'key', 'NULL', 'value'],
  ['tag', 'ducklake_column_tag', "key || ' of a column'", 'NULL', 'value'],
];

async function readCatalogFiles(
  engine: Engine,
  snapshot: SnapshotOfSchema,
  tables: CatalogContents['tables'],
  names: ReadonlySet<string>,
): Promise<CatalogFile[]> {
  const hasNotes = names.has('_dfinery_files');
  const rows = await engine.rows(
    `SELECT f.data_file_id AS id, o.table_name AS table, f.path, f.record_count AS rows, f.file_size_bytes AS bytes,
      p.data_file_id IS NOT NULL AS dated, p.partition_value AS date, ${hasNotes ? 'n.value' : 'NULL'} AS note,
      d.paths AS deletes, CASE WHEN f.path_is_relative AND f.file_format = 'parquet' AND f.mapping_id IS NULL
        THEN d.unreadable ELSE f.path END AS unreadable
    FROM ducklake_data_file f JOIN ${dataTables(snapshot)} o USING (table_id)
    LEFT JOIN ducklake_file_partition_value p ON p.data_file_id = f.data_file_id AND p.partition_key_index = 0
    LEFT JOIN (SELECT data_file_id, list(path ORDER BY path) AS paths,
      min(CASE WHEN path_is_relative AND format = 'parquet' THEN NULL ELSE path END) AS unreadable
      FROM ducklake_delete_file d WHERE ${isLiveAt('d', snapshot.snapshotId)} GROUP BY data_file_id) d
      ON d.data_file_id = f.data_file_id
    ${hasNotes ? 'LEFT JOIN _dfinery_files n ON n.data_file_id = f.data_file_id' : ''}
    WHERE ${isLiveAt('f', snapshot.snapshotId)} ORDER BY f.path`,
  );
  const positions: Row[] = [];
  for (const inlined of inlinedDeletes(tables, names)) {
    const rows = await engine.rows(`SELECT file_id AS id, row_id AS position FROM ${inlined}`);
    for (const row of rows) positions.push(row);
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
export async function keptPaths(engine: Engine, contents: CatalogContents): Promise<Set<string>> {
  const own = dataTables(contents);
  const rows = await engine.rows(
    `SELECT table_name || '/' || path AS path FROM ducklake_data_file JOIN ${own} USING (table_id)
    WHERE end_snapshot <= ${contents.snapshotId}
    UNION ALL SELECT table_name || '/' || path FROM ducklake_delete_file JOIN ${own} USING (table_id)
    UNION ALL SELECT substr(path, ${contents.schemaPath.length + 1})
    FROM ducklake_files_scheduled_for_deletion WHERE path_is_relative`,
  );
  return new Set(rows.map(({ path }) => String(path)));
}

/** Names of files that this program noted and that nothing else lists: no program removes files in that way. */
export async function lostNames(engine: Engine): Promise<Set<string>> {
  const listed = ['ducklake_data_file', 'ducklake_files_scheduled_for_deletion']
    .map((table) => `data_file_id NOT IN (SELECT data_file_id FROM ${table} WHERE data_file_id IS NOT NULL)`)
    .join(' AND ');
  const rows = await engine.rows(
    `SELECT 'part-' || json_extract_string(TRY_CAST(value AS JSON), '$.id') || '.parquet' AS name
    FROM _dfinery_files WHERE ${listed}`,
  );
  if (rows.some(({ name }) => name === null))
    throw unusableError(engine.file, 'a row of _dfinery_files is not what this program stored');
  return new Set(rows.map(({ name }) => String(name)));
}

async function readInlined(engine: Engine, snapshot: SnapshotOfSchema): Promise<Map<TableName, number>> {
  const byTable = new Map<TableName, number>();
  for (const { table, inlined } of await inlinedTables(engine, snapshot)) {
    const rows = await engine.count(`${identifier(inlined)} WHERE end_snapshot IS NULL`);
    if (rows > 0) byTable.set(table, (byTable.get(table) ?? 0) + rows);
  }
  return byTable;
}

/** Tables of the catalog with rows that another program inserted into this program's tables. */
async function inlinedTables(engine: Engine, snapshot: SnapshotOfSchema) {
  const rows = await engine.rows(
    `SELECT o.table_name AS table, i.table_name AS inlined FROM ducklake_inlined_data_tables i
    JOIN ${dataTables(snapshot)} o USING (table_id) JOIN duckdb_tables() d ON d.table_name = i.table_name
    WHERE d.database_name = current_database() ORDER BY ALL`,
  );
  return rows.map(({ table, inlined }) => ({ table: table as TableName, inlined: String(inlined) }));
}

/** The tables of the catalog with the numbers of rows of this program's files that another program deleted. */
const inlinedDeletes = (tables: CatalogContents['tables'], names: ReadonlySet<string>): string[] =>
  [...tables.values()].map(({ id }) => `ducklake_inlined_delete_${id}`).filter((name) => names.has(name));

/**
 * Removes all snapshots before one, and everything that only they had in the catalog: files, statistics, and rows in
 * the catalog itself. Files of other programs' tables are left to `ducklake_cleanup_old_files`. Called inside a
 * transaction; returns the paths of this program's files, from the folder of the schema.
 */
export async function expireSnapshots(
  engine: Engine,
  contents: CatalogContents,
  before: number,
  at: string,
): Promise<string[]> {
  for (const table of ['ducklake_snapshot', 'ducklake_snapshot_changes']) {
    await engine.run(`DELETE FROM ${table} WHERE snapshot_id < ${before}`);
  }
  const paths: string[] = [];
  for (const kind of ['data', 'delete']) {
    const [files, isOver] = [`ducklake_${kind}_file`, `end_snapshot <= ${before}`];
    const own = await engine.rows(
      `SELECT table_name || '/' || path AS path FROM ${files}
      JOIN ${dataTables(contents)} USING (table_id) WHERE ${isOver}`,
    );
    for (const { path } of own) paths.push(String(path));
    await engine.run(
      `INSERT INTO ducklake_files_scheduled_for_deletion
      SELECT f.${kind}_file_id, CASE WHEN f.path_is_relative THEN s.path || t.path || f.path ELSE f.path END,
        f.path_is_relative AND s.path_is_relative AND t.path_is_relative, ${literal(at)}
      FROM ${files} f JOIN (SELECT table_id, any_value(schema_id) AS schema_id, any_value(path) AS path,
        any_value(path_is_relative) AS path_is_relative FROM ducklake_table GROUP BY table_id) t USING (table_id)
      JOIN (SELECT schema_id, any_value(path) AS path, any_value(path_is_relative) AS path_is_relative
        FROM ducklake_schema GROUP BY schema_id) s USING (schema_id)
      WHERE f.${isOver} AND f.table_id NOT IN (SELECT table_id FROM ${dataTables(contents)})`,
    );
    await engine.run(`DELETE FROM ${files} WHERE ${isOver}`);
  }
  for (const table of ['ducklake_file_column_stats', 'ducklake_file_partition_value', '_dfinery_files']) {
    await engine.run(`DELETE FROM ${table} WHERE data_file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)`);
  }
  for (const { inlined } of await inlinedTables(engine, contents)) {
    await engine.run(`DELETE FROM ${identifier(inlined)} WHERE end_snapshot <= ${before}`);
  }
  for (const inlined of inlinedDeletes(contents.tables, await tableNames(engine))) {
    await engine.run(`DELETE FROM ${inlined} WHERE file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)`);
  }
  return paths;
}
