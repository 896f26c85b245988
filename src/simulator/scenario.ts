import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import schema from '../../schemas/scenario.json' with { type: 'json' };
import { isDay } from '../base/days.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import type { Fault } from './fault.ts';

/** Which share of the rows, and how many hours after their arrival. */
interface LaterRows {
  readonly share: number;
  readonly hours: number;
}

/** Everything the service may do one way or another, fully populated. Keys, defaults and bounds: schemas/scenario.json; meanings: docs/simulator.md. */
export interface Scenario {
  readonly days: {
    readonly to_date_inclusive: boolean;
    readonly single_days: 'as_ranges' | 'whole' | 'empty' | 'error';
    readonly selects_on: 'server' | 'correction' | 'event';
    readonly zone_hours: number;
    readonly cell_zone_hours: number;
    readonly future: 'empty' | 'error';
    readonly to_date_omitted: 'today' | 'from_date';
    readonly history_days: number;
  };
  readonly columns: {
    readonly event_name: 'event_name' | 'df_event_name';
    readonly type_drift: boolean;
    readonly hostile_names: boolean;
    readonly extra: number;
    readonly own: readonly {
      readonly name: string;
      readonly values: readonly string[];
      readonly per: 'row' | 'day';
      readonly share: number;
      readonly days?: readonly string[];
    }[];
  };
  readonly rows: {
    readonly per_day: number;
    readonly variation: number;
    readonly by_day: Readonly<Record<string, number>>;
    readonly order: 'time' | 'reverse' | 'shuffled' | 'items_apart';
    readonly late: LaterRows;
    readonly corrected: LaterRows;
    readonly withdrawn: LaterRows;
    readonly longest_delay_hours: number;
    readonly at_day_end: boolean;
    readonly users: number;
    readonly unnamed_share: number;
    readonly anonymous_share: number;
    readonly of_deleted_profiles: 'kept' | 'removed';
  };
  readonly ids: {
    readonly first_item: 0 | 1;
    readonly duplicate_share: number;
    readonly carried_share: number;
    readonly reused_share: number;
    readonly missing_share: number;
    readonly repeat_share: number;
    readonly other_item_events: 'single' | 'repeat_id' | 'numbered';
  };
  readonly format: {
    readonly framing: 'chunked' | 'length';
    readonly final_newline: boolean;
    readonly gzip: 'never' | 'accepted' | 'always';
    readonly bom: boolean;
    readonly crlf: boolean;
    readonly content_type: string;
  };
  readonly limits: {
    readonly exports_per_hour: number;
    readonly concurrent_exports: number;
    readonly deletions_per_minute: number;
    readonly window: 'fixed' | 'sliding';
    readonly failed_exports_count: boolean;
    readonly concurrent_remaining: 'actual' | 'zero';
    readonly headers: 'x-ratelimit' | 'X-Rate-Limit' | 'none';
    readonly headers_on: 'all' | '429';
    readonly reset: 'ms' | 's' | 'absent' | 'nonsense' | 'past';
    readonly retry_after: boolean;
  };
  readonly answers: {
    readonly unknown_service: '401' | '400' | 'empty';
    readonly known_events_only: boolean;
    readonly date_header: boolean;
    readonly date_skew_s: number;
  };
  readonly deletions: {
    readonly success_status: number;
    readonly failure_status: '200' | 'by_code';
    readonly over_limit: '429' | '40401';
    readonly known_ids?: readonly string[];
    readonly unmatched: '20000' | '40402' | '40403' | '40000';
    readonly codes: Readonly<Record<string, string>>;
  };
  readonly too_big: {
    readonly days: readonly string[];
    readonly longest_days?: number;
    readonly most_rows?: number;
    readonly unless_events: boolean;
    readonly status: number;
  };
  readonly faults: readonly Fault[];
}

const MAX_SHOWN_LENGTH = 60;

/** Some sections of a scenario, each with some of its keys. */
export type ScenarioPatch = { readonly [K in keyof Scenario]?: unknown };

let compiled: ValidateFunction<Scenario> | undefined;

/** Compiled when the first scenario comes: every command of the program loads this module, few have a scenario. */
function validator(): ValidateFunction<Scenario> {
  if (compiled !== undefined) return compiled;
  const ajv = new Ajv({
    allErrors: true,
    verbose: true,
    strict: false,
    useDefaults: true,
    // The schema is ours; a test checks it.
    meta: false,
    validateSchema: false,
  });
  ajv.addFormat('date', { type: 'string', validate: isDay });
  compiled = ajv.compile<Scenario>(schema);
  return compiled;
}

/** A scenario from its JSON text or from an object; what is absent has its default. Throws a config failure naming every problem. */
export function parseScenario(source: unknown): Scenario {
  const value = typeof source === 'string' ? parseJson(source) : structuredClone(source ?? {});
  if (!isObject(value)) throw configError('The scenario is not a JSON object; see docs/simulator.md.');
  const validate = validator();
  if (validate(value)) return value;
  const problems = new Set((validate.errors ?? []).flatMap(problemOf));
  throw configError(`The scenario cannot be used: ${[...problems].join(' ')} See docs/simulator.md.`);
}

/** The same scenario with some keys replaced, section by section; `faults` are replaced as a whole. */
export function patchScenario(now: Scenario, patch: ScenarioPatch): Scenario {
  const sections = Object.entries(patch).filter(([, change]) => change !== undefined);
  const merged = sections.map(([name, change]) => {
    const section: unknown = Object.hasOwn(now, name) ? now[name as keyof Scenario] : undefined;
    return [name, isObject(section) && isObject(change) ? { ...section, ...change } : change];
  });
  return parseScenario({ ...now, ...Object.fromEntries(merged) });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    throw configError('The scenario is not valid JSON.', { cause });
  }
}

/** A sentence with the path and what is wrong there; empty for an error that only repeats another. */
function problemOf(error: ErrorObject): string[] {
  const { keyword, params, schemaPath, data } = error;
  const at = error.instancePath
    .slice(1)
    .replaceAll(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.');
  if (keyword === 'if' || /\/anyOf\/\d/.test(schemaPath)) return [];
  if (keyword === 'required') return [`"${join(at, params.missingProperty)}" is missing.`];
  if (keyword === 'additionalProperties') {
    const known = Object.keys(error.parentSchema?.properties ?? {}).join(', ');
    return [`"${join(at, params.additionalProperty)}" is not known; here are known: ${known}.`];
  }
  return [`"${at}" is ${shown(data)}; wanted ${wanted(error)}.`];
}

const TYPES: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  string: 'a text',
  array: 'a list',
  object: 'an object',
};

function wanted({ keyword, parentSchema = {}, params, message }: ErrorObject): string {
  const { type, minimum, maximum, description } = parentSchema;
  if (keyword === 'anyOf') return String(description);
  if (keyword === 'enum') return `one of ${(params.allowedValues as unknown[]).map(shown).join(', ')}`;
  if (keyword === 'format') return 'a day, yyyy-MM-dd';
  if (minimum === undefined) return TYPES[String(type)] ?? String(message);
  return `a ${type === 'integer' ? 'whole number' : 'number'} from ${minimum} to ${maximum}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH - 3)}…` : text;
}

const join = (at: string, key: unknown): string => (at === '' ? String(key) : `${at}.${String(key)}`);
