import { distance } from 'fastest-levenshtein';
import schema from '../../schemas/destination-config.json' with { type: 'json' };
import type { Env } from '../base/env.ts';
import { Secret } from '../base/secrets.ts';
import { baseUrlProblem, cleanBaseUrl } from './base-url.ts';
import { tokenProblem } from './header-text.ts';
import { flat } from './nearest.ts';
import { type Problem, refuse, schemaProblems } from './problems.ts';
import { fromEnv, objectOf, type Parsed } from './source.ts';
import { compileSchema, proved, unknownKeys, withDefaults } from './validate.ts';

/** The destination's configuration: frozen, every default filled in. Keys as in schemas/destination-config.json. */
export interface DestinationConfig {
  readonly baseUrl: string;
  readonly serviceId: string;
  readonly importToken: Secret;
  readonly externalIdField: string;
  readonly dryRun: boolean;
  readonly maxDeletionsPerSync: number;
  readonly maxDeletionsPercent: number | undefined;
  readonly knownProfiles: number | undefined;
  readonly requestsPerMinute: number;
  readonly maxConcurrentRequests: number;
  /** Bytes of UTF-8. */
  readonly maxIdLength: number;
  readonly streams: readonly string[];
  readonly requestedBy: string | undefined;
  readonly reason: string | undefined;
  readonly onRejected: 'fail' | 'continue';
  readonly ledgerDir: string | undefined;
  readonly ledgerKey: Secret | undefined;
}

interface Raw {
  readonly base_url: string;
  readonly service_id: string;
  readonly import_token: string;
  readonly external_id_field: string;
  readonly dry_run: boolean;
  readonly max_deletions_per_sync: number;
  readonly max_deletions_percent?: number;
  readonly known_profiles?: number;
  readonly requests_per_minute: number;
  readonly max_concurrent_requests: number;
  readonly max_id_length: number;
  readonly streams: string[];
  readonly requested_by?: string;
  readonly reason?: string;
  readonly on_rejected: 'fail' | 'continue';
  readonly ledger_dir?: string;
  readonly ledger_key?: string;
}

/** Parses an untrusted configuration; throws one configuration failure that lists every problem. */
export function parseDestinationConfig(
  value: unknown,
  env: Env,
  names?: ReadonlyMap<string, string>,
): Parsed<DestinationConfig> {
  const given = objectOf(value);
  const filled = withDefaults(schema, given);
  fromEnv(filled, 'import_token', env, 'DFINERY_IMPORT_TOKEN');
  fromEnv(filled, 'ledger_key', env, 'DFINERY_LEDGER_KEY');
  const unknown = unknownKeys(schema, given);
  const problems = [...misspeltGuards(given), ...schemaProblems(compileSchema(schema), filled)];
  const secrets = [filled.import_token, filled.ledger_key];
  refuse('the configuration is not usable', { problems, further: furtherProblems(filled), unknown, secrets, names });
  return { config: Object.freeze(build(proved<Raw>(filled))), unknown };
}

const KEYS = Object.entries(schema.properties);
const GUARDS = KEYS.filter(([, { group }]) => group === 'guard').map(([key]) => key);
/** Letters of a beginning that is enough to know a guard by. */
const SHORTEST_BEGINNING = 6;

/** Unknown keys that are most likely a misspelt guard, which must not be ignored. */
function misspeltGuards(given: Readonly<Record<string, unknown>>): Problem[] {
  return Object.keys(given).flatMap((key) => {
    if (Object.hasOwn(schema.properties, key)) return [];
    const guard = nearestKey(key);
    if (guard === undefined || !GUARDS.includes(guard)) return [];
    return [{ key, text: `${key} is not a key, surely the guard ${guard} is meant` }];
  });
}

function nearestKey(key: string): string | undefined {
  const given = flat(key);
  const ranked = KEYS.map(([name]) => ({ name, edits: editsTo(flat(name), given) })).sort((a, b) => a.edits - b.edits);
  return ranked[0].edits <= given.length / 3 ? ranked[0].name : undefined;
}

const editsTo = (known: string, given: string): number =>
  given.length >= SHORTEST_BEGINNING && known.startsWith(given) ? 0 : distance(known, given);

/** What a JSON schema cannot say. A value of the wrong type is none of its business. */
function furtherProblems(raw: Readonly<Record<string, unknown>>): Problem[] {
  const out: Problem[] = [];
  const url = typeof raw.base_url === 'string' ? baseUrlProblem(raw.base_url) : undefined;
  if (url) out.push(url);
  const token = tokenProblem('import_token', raw.import_token);
  if (token) out.push(token);
  if (raw.max_deletions_percent !== undefined && raw.known_profiles === undefined) {
    out.push({ key: 'known_profiles', text: 'known_profiles is missing beside max_deletions_percent' });
  }
  return out;
}

function build(raw: Raw): DestinationConfig {
  return {
    baseUrl: cleanBaseUrl(raw.base_url),
    serviceId: raw.service_id,
    importToken: new Secret(raw.import_token),
    externalIdField: raw.external_id_field,
    dryRun: raw.dry_run,
    maxDeletionsPerSync: raw.max_deletions_per_sync,
    maxDeletionsPercent: raw.max_deletions_percent,
    knownProfiles: raw.known_profiles,
    requestsPerMinute: raw.requests_per_minute,
    maxConcurrentRequests: raw.max_concurrent_requests,
    maxIdLength: raw.max_id_length,
    streams: raw.streams,
    requestedBy: raw.requested_by || undefined,
    reason: raw.reason || undefined,
    onRejected: raw.on_rejected,
    ledgerDir: raw.ledger_dir || undefined,
    ledgerKey: raw.ledger_key ? new Secret(raw.ledger_key) : undefined,
  };
}
