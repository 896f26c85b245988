import { distance } from 'fastest-levenshtein';
import schema from '../../schemas/destination-config.json' with { type: 'json' };
import type { Env } from '../base/env.ts';
import { Secret } from '../base/secrets.ts';
import { cleanBaseUrl } from './base-url.ts';
import { flat } from './nearest.ts';
import { type ConfigOf, filledText, key, optionalSecret, type Parsed, parseConfig, serviceProblems } from './parse.ts';
import type { Problem } from './problems.ts';

/** Each key of schemas/destination-config.json. */
const KEYS = {
  baseUrl: key('base_url', cleanBaseUrl),
  serviceId: key<string>('service_id'),
  importToken: key('import_token', (token: string) => new Secret(token)),
  externalIdField: key<string>('external_id_field'),
  dryRun: key<boolean>('dry_run'),
  maxDeletionsPerSync: key<number>('max_deletions_per_sync'),
  maxDeletionsPercent: key<number | undefined>('max_deletions_percent'),
  knownProfiles: key<number | undefined>('known_profiles'),
  requestsPerMinute: key<number>('requests_per_minute'),
  maxConcurrentRequests: key<number>('max_concurrent_requests'),
  /** Bytes of UTF-8. */
  maxIdLength: key<number>('max_id_length'),
  streams: key<readonly string[]>('streams'),
  requestedBy: key('requested_by', filledText),
  reason: key('reason', filledText),
  onRejected: key<'fail' | 'continue'>('on_rejected'),
  ledgerDir: key('ledger_dir', filledText),
  ledgerKey: key('ledger_key', optionalSecret),
  /** Where the downloads of syncs lie. */
  spoolDir: key('spool_dir', filledText),
};

/** The destination's configuration: frozen, every default filled in. */
export type DestinationConfig = ConfigOf<typeof KEYS>;

/** Throws one configuration failure that lists every problem. */
export const parseDestinationConfig = (
  value: unknown,
  env: Env,
  names?: ReadonlyMap<string, string>,
): Parsed<DestinationConfig> => parseConfig({ schema, keys: KEYS, problems, misspelt }, value, env, names);

const PROPERTIES = Object.entries(schema.properties);
const GUARDS = PROPERTIES.filter(([, { group }]) => group === 'guard').map(([name]) => name);
/** Letters of a beginning that is enough to know a guard by. */
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
