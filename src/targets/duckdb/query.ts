import { configError, messageOf } from '../../base/errors.ts';
import { fileExists } from '../../engine/session/database-file.ts';
import type { EngineOptions } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open.ts';

/** A small result as texts for a person. */
export interface QueryResult {
  readonly header: readonly string[];
  /** DuckDB's names of the columns' types; `JSON` for JSON that is stored as text. */
  readonly types: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** The rows as values, with null and with numbers as numbers. */
  readonly values: readonly (readonly unknown[])[];
}

/**
 * Runs queries, each one SELECT statement, on a file that is opened for reading alone, without access to any other file
 * or address. Throws a configuration failure with DuckDB's own message if a query is wrong.
 */
export async function queryDuckDb(options: EngineOptions, queries: readonly string[]): Promise<QueryResult[]> {
  if (!fileExists(options.file)) throw configError(`${options.file} does not exist.`);
  return withFile({ ...options, readOnly: true }, async (engine) => {
    await engine.run('SET enable_external_access = false');
    const results: QueryResult[] = [];
    for (const sql of queries) {
      const found = await engine.select(sql).catch((error: unknown) => {
        throw configError(`The query is not usable: ${withoutCells(messageOf(error))}`, { cause: error });
      });
      if (found === undefined) throw configError('The query is not one SELECT statement: nothing was run.');
      const { names: header, types, rows: values } = found;
      results.push({ header, types, rows: values.map((row) => row.map(shownText)), values });
    }
    return results;
  });
}

/**
 * The part of a message that cannot quote a cell: a message about the query has only its words in the first line.
 */
function withoutCells(message: string): string {
  if (/^(Parser|Binder|Catalog|Syntax|Permission) Error/.test(message)) return message.split('\n', 1)[0];
  const [, kind = 'an error'] = /^([A-Z][A-Za-z ]* Error)/.exec(message) ?? [];
  return `DuckDB ended it with ${kind}, perhaps for a cell that does not fit. No cell is shown here: run it in DuckDB to see more.`;
}

function shownText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString().replace(/T00:00:00\.000Z$/, '');
  return String(value);
}
