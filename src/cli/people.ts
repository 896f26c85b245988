import { Readable } from 'node:stream';
import { configError } from '../base/errors.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { EngineOptions } from '../engine/session/engine.ts';
import { idsFrom, idsFromFile, type ListOptions } from '../erasure/input/id-list.ts';
import { placeName, type StoredPlace } from '../erasure/place-purge.ts';
import { STATEFUL_TARGETS } from '../targets/targets.ts';
import { targetNamed, text, type ValuesOf } from './command.ts';
import { type Context, secretOf } from './context.ts';
import type { PLACE_OPTIONS } from './destination.ts';

// The shared parts of the commands about people: the options that name them, and the places to search.

export const LIST_OPTIONS = {
  id: text('An external ID'),
  file: text('CSV, JSON Lines, or one ID a line; - for standard input'),
  column: text('Name of the column with the external IDs'),
};
export const MAPPING_OPTION = text('File with the columns external_id and df_unified_id');

interface ListValues extends ValuesOf<typeof LIST_OPTIONS>, Pick<ValuesOf<typeof PLACE_OPTIONS>, 'lockWait'> {
  readonly query?: string | undefined;
  readonly duckdb?: string | undefined;
}

/** The ids that one of the options names, each exactly as it is written. */
export function idsOf(
  { id, file, column, query, duckdb, lockWait }: ListValues,
  list: ListOptions,
  { clock, signal }: Context,
): AsyncIterable<unknown> {
  if (id !== undefined && !isValidText(id)) {
    throw configError('--id is not valid UTF-8, or holds the character U+FFFD itself: give the ID in a --file.');
  }
  if (file !== undefined) {
    const of = { ...list, column };
    return file === '-' ? idsFrom(process.stdin, 'standard input', of) : idsFromFile(file, of);
  }
  if (query === undefined) return Readable.from([id]);
  if (duckdb === undefined) throw configError('--query needs --duckdb FILE, the file to run it on.');
  return fromQuery(query, { file: duckdb, lockWaitMs: lockWait, clock, signal });
}

/**
 * False if a word of the command line may be another than was given: Node puts U+FFFD in place of bytes that are no
 * UTF-8.
 */
export const isValidText = (word: string): boolean => !word.includes('\ufffd');

async function* fromQuery(query: string, place: Omit<EngineOptions, 'readOnly'>): AsyncGenerator<unknown> {
  const { queryDuckDb } = await import('../targets/duckdb/query.ts');
  const [result] = await queryDuckDb(place, [query]);
  if (result.header.length > 1) {
    throw configError(`The query gives ${result.header.length} columns, expected one with the external IDs.`);
  }
  if (result.types[0] === 'JSON') {
    throw configError(
      'The query gives JSON, in which a text has quotes around it that are no part of the ID: say ->> instead of ->.',
    );
  }
  for (const [id] of result.values) {
    if (id !== null && typeof id !== 'string') {
      throw configError(
        'The query gives values that are no text: an ID is a text, so say CAST(… AS VARCHAR) if it is meant.',
      );
    }
    yield id;
  }
}

/** The places of an option that takes a target and a place, any number of times. */
export function storedPlaces(
  name: string,
  given: readonly (readonly [target: string, place: string])[],
): StoredPlace[] {
  const places: StoredPlace[] = [];
  for (const [kind, path] of given) {
    const target = targetNamed(kind, STATEFUL_TARGETS, `--${name}`);
    if (places.some((place) => placeName(place) === placeName({ target, path }))) {
      throw configError(`--${name} names ${target.name} ${path} twice: a link and what it leads to are one place.`);
    }
    places.push({ target, path });
  }
  return places;
}

export function hashKeyFrom(context: Context): HashKey | undefined {
  const key = secretOf('DFINERY_HASH_KEY', context);
  return key && new HashKey(key);
}
