import { distance } from 'fastest-levenshtein';
import schema from '../../schemas/destination-config.json' with { type: 'json' };
import valid from '../../schemas/destination-config.validator';
import type { Env } from '../base/env.ts';
import { cleanBaseUrl } from './base-url.ts';
import { flat } from './nearest.ts';
import { type ParsedConfig, parseConfig, serviceProblems, type ValuesOf } from './parse.ts';
import type { Problem } from './problems.ts';

/** Default maximum length of an id (bytes of UTF-8). */
export const DEFAULT_MAX_ID_LENGTH: number = schema.properties.max_id_length.default;

/** Converts what the schema cannot express: a choice, and a value that becomes another. */
const configOf = (values: ValuesOf<typeof schema>) => ({
  ...values,
  baseUrl: cleanBaseUrl(values.baseUrl),
  onRejected: values.onRejected as 'fail' | 'continue',
});

/** The destination's configuration: frozen, every default filled in. */
export type DestinationConfig = Readonly<ReturnType<typeof configOf>>;

export const parseDestinationConfig = (
  value: unknown,
  env: Env,
  names?: ReadonlyMap<string, string>,
): ParsedConfig<DestinationConfig> => parseConfig({ schema, valid, configOf, problems, misspelt }, value, env, names);

const PROPERTIES = Object.entries(schema.properties);
const GUARDS = PROPERTIES.filter(([, { group }]) => group === 'guard').map(([name]) => name);
/** Minimum number of letters that identify a key by its beginning. */
const MIN_BEGINNING = 6;

/** Unknown keys that are most likely a misspelt guard, which must not be ignored. */
function misspelt(given: Readonly<Record<string, unknown>>): Problem[] {
  return Object.keys(given).flatMap((name) => {
    if (Object.hasOwn(schema.properties, name)) return [];
    const guard = nearestKey(name);
    if (guard === undefined || !GUARDS.includes(guard)) return [];
    return [{ key: name, text: `${name} is not a key, surely the guard ${guard} is meant` }];
  });
}

function nearestKey(name: string): string | undefined {
  const given = flat(name);
  const ranked = PROPERTIES.map(([known]) => ({ known, edits: editsTo(flat(known), given) })).sort(
    (a, b) => a.edits - b.edits,
  );
  return ranked[0].edits <= given.length / 3 ? ranked[0].known : undefined;
}

const editsTo = (known: string, given: string): number =>
  given.length >= MIN_BEGINNING && known.startsWith(given) ? 0 : distance(known, given);

function problems(filled: Readonly<Record<string, unknown>>): Problem[] {
  const out = serviceProblems(filled, 'import_token');
  if (filled.max_deletions_percent !== undefined && filled.known_profiles === undefined) {
    out.push({ key: 'known_profiles', text: 'known_profiles is missing beside max_deletions_percent' });
  }
  return out;
}
