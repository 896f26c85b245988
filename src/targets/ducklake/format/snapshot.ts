// This folder: a catalog by DuckLake's specification, in its words, as far as this program's tables need it: its
// tables (catalog.sql), its latest snapshot (this file), the next one (snapshot-writer.ts), and the end of old ones.

import { isAbsolute } from 'node:path';
import { configError } from '../../../base/errors.ts';
import { groupBy } from '../../../base/group.ts';
import { literal } from '../../../cells/types/sql.ts';
import type { Engine, Row } from '../../../engine/session/engine.ts';
import { identifier } from '../../../engine/session/quote.ts';
import { TABLES, type TableName } from '../../../table/columns.ts';
import type { IdentifiedColumn, IdentifiedTable } from '../../files/field-ids.ts';
import { PARTITION_COLUMN } from '../../files/parquet-file.ts';

export const FORMAT = '1.0';

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
  /** Rows that another program deleted: their positions, and paths of files with further positions. */
  readonly deleted: { readonly positions: readonly number[]; readonly files: readonly string[] };
}

/** A catalog at its latest snapshot. */
export interface CatalogSnapshot {
  readonly snapshotId: number;
  readonly schemaVersion: number;
  readonly nextCatalogId: number;
  readonly nextFileId: number;
  /** All snapshots, times in ms, the latest last. */
  readonly snapshots: readonly { readonly id: number; readonly time: number }[];
  readonly schemaId: number;
  /** Location of the catalog's data: a folder, or an address in a bucket, with `/` at the end. */
  readonly dataPath: string;
  /** Path of the schema's data in it, with `/` at the end. */
  readonly schemaPath: string;
  readonly tables: ReadonlyMap<TableName, CatalogTable>;
  readonly files: readonly CatalogFile[];
  /** Number of rows in the catalog itself, which another program inserted, by table. */
  readonly inlinedRows: ReadonlyMap<TableName, number>;
}

/** SQL condition of a row that is part of a snapshot. */
export const isLiveAt = (table: string, snapshot: number): string =>
  `${table}.begin_snapshot <= ${snapshot} AND (${table}.end_snapshot IS NULL OR ${table}.end_snapshot > ${snapshot})`;

/** Reads the open catalog, which has the tables with these `names`. Throws UserError for one that cannot be used. */
export async function readSnapshot(engine: Engine, names: ReadonlySet<string>): Promise<CatalogSnapshot> {
  const { file } = engine;
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
  };
}

export const lastSnapshot = async (engine: Engine): Promise<number> =>
  Number((await engine.row('SELECT max(snapshot_id) AS id FROM ducklake_snapshot')).id);

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
type SnapshotOfSchema = Pick<CatalogSnapshot, 'snapshotId' | 'schemaId'>;

/** The relation of this program's tables at a snapshot. */
export const dataTables = ({ snapshotId, schemaId }: SnapshotOfSchema): string =>
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

async function readCatalogFiles(
  engine: Engine,
  snapshot: SnapshotOfSchema,
  tables: CatalogSnapshot['tables'],
  names: ReadonlySet<string>,
): Promise<CatalogFile[]> {
  const rows = await engine.rows(
    `SELECT f.data_file_id AS id, o.table_name AS table, f.path, f.record_count AS rows, f.file_size_bytes AS bytes,
      p.data_file_id IS NOT NULL AS dated, p.partition_value AS date,
      d.paths AS deletes, CASE WHEN f.path_is_relative AND f.file_format = 'parquet' AND f.mapping_id IS NULL
        THEN d.unreadable ELSE f.path END AS unreadable
    FROM ducklake_data_file f JOIN ${dataTables(snapshot)} o USING (table_id)
    LEFT JOIN ducklake_file_partition_value p ON p.data_file_id = f.data_file_id AND p.partition_key_index = 0
    LEFT JOIN (SELECT data_file_id, list(path ORDER BY path) AS paths,
      min(CASE WHEN path_is_relative AND format = 'parquet' THEN NULL ELSE path END) AS unreadable
      FROM ducklake_delete_file d WHERE ${isLiveAt('d', snapshot.snapshotId)} GROUP BY data_file_id) d
      ON d.data_file_id = f.data_file_id
    WHERE ${isLiveAt('f', snapshot.snapshotId)} ORDER BY f.path`,
  );
  const positions: Row[] = [];
  for (const inlined of inlinedDeletes(tables, names)) {
    const deleted = await engine.rows(`SELECT file_id AS id, row_id AS position FROM ${inlined}`);
    for (const row of deleted) positions.push(row);
  }
  const byFile = groupBy(positions, ({ id }) => Number(id));
  return rows.map(({ id, table, path, rows: count, bytes, dated, date, deletes, unreadable }) => {
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
      deleted: {
        positions: (byFile.get(Number(id)) ?? []).map(({ position }) => Number(position)),
        files: ((deletes ?? []) as readonly string[]).map((one) => `${table}/${one}`),
      },
    };
  });
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
export async function inlinedTables(engine: Engine, snapshot: SnapshotOfSchema) {
  const rows = await engine.rows(
    `SELECT o.table_name AS table, i.table_name AS inlined FROM ducklake_inlined_data_tables i
    JOIN ${dataTables(snapshot)} o USING (table_id) JOIN duckdb_tables() d ON d.table_name = i.table_name
    WHERE d.database_name = current_database() ORDER BY ALL`,
  );
  return rows.map(({ table, inlined }) => ({ table: table as TableName, inlined: String(inlined) }));
}

/** The tables of the catalog with the numbers of rows of this program's files that another program deleted. */
export const inlinedDeletes = (tables: CatalogSnapshot['tables'], names: ReadonlySet<string>): string[] =>
  [...tables.values()].map(({ id }) => `ducklake_inlined_delete_${id}`).filter((name) => names.has(name));
