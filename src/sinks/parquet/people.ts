import { join } from 'node:path';
import { configFailure } from '../../base/errors.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { identifier, pathLiteral } from '../duckdb/sql.ts';
import { type DatasetOptions, openExisting } from './dataset.ts';

/** The same as for a DuckDB file: the `df_unified_id`s of the rows whose column holds one of these texts. */
export async function peopleInParquet(
  options: DatasetOptions,
  column: string,
  texts: readonly string[],
): Promise<string[]> {
  const dataset = await openExisting(options);
  try {
    const { manifest } = dataset;
    const nameOf = (source: string) => manifest.columns.find((c) => c.source === source && c.type !== null)?.name;
    const name = nameOf(column);
    if (name === undefined) throw configFailure(`${options.dir} has no column ${column}: nothing was done.`);
    const files = manifest.files.filter((file) => file.path.startsWith('events/')).map((file) => file.path);
    if (files.length === 0) return [];
    const id = identifier(nameOf(UNIFIED_ID) ?? UNIFIED_ID);
    const list = files.map((path) => pathLiteral(join(options.dir, path))).join(', ');
    const rows = await dataset.engine.rows(
      `SELECT DISTINCT ${id} AS id FROM read_parquet([${list}], hive_partitioning = false) WHERE ${id} IS NOT NULL
       AND CAST(${identifier(name)} AS VARCHAR) IN (SELECT unnest(from_json($1, '["VARCHAR"]')))`,
      [JSON.stringify(texts)],
    );
    return rows.map((row) => String(row.id));
  } finally {
    await dataset.close();
  }
}
