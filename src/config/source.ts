// This folder: configurations, from untrusted values and environment variables to frozen objects without optional
// fields. The schemas under schemas/ are the only definition.

import { tmpdir } from 'node:os';
import schema from '../../schemas/source-config.json' with { type: 'json' };
import { type Day, isDay } from '../base/days.ts';
import { parseDuration } from '../base/durations.ts';
import { type Env, secretFrom } from '../base/env.ts';
import { configFailure, messageOf } from '../base/errors.ts';
import { Secret } from '../base/secrets.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../types/type.ts';
import { baseUrlProblem, cleanBaseUrl } from './base-url.ts';
import { columnListProblems } from './column-lists.ts';
import { tokenProblem } from './header-text.ts';
import { type Problem, refuse, schemaProblems } from './problems.ts';
import { compileSchema, proved, unknownKeys, withDefaults } from './validate.ts';

/** How many days back the service exports, where no configuration says otherwise. */
export const DEFAULT_HISTORY_DAYS: number = schema.properties.history_days.default;

export type Condition = 'all' | 'include' | 'exclude';
export type SchemaMode = 'evolve' | 'freeze' | 'fail';

/** The source's configuration: frozen, every default filled in, units in the names. Keys as in schemas/source-config.json. */
export interface SourceConfig {
  readonly baseUrl: string;
  readonly serviceId: string;
  readonly exportToken: Secret;
  readonly startDate: Day | undefined;
  readonly endDate: Day | undefined;
  readonly events: readonly string[];
  readonly eventsCondition: Condition;
  readonly properties: readonly string[];
  readonly propertiesCondition: Condition;
  readonly timezone: string | undefined;
  readonly windowDays: number;
  readonly lookbackDays: number;
  readonly delivery: 'auto' | 'fresh' | 'settled';
  readonly settleHours: number;
  readonly discoverDays: number;
  readonly toDateInclusive: 'auto' | 'true' | 'false';
  readonly historyDays: number;
  readonly onGap: 'fail' | 'warn';
  readonly maxConcurrentExports: number;
  readonly exportsPerHour: number;
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: SchemaMode;
  readonly stallMs: number;
  readonly emptyBody: 'retry' | 'no_rows';
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit: string | undefined;
  readonly lockWaitMs: number;
  readonly suppressionFile: string | undefined;
  readonly suppressionKey: Secret | undefined;
  /** Names as the header of an export has them (S47). */
  readonly columnsDrop: readonly string[];
  readonly columnsHash: readonly string[];
  /** There wherever `columnsHash` names a column. */
  readonly hashKey: Secret | undefined;
  readonly spoolDir: string;
  /** How long files that left a Delta table stay for its readers. */
  readonly retentionMs: number;
}

const DAY_MS = 86_400_000;

export interface Parsed<C> {
  readonly config: C;
  /** Unknown keys: refused by the command line, warned about by the connectors. */
  readonly unknown: readonly string[];
}

/**
 * Parses an untrusted configuration. Secrets missing from it are looked for in the environment; `names` tells which
 * variables gave the keys that came from there already.
 * Throws one configuration failure that lists every problem.
 */
export function parseSourceConfig(value: unknown, env: Env, names?: ReadonlyMap<string, string>): Parsed<SourceConfig> {
  const given = objectOf(value);
  const filled = withDefaults(schema, given);
  fromEnv(filled, 'export_token', env, 'DFINERY_EXPORT_TOKEN');
  fromEnv(filled, 'suppression_key', env, 'DFINERY_SUPPRESSION_KEY');
  fromEnv(filled, 'hash_key', env, 'DFINERY_HASH_KEY');
  const unknown = unknownKeys(schema, given);
  const problems = schemaProblems(compileSchema(schema), filled);
  const secrets = [filled.export_token, filled.suppression_key, filled.hash_key];
  refuse('the configuration is not usable', { problems, further: furtherProblems(filled), unknown, secrets, names });
  return { config: Object.freeze(build(proved<Raw>(filled))), unknown };
}

export function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw configFailure('the configuration is not a JSON object: wanted { "base_url": …, "service_id": …, … }.');
}

export function fromEnv(filled: Record<string, unknown>, key: string, env: Env, name: string): void {
  if (filled[key] !== undefined) return;
  try {
    const found = secretFrom(env, name);
    if (found !== undefined) filled[key] = found;
  } catch (error) {
    throw configFailure(`the file that ${name}_FILE names cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

interface Raw {
  readonly base_url: string;
  readonly service_id: string;
  readonly export_token: string;
  readonly start_date?: string;
  readonly end_date?: string;
  readonly events: string[];
  readonly events_condition_type: Condition;
  readonly properties: string[];
  readonly properties_condition_type: Condition;
  readonly timezone?: string;
  readonly window_days: number;
  readonly lookback_days: number;
  readonly delivery: SourceConfig['delivery'];
  readonly settle_hours: number;
  readonly discover_days: number;
  readonly to_date_inclusive: SourceConfig['toDateInclusive'];
  readonly history_days: number;
  readonly on_gap: SourceConfig['onGap'];
  readonly max_concurrent_exports: number;
  readonly exports_per_hour: number;
  readonly column_types: Record<string, ColumnType>;
  readonly schema_mode: SchemaMode;
  readonly stall_minutes: number;
  readonly empty_body: SourceConfig['emptyBody'];
  readonly memory_limit?: string;
  readonly lock_wait: string;
  readonly suppression_file?: string;
  readonly suppression_key?: string;
  readonly columns_drop: string[];
  readonly columns_hash: string[];
  readonly hash_key?: string;
  readonly spool_dir?: string;
  readonly retention: string;
}

/** What a JSON schema cannot say: between keys, or about the world. Values of the wrong type are none of its business. */
function furtherProblems(filled: Readonly<Record<string, unknown>>): Problem[] {
  const out: Problem[] = [];
  const add = (key: string, text: string) => out.push({ key, text });
  const textOf = (key: string) => (typeof filled[key] === 'string' ? filled[key] : '');
  const [start, end, zone] = [textOf('start_date'), textOf('end_date'), textOf('timezone')];
  const url = typeof filled.base_url === 'string' ? baseUrlProblem(filled.base_url) : undefined;
  if (url) out.push(url);
  const token = tokenProblem('export_token', filled.export_token);
  if (token) out.push(token);
  if (zone !== '' && !isZone(zone)) {
    add('timezone', `timezone is ${JSON.stringify(zone)}, wanted an IANA name such as Asia/Seoul`);
  }
  if (isDay(start) && isDay(end) && start > end) add('start_date', `start_date ${start} is after end_date ${end}`);
  for (const [key, type] of Object.entries(filled.column_types ?? {})) {
    if (!isColumnType(type)) {
      add('column_types', `column_types.${key} is ${JSON.stringify(type)}, wanted one of ${COLUMN_TYPES.join(', ')}`);
    }
  }
  if (textOf('suppression_file') !== '' && filled.suppression_key === undefined)
    add('suppression_key', 'suppression_key is missing beside suppression_file');
  return [...out, ...columnListProblems(filled)];
}

function isZone(name: string): boolean {
  // Later versions of Node take an offset such as +09:00 for a name; no other engine here does.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

function build(raw: Raw): SourceConfig {
  return {
    baseUrl: cleanBaseUrl(raw.base_url),
    serviceId: raw.service_id,
    exportToken: new Secret(raw.export_token),
    startDate: raw.start_date,
    endDate: raw.end_date,
    events: raw.events,
    eventsCondition: raw.events_condition_type,
    properties: raw.properties,
    propertiesCondition: raw.properties_condition_type,
    timezone: raw.timezone || undefined,
    windowDays: raw.window_days,
    lookbackDays: raw.lookback_days,
    delivery: raw.delivery,
    settleHours: raw.settle_hours,
    discoverDays: raw.discover_days,
    toDateInclusive: raw.to_date_inclusive,
    historyDays: raw.history_days,
    onGap: raw.on_gap,
    maxConcurrentExports: raw.max_concurrent_exports,
    exportsPerHour: raw.exports_per_hour,
    columnTypes: new Map(Object.entries(raw.column_types)),
    schemaMode: raw.schema_mode,
    stallMs: Math.max(1, Math.round(raw.stall_minutes * 60_000)),
    emptyBody: raw.empty_body,
    memoryLimit: raw.memory_limit,
    lockWaitMs: parseDuration(raw.lock_wait) ?? 30_000,
    suppressionFile: raw.suppression_file || undefined,
    suppressionKey: raw.suppression_key ? new Secret(raw.suppression_key) : undefined,
    columnsDrop: raw.columns_drop,
    columnsHash: raw.columns_hash,
    hashKey: raw.hash_key ? new Secret(raw.hash_key) : undefined,
    spoolDir: raw.spool_dir || tmpdir(),
    retentionMs: parseDuration(raw.retention) ?? DAY_MS,
  };
}
