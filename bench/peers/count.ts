import { existsSync, readFileSync } from 'node:fs';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC } from 'apache-arrow';

/**
 * Counts the rows of the table `events` of a DuckDB file, in whichever schema a tool puts it, or of an Arrow stream; 0
 * if there is none.
 */
export async function countRows(path: string): Promise<number> {
  if (!existsSync(path)) return 0;
  if (path.endsWith('.arrows')) return rowsOfStream(path);
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  try {
    const tables = await connection.runAndReadAll(
      `SELECT format('"{}"."{}"', schema_name, table_name) AS name FROM duckdb_tables()
      WHERE table_name = 'events' AND NOT ends_with(schema_name, '_staging')`,
    );
    const [name] = tables.getRowObjectsJS().map((row) => String(row.name));
    return name === undefined ? 0 : await rowsOf(connection, name);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function rowsOf(connection: DuckDBConnection, from: string): Promise<number> {
  const counted = await connection.runAndReadAll(`SELECT count(*)::INTEGER AS rows FROM ${from}`);
  return Number(counted.getRowObjectsJS()[0]?.rows);
}

/** Counts the rows of a stream; one that was cut is counted up to the cut. */
function rowsOfStream(path: string): number {
  try {
    return tableFromIPC(readFileSync(path)).numRows;
  } catch {
    return 0;
  }
}
