import { tmpdir } from 'node:os';
import schema from '../../schemas/source-config.json' with { type: 'json' };
import { type Day, isDay } from '../base/days.ts';
import { parseDuration } from '../base/durations.ts';
import type { Env } from '../base/env.ts';
import { Secret } from '../base/secrets.ts';
import { COLUMN_TYPES, type ColumnType, isColumnType } from '../types/type.ts';
import { cleanBaseUrl } from './base-url.ts';
import { columnListProblems } from './column-lists.ts';
import { type ConfigOf, filledText, key, optionalSecret, type Parsed, parseConfig, serviceProblems } from './parse.ts';
import type { Problem } from './problems.ts';

/** How many days back the service exports, by default. */
export const DEFAULT_HISTORY_DAYS: number = schema.properties.history_days.default;

export type Condition = 'all' | 'include' | 'exclude';
export type SchemaMode = 'evolve' | 'freeze' | 'fail';

const DAY_MS = 86_400_000;

/** Each key of schemas/source-config.json, units in the names of the fields. */
const KEYS = {
  baseUrl: key('base_url', cleanBaseUrl),
  serviceId: key<string>('service_id'),
  exportToken: key('export_token', (token: string) => new Secret(token)),
  startDate: key<Day | undefined>('start_date'),
  endDate: key<Day | undefined>('end_date'),
  events: key<readonly string[]>('events'),
  eventsCondition: key<Condition>('events_condition_type'),
  properties: key<readonly string[]>('properties'),
  propertiesCondition: key<Condition>('properties_condition_type'),
  timezone: key('timezone', filledText),
  windowDays: key<number>('window_days'),
  lookbackDays: key<number>('lookback_days'),
  delivery: key<'auto' | 'fresh' | 'settled'>('delivery'),
  settleHours: key<number>('settle_hours'),
  discoverDays: key<number>('discover_days'),
  toDateInclusive: key<'auto' | 'true' | 'false'>('to_date_inclusive'),
  historyDays: key<number>('history_days'),
  onGap: key<'fail' | 'warn'>('on_gap'),
  maxConcurrentExports: key<number>('max_concurrent_exports'),
  exportsPerHour: key<number>('exports_per_hour'),
  columnTypes: key(
    'column_types',
    (types: Record<string, ColumnType>): ReadonlyMap<string, ColumnType> => new Map(Object.entries(types)),
  ),
  schemaMode: key<SchemaMode>('schema_mode'),
  stallMs: key('stall_minutes', (minutes: number) => Math.max(1, Math.round(minutes * 60_000))),
  emptyBody: key<'retry' | 'no_rows'>('empty_body'),
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  memoryLimit: key<string | undefined>('memory_limit'),
  lockWaitMs: key('lock_wait', (wait: string) => parseDuration(wait) ?? 30_000),
  suppressionFile: key('suppression_file', filledText),
  suppressionKey: key('suppression_key', optionalSecret),
  /** Names as the header of an export has them (S47). */
  columnsDrop: key<readonly string[]>('columns_drop'),
  columnsHash: key<readonly string[]>('columns_hash'),
  /** There wherever `columnsHash` names a column. */
  hashKey: key('hash_key', optionalSecret),
  spoolDir: key('spool_dir', (folder: string | undefined) => folder || tmpdir()),
  /** How long files that left a table of Delta or DuckLake stay for its readers. */
  retentionMs: key('retention', (time: string) => parseDuration(time) ?? DAY_MS),
};

/** The source's configuration: frozen, every default filled in. */
export type SourceConfig = ConfigOf<typeof KEYS>;

/** Throws one configuration failure that lists every problem. */
export const parseSourceConfig = (
  value: unknown,
  env: Env,
  names?: ReadonlyMap<string, string>,
): Parsed<SourceConfig> => parseConfig({ schema, keys: KEYS, problems }, value, env, names);

function problems(filled: Readonly<Record<string, unknown>>): Problem[] {
  const out = serviceProblems(filled, 'export_token');
  const add = (name: string, text: string) => out.push({ key: name, text });
  const textOf = (name: string) => (typeof filled[name] === 'string' ? filled[name] : '');
  const [start, end, zone] = [textOf('start_date'), textOf('end_date'), textOf('timezone')];
  if (zone !== '' && !isZone(zone)) {
    add('timezone', `timezone is ${JSON.stringify(zone)}, wanted an IANA name such as Asia/Seoul`);
  }
  if (isDay(start) && isDay(end) && start > end) add('start_date', `start_date ${start} is after end_date ${end}`);
  for (const [column, type] of Object.entries(filled.column_types ?? {})) {
    if (!isColumnType(type)) {
      const wanted = `wanted one of ${COLUMN_TYPES.join(', ')}`;
      add('column_types', `column_types.${column} is ${JSON.stringify(type)}, ${wanted}`);
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
