import { literal } from '../../../cells/types/sql.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { identifier } from '../../../engine/session/quote.ts';
import { type CatalogSnapshot, dataTables, inlinedDeletes, inlinedTables } from './snapshot.ts';

/** Paths, from the folder of the schema, of files that left the tables and are kept for older snapshots. */
export async function keptPaths(engine: Engine, snapshot: CatalogSnapshot): Promise<Set<string>> {
  const own = dataTables(snapshot);
  const rows = await engine.rows(
    `SELECT table_name || '/' || path AS path FROM ducklake_data_file JOIN ${own} USING (table_id)
    WHERE end_snapshot <= ${snapshot.snapshotId}
    UNION ALL SELECT table_name || '/' || path FROM ducklake_delete_file JOIN ${own} USING (table_id)
    UNION ALL SELECT substr(path, ${snapshot.schemaPath.length + 1})
    FROM ducklake_files_scheduled_for_deletion WHERE path_is_relative`,
  );
  return new Set(rows.map(({ path }) => String(path)));
}

/**
 * Removes all snapshots before one, and everything that only they had in the catalog: files, statistics, and rows in
 * the catalog itself. Files of other programs' tables are left to `ducklake_cleanup_old_files`. Called inside a
 * transaction; returns the paths of this program's files, from the folder of the schema.
 */
export async function expireSnapshots(
  engine: Engine,
  snapshot: CatalogSnapshot,
  names: ReadonlySet<string>,
  { before, at }: { readonly before: number; readonly at: string },
): Promise<string[]> {
  for (const table of ['ducklake_snapshot', 'ducklake_snapshot_changes']) {
    await engine.run(`DELETE FROM ${table} WHERE snapshot_id < ${before}`);
  }
  const paths: string[] = [];
  for (const kind of ['data', 'delete']) {
    const [files, isOver] = [`ducklake_${kind}_file`, `end_snapshot <= ${before}`];
    const own = await engine.rows(
      `SELECT table_name || '/' || path AS path FROM ${files}
      JOIN ${dataTables(snapshot)} USING (table_id) WHERE ${isOver}`,
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
      WHERE f.${isOver} AND f.table_id NOT IN (SELECT table_id FROM ${dataTables(snapshot)})`,
    );
    await engine.run(`DELETE FROM ${files} WHERE ${isOver}`);
  }
  for (const table of ['ducklake_file_column_stats', 'ducklake_file_partition_value']) {
    await engine.run(`DELETE FROM ${table} WHERE data_file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)`);
  }
  for (const { inlined } of await inlinedTables(engine, snapshot)) {
    await engine.run(`DELETE FROM ${identifier(inlined)} WHERE end_snapshot <= ${before}`);
  }
  for (const inlined of inlinedDeletes(snapshot.tables, names)) {
    await engine.run(`DELETE FROM ${inlined} WHERE file_id NOT IN (SELECT data_file_id FROM ducklake_data_file)`);
  }
  return paths;
}
