import { randomUUID } from 'node:crypto';
import { configError, internalError } from '../../../base/errors.ts';
import { VERSION } from '../../../base/version.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { identifier } from '../../../engine/session/quote.ts';
import type { TableName } from '../../../table/columns.ts';
import { foldName } from '../../../table/names.ts';
import type { NewFile } from '../../files/data-file.ts';
import type { Field, FieldIds, IdentifiedColumn } from '../../files/field-ids.ts';
import type { LoggedColumns } from '../../files/log-entries.ts';
import { PARTITION_COLUMN } from '../../files/parquet-file.ts';
import { pathInTable } from '../../files/stored-files.ts';
import { type ChangedFiles, LostRace } from '../../files/table-log.ts';
import CATALOG_TABLES from './catalog.sql';
import { appendRows, type CatalogRow } from './rows.ts';
import { type CatalogSnapshot, type CatalogTable, FORMAT } from './snapshot.ts';
import { duckDbType, sameType } from './types.ts';

/** Makes an empty catalog, with the snapshot that has its schema `main`. */
export async function createCatalog(engine: Engine, dataPath: string, at: string): Promise<void> {
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
}

interface Table extends Pick<CatalogTable, 'id' | 'partitionId' | 'columns'> {
  nextRowId: number;
}

/**
 * Writes the next snapshot of a catalog, as the reference extension would. Used inside a transaction of the catalog, in
 * this order, where `+` are rows that it inserts, with the snapshot's id as their `begin_snapshot`, and `-` those that
 * get this id as their `end_snapshot`:
 *
 *     shape         a new table         + table, partition_info, partition_column, column
 *       per table   a changed one       - column  + column (new, or of another type)  + inlined_data_tables
 *     replaceFiles  removed files       - data_file, delete_file
 *                   added files         + data_file, file_column_stats, file_partition_value
 *     finish        the snapshot        + schema_versions (for each table that `shape` changed)
 *                                       + snapshot, snapshot_changes
 *     summarize     once older snapshots are expired: table_stats, table_column_stats are computed anew
 */
export class SnapshotWriter {
  readonly #engine: Engine;
  readonly #before: CatalogSnapshot;
  readonly #ids: FieldIds;
  readonly #id: number;
  readonly #tables = new Map<TableName, Table>();
  readonly #changes: string[] = [];
  readonly #altered = new Set<number>();
  #nextCatalogId: number;
  #nextFileId: number;

  constructor(engine: Engine, before: CatalogSnapshot, ids: FieldIds) {
    this.#engine = engine;
    this.#before = before;
    this.#ids = ids;
    this.#id = before.snapshotId + 1;
    this.#nextCatalogId = before.nextCatalogId;
    this.#nextFileId = before.nextFileId;
  }

  /** Makes a table, or adds missing columns to it and changes types. */
  async shape(name: TableName, fields: readonly Field[], isOurs: boolean): Promise<void> {
    const known = this.#before.tables.get(name);
    if (known !== undefined && !isOurs) {
      throw configError(
        `${this.#engine.file} has a table ${name} that this program did not make: rename it, or give another catalog.`,
      );
    }
    if (known === undefined) {
      await this.#create(name, fields);
      return;
    }
    const { id, partitionId, columns, nextRowId } = known;
    this.#tables.set(name, { id, partitionId, columns: this.#columnsOf(name, fields), nextRowId });
    const byName = new Map(columns.map((column) => [column.name, column]));
    const byFold = new Map(columns.map((column) => [foldName(column.name), column]));
    const changed = fields.filter((field) => !sameType(field, byName.get(field.name)));
    if (changed.length === 0) return;
    for (const field of changed) {
      const other = byFold.get(foldName(field.name));
      if (byName.has(field.name) || other === undefined) continue;
      throw configError(
        `${this.#engine.file}: another program added a column ${other.name} to ${name}, ` +
          'whose name an export needs now: rename or drop it there.',
      );
    }
    const before = changed.flatMap((field) => byName.get(field.name) ?? []);
    const ended = before.flatMap((column) => [column.id, column.element?.id ?? column.id]);
    if (ended.length > 0) {
      await this.#engine.run(
        `UPDATE ducklake_column SET end_snapshot = ${this.#id}
        WHERE table_id = ${id} AND column_id IN (${ended.join(', ')}) AND end_snapshot IS NULL`,
      );
    }
    await this.#addColumns(id, this.#columnsOf(name, changed));
    await this.#alterInlined(id, changed, new Set(byName.keys()));
    this.#altered.add(id);
    this.#changes.push(`altered_table:${id}`);
  }

  /**
   * Adds a table for rows that the reference extension keeps in the catalog, if there is one: each has the columns of
   * one version, and the extension inserts into the latest, which must have the current columns.
   */
  async #alterInlined(id: number, changed: readonly Field[], known: ReadonlySet<string>): Promise<void> {
    const [latest] = await this.#engine.rows(
      `SELECT i.table_name AS name FROM ducklake_inlined_data_tables i JOIN duckdb_tables() d USING (table_name)
      WHERE i.table_id = ${id} AND d.database_name = current_database() ORDER BY i.schema_version DESC LIMIT 1`,
    );
    if (latest === undefined) return;
    const version = this.#before.schemaVersion + 1;
    const next = `ducklake_inlined_data_${id}_${version}`;
    await this.#engine.run(`CREATE TABLE ${next} AS FROM ${identifier(String(latest.name))} LIMIT 0`);
    for (const field of changed) {
      const name = identifier(field.name);
      const change = known.has(field.name) ? `ALTER ${name} SET DATA TYPE` : `ADD COLUMN ${name}`;
      await this.#engine.run(`ALTER TABLE ${next} ${change} ${duckDbType(field)}`);
    }
    await appendRows(this.#engine, 'ducklake_inlined_data_tables', [
      { table_id: id, table_name: next, schema_version: version },
    ]);
  }

  async #create(name: TableName, fields: readonly Field[]): Promise<void> {
    const engine = this.#engine;
    const [id, partitionId] = [this.#nextCatalogId++, this.#nextCatalogId++];
    const since = { table_id: id, begin_snapshot: this.#id };
    const path = { path: `${name}/`, path_is_relative: true };
    await appendRows(engine, 'ducklake_table', [
      { ...since, ...path, table_uuid: randomUUID(), schema_id: this.#before.schemaId, table_name: name },
    ]);
    await appendRows(engine, 'ducklake_partition_info', [{ ...since, partition_id: partitionId }]);
    const columns = this.#columnsOf(name, fields);
    await this.#addColumns(id, columns);
    const partition = columns.find((column) => column.name === PARTITION_COLUMN)?.id ?? null;
    const key = { partition_key_index: 0, column_id: partition, transform: 'identity' };
    await appendRows(engine, 'ducklake_partition_column', [{ ...key, partition_id: partitionId, table_id: id }]);
    this.#tables.set(name, { id, partitionId, columns, nextRowId: 0 });
    this.#altered.add(id);
    this.#changes.push(`created_table:"main"."${name}"`);
  }

  #columnsOf(table: TableName, fields: readonly Field[]): IdentifiedColumn[] {
    return fields.map((field) => this.#ids.columnOf(table, field));
  }

  async #addColumns(table: number, columns: readonly IdentifiedColumn[]): Promise<void> {
    const row = (id: number, name: string, type: string, parent: number | null): CatalogRow => ({
      column_id: id,
      begin_snapshot: this.#id,
      table_id: table,
      column_order: id,
      column_name: name,
      column_type: type,
      default_value: 'NULL',
      nulls_allowed: true,
      parent_column: parent,
      default_value_type: type === 'list' ? '' : 'literal',
      default_value_dialect: 'duckdb',
    });
    const rows = columns.flatMap(({ id, name, type, element }) => [
      row(id, name, type, null),
      ...(element === undefined ? [] : [row(element.id, 'element', element.type, id)]),
    ]);
    await appendRows(this.#engine, 'ducklake_column', rows);
  }

  /** Ends the removed files and adds the others; returns these with their `data_file_id`. */
  async replaceFiles({ removed, added }: ChangedFiles, logged: ReadonlyMap<NewFile, LoggedColumns>) {
    const paths = new Set(removed.map(({ path }) => path));
    const gone = this.#before.files.filter(({ path }) => paths.has(path));
    if (gone.length > 0) {
      const isOneOf = `data_file_id IN (${gone.map(({ id }) => id).join(', ')}) AND end_snapshot IS NULL`;
      const end = (table: string) =>
        this.#engine.run(`UPDATE ${table} SET end_snapshot = ${this.#id} WHERE ${isOneOf}`);
      if ((await end('ducklake_data_file')) !== gone.length) throw new LostRace(this.#engine.file);
      await end('ducklake_delete_file');
    }
    const written: { readonly id: number; readonly file: NewFile; readonly columns: LoggedColumns }[] = [];
    const files: CatalogRow[] = [];
    const statistics: CatalogRow[] = [];
    const partitions: CatalogRow[] = [];
    for (const file of added) {
      const [table, columns] = [this.#tables.get(file.table), logged.get(file)];
      if (table === undefined || columns === undefined) throw internalError(`${file.path} has no table or statistics.`);
      const id = this.#nextFileId++;
      const own = { data_file_id: id, table_id: table.id };
      files.push({
        ...own,
        begin_snapshot: this.#id,
        path: pathInTable(file.table, file.path),
        path_is_relative: true,
        file_format: 'parquet',
        record_count: file.rows,
        file_size_bytes: file.bytes,
        footer_size: file.footerBytes,
        row_id_start: table.nextRowId,
        partition_id: table.partitionId,
      });
      table.nextRowId += file.rows;
      for (const column of table.columns) {
        const counts = columns.get(column.name);
        if (counts === undefined) continue;
        statistics.push({
          ...own,
          column_id: column.element?.id ?? column.id,
          column_size_bytes: counts.bytes,
          value_count: counts.values,
          null_count: counts.nulls,
          min_value: counts.least,
          max_value: counts.greatest,
        });
      }
      partitions.push({ ...own, partition_key_index: 0, partition_value: file.date });
      written.push({ id, file, columns });
    }
    const engine = this.#engine;
    await appendRows(engine, 'ducklake_data_file', files);
    await appendRows(engine, 'ducklake_file_column_stats', statistics);
    await appendRows(engine, 'ducklake_file_partition_value', partitions);
    for (const [name, table] of this.#tables) {
      const isIn = (file: { readonly table: TableName }) => file.table === name;
      if (added.some(isIn)) this.#changes.push(`inserted_into_table:${table.id}`);
      if (gone.some(isIn)) this.#changes.push(`deleted_from_table:${table.id}`);
    }
    return written;
  }

  /** Makes the snapshot visible, if it has any change. */
  async finish(at: string, message: string): Promise<void> {
    if (this.#changes.length === 0) return;
    const schemaVersion = this.#before.schemaVersion + (this.#altered.size > 0 ? 1 : 0);
    const version = { begin_snapshot: this.#id, schema_version: schemaVersion };
    const versions = [...this.#altered].map((id) => ({ ...version, table_id: id }));
    await appendRows(this.#engine, 'ducklake_schema_versions', versions);
    await appendRows(this.#engine, 'ducklake_snapshot', [
      {
        snapshot_id: this.#id,
        snapshot_time: at,
        schema_version: schemaVersion,
        next_catalog_id: this.#nextCatalogId,
        next_file_id: this.#nextFileId,
      },
    ]);
    const author = `dfinery-elt ${VERSION}`;
    await appendRows(this.#engine, 'ducklake_snapshot_changes', [
      { snapshot_id: this.#id, changes_made: this.#changes.join(','), author, commit_message: message },
    ]);
  }

  /**
   * Computes the statistics of whole tables in the catalog: rows, and the ranges of the columns in `ranged`, over all
   * files that the catalog has, since older snapshots use them too. The reference extension answers `max` from them if
   * the rows are those of the live files alone. A column without a row in the statistics has unknown values; a row
   * without minimum and maximum would get those of the rows that another program inserts.
   */
  async summarize(ranged: ReadonlySet<string>): Promise<void> {
    const engine = this.#engine;
    for (const { id, columns, nextRowId } of this.#tables.values()) {
      for (const table of ['ducklake_table_stats', 'ducklake_table_column_stats']) {
        await engine.run(`DELETE FROM ${table} WHERE table_id = ${id}`);
      }
      await engine.run(
        `INSERT INTO ducklake_table_stats
        SELECT ${id}, coalesce(sum(record_count), 0), ${nextRowId}, coalesce(sum(file_size_bytes), 0)
        FROM ducklake_data_file WHERE table_id = ${id}`,
      );
      const ranges = columns
        .filter(({ name }) => ranged.has(name))
        .map((column) => {
          const value = (text: string) => `CAST(${text} AS ${duckDbType({ type: column.type })})`;
          return `SELECT ${id}, ${column.id}, count(*) FILTER (s.data_file_id IS NULL OR s.null_count > 0) > 0, NULL,
            arg_min(s.min_value, ${value('s.min_value')}) AS least,
            arg_max(s.max_value, ${value('s.max_value')}) AS greatest, NULL
          FROM ducklake_data_file f
          LEFT JOIN ducklake_file_column_stats s ON s.data_file_id = f.data_file_id AND s.column_id = ${column.id}
          WHERE f.table_id = ${id} HAVING least IS NOT NULL AND greatest IS NOT NULL
            AND count(*) FILTER (s.value_count > 0 AND (s.min_value IS NULL OR s.max_value IS NULL)) = 0`;
        });
      await engine.run(`INSERT INTO ducklake_table_column_stats ${ranges.join(' UNION ALL ')}`);
    }
  }
}
