import { basename, extname } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { identifier, literal } from '../../../src/base/sql.ts';

/** One instance for all tests of a worker: making one takes far longer than most queries. Files are rewritten in place: no cache. */
let shared: Promise<DuckDBConnection> | undefined;
let turn: Promise<unknown> = Promise.resolve();

/** Works with a file that nobody has open, as the default database, under its own name. One at a time. */
export function inDatabase<T>(file: string, work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const done = turn.then(async () => {
    shared ??= DuckDBInstance.create(':memory:', { enable_external_file_cache: 'false' }).then((one) => one.connect());
    const connection = await shared;
    if (file === ':memory:') return work(connection);
    const name = identifier(basename(file, extname(file)));
    await connection.run(`ATTACH ${literal(file)} AS ${name}`);
    try {
      await connection.run(`USE ${name}`);
      return await work(connection);
    } finally {
      await connection.run('USE memory');
      await connection.run(`DETACH ${name}`);
    }
  });
  turn = done.catch(() => {});
  return done;
}

/** Rows of a query on a file that nobody has open, values as JSON has them. */
export const query = (file: string, sql: string): Promise<Record<string, unknown>[]> =>
  inDatabase(file, async (connection) => (await connection.runAndReadAll(sql)).getRowObjectsJson());
