import { configFailure } from '../../base/errors.ts';
import { idsFrom, idsFromFile } from '../../deletion/input/id-list.ts';
import { queryDuckDb } from '../../sinks/duckdb/query.ts';
import { type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { lockWait } from '../maintenance.ts';

/** The ids that the command line names, in one of three ways; each exactly as it stands there. */
export function idsOf(options: Options, context: Context): AsyncIterable<unknown> {
  const [id, file, query] = [options.id, text(options, 'file'), text(options, 'query')];
  const given = [id, file, query].filter((value) => value !== undefined).length;
  if (given !== 1) throw configFailure('forget needs exactly one of --id, --file and --query.');
  if (file === undefined && text(options, 'column') !== undefined) throw configFailure('--column needs --file.');
  if (file !== undefined) {
    const list = { column: text(options, 'column') };
    return file === '-' ? idsFrom(process.stdin, 'standard input', list) : idsFromFile(file, list);
  }
  if (query !== undefined) return fromQuery(query, text(options, 'duckdb'), options, context);
  return fromList(Array.isArray(id) ? id : [id]);
}

async function* fromList(ids: readonly unknown[]): AsyncGenerator<unknown> {
  yield* ids;
}

async function* fromQuery(
  query: string,
  file: string | undefined,
  options: Options,
  { clock, signal }: Context,
): AsyncGenerator<unknown> {
  if (file === undefined) throw configFailure('--query needs --duckdb FILE, the file to run it on.');
  const [result] = await queryDuckDb({ file, lockWaitMs: lockWait(options), clock, signal }, [query]);
  if (result.header.length > 1) {
    throw configFailure(`The query gives ${result.header.length} columns, expected one with the external IDs.`);
  }
  if (result.types[0] === 'JSON') {
    throw configFailure(
      'The query gives JSON, in which a text has quotes around it that are no part of the ID: say ->> instead of ->.',
    );
  }
  for (const [id] of result.values) {
    if (id !== null && typeof id !== 'string') {
      throw configFailure(
        'The query gives values that are no text: an ID is a text, so say CAST(… AS VARCHAR) if it is meant.',
      );
    }
    yield id;
  }
}
