import valid from '../../schemas/scenario.validator';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import type { SchemaError } from '../base/validator.ts';
import {
  choice,
  DAY,
  flag,
  type Key,
  list,
  map,
  number,
  oneOrMany,
  optional,
  properties,
  section,
  share,
  TEXT,
  text,
  type ValuesOf,
  whole,
} from './scenario-key.ts';

/** The share of the rows that are affected, and the hours after their arrival. */
const LATER = section({ share: share(0), hours: number(6, 0, 10_000) });
const EVENTS_A_DAY = whole(500, 0, 50_000_000);

export type Operation = 'export' | 'delete';

/** The conditions of a fault, all of which must be met. */
const WHEN = section({
  operation: optional(choice<Operation>('export', 'delete')),
  nth: oneOrMany(whole(1, 1)),
  after: optional(whole(0)),
  day: oneOrMany(DAY),
  external_id: oneOrMany(TEXT),
  probability: share(1),
  times: optional(whole(1, 1)),
});

/** The place where a body ends: a byte of the plain CSV, or a place after a number of data rows. */
const PLACE = {
  at_byte: optional(whole(0)),
  at: choice('mid_row', 'mid_quote', 'between_rows', 'row_end'),
  after_rows: whole(3),
};
const MESSAGE = text('client_connection_closed');
const ROW = { row: whole(2, 1) };

/** The kinds of fault by the operation that they affect, each with its keys. */
export const FAULTS = {
  both: {
    status: {
      status: whole(500, 200, 599),
      body: optional(TEXT),
      content_type: optional(TEXT),
      retry_after_s: optional(whole(0)),
    },
    rate_limit: { remaining: whole(0), reset: choice('given', 'absent'), reset_in_s: number(60, -1e9, 1e9) },
    refuse: {},
    redirect: { status: choice(302, 301, 303, 307, 308), location: optional(TEXT) },
    reset: PLACE,
    stall: { ...PLACE, for_s: optional(number(0, 0, 1e9)) },
  },
  export: {
    /** With `by: generator`, everything after the rows (compression, a length) is complete. */
    cut: { ...PLACE, by: choice('connection', 'generator') },
    drop: PLACE,
    slow: { bytes_per_s: whole(1_000, 1) },
    json_200: { message: MESSAGE, content_type: text('application/json') },
    json_tail: { message: MESSAGE, after_rows: optional(whole(0)) },
    empty_body: {},
    gzip: { variant: choice('good', 'cut', 'corrupt_trailer', 'not_gzip') },
    wrong_length: { by: whole(100, -1e9, 1e9) },
    endless: {},
    bom: {},
    crlf: {},
    row_short: ROW,
    row_long: ROW,
  },
  delete: {
    code: { code: text('50000'), status: optional(whole(200, 200, 599)), message: optional(TEXT) },
    cut_after: {},
  },
};
const KINDS = { ...FAULTS.both, ...FAULTS.export, ...FAULTS.delete };

export type FaultKind = keyof typeof KINDS;
export type FaultOf<K extends FaultKind> = {
  [N in K]: { readonly kind: N } & ValuesOf<{ when: typeof WHEN }> & ValuesOf<(typeof KINDS)[N]>;
}[K];
export type Fault = FaultOf<FaultKind>;

const FAULT: Key<Fault> = {
  schema: {
    type: 'object',
    required: ['kind'],
    properties: { kind: optional(choice(...Object.keys(KINDS))).schema, when: WHEN.schema },
    // The keys of each kind.
    allOf: Object.entries(KINDS).map(([kind, keys]) => ({
      if: { properties: { kind: { const: kind } }, required: ['kind'] },
      then: { additionalProperties: false, properties: { kind: true, when: true, ...properties(keys) } },
    })),
  },
};

/** The behaviours of the service that can vary: keys, defaults and bounds. docs/simulator.md describes them. */
const SECTIONS = {
  days: section({
    to_date_inclusive: flag(true),
    single_days: choice('as_ranges', 'whole', 'empty', 'error'),
    selects_on: choice('server', 'correction', 'event'),
    zone_hours: number(9, -14, 14),
    cell_zone_hours: number(9, -14, 14),
    future: choice('empty', 'error'),
    to_date_omitted: choice('today', 'from_date'),
    history_days: whole(30),
  }),
  columns: section({
    event_name: choice('event_name', 'df_event_name'),
    type_drift: flag(true),
    hostile_names: flag(false),
    extra: whole(0, 0, 20_000),
    own: list(
      section(
        {
          name: TEXT,
          values: list(TEXT),
          per: choice('row', 'day'),
          share: share(1),
          days: optional(list(DAY)),
        },
        'name',
        'values',
      ),
    ),
  }),
  rows: section({
    per_day: EVENTS_A_DAY,
    variation: number(0.2, 0, 1),
    by_day: map(EVENTS_A_DAY),
    order: choice('time', 'reverse', 'shuffled', 'items_apart'),
    late: LATER,
    corrected: LATER,
    withdrawn: LATER,
    longest_delay_hours: number(24, 0, 720),
    at_day_end: flag(false),
    users: whole(2_000, 1, 100_000_000),
    unnamed_share: share(0),
    anonymous_share: share(0),
    of_deleted_profiles: choice('kept', 'removed'),
  }),
  ids: section({
    first_item: choice(0, 1),
    duplicate_share: share(0),
    carried_share: share(0),
    reused_share: share(0),
    missing_share: share(0),
    repeat_share: share(0),
    other_item_events: choice('single', 'repeat_id', 'numbered'),
  }),
  format: section({
    framing: choice('chunked', 'length'),
    final_newline: flag(true),
    gzip: choice('never', 'accepted', 'always'),
    bom: flag(false),
    crlf: flag(false),
    content_type: text('text/csv;charset=UTF-8'),
  }),
  limits: section({
    exports_per_hour: whole(100),
    concurrent_exports: whole(5),
    deletions_per_minute: whole(10_000),
    window: choice('fixed', 'sliding'),
    failed_exports_count: flag(true),
    concurrent_remaining: choice('actual', 'zero'),
    headers: choice('x-ratelimit', 'X-Rate-Limit', 'none'),
    headers_on: choice('all', '429'),
    reset: choice('ms', 's', 'absent', 'nonsense', 'past'),
    retry_after: flag(false),
  }),
  answers: section({
    unknown_service: choice('401', '400', 'empty'),
    known_events_only: flag(false),
    date_header: flag(true),
    date_skew_s: number(0, -1e9, 1e9),
  }),
  deletions: section({
    success_status: whole(200, 200, 299),
    failure_status: choice('200', 'by_code'),
    over_limit: choice('429', '40401'),
    known_ids: optional(list(TEXT)),
    unmatched: choice('20000', '40402', '40403', '40000'),
    codes: map(TEXT),
  }),
  too_big: section({
    days: list(DAY),
    longest_days: optional(whole(0)),
    most_rows: optional(whole(0)),
    unless_events: flag(true),
    status: whole(500, 400, 599),
  }),
  faults: list(FAULT),
};

/** A scenario with every default filled in. */
export type Scenario = ValuesOf<typeof SECTIONS>;

/** The content of schemas/scenario.json, which a test writes. */
export const SCENARIO_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Scenario of the simulator',
  description:
    'What the embedded service does; the meaning of each key is in docs/simulator.md. Every key is optional.',
  type: 'object',
  additionalProperties: false,
  properties: properties(SECTIONS),
};

/** A part of a scenario: some sections, each with some of its keys. */
export type ScenarioPatch = { readonly [K in keyof Scenario]?: unknown };

/** Parses a scenario; absent keys have their defaults. Throws a config failure that names every problem. */
export function parseScenario(source: unknown): Scenario {
  const value: unknown = structuredClone(source);
  if (!isObject(value)) throw configError('The scenario is not a JSON object; see docs/simulator.md.');
  if (valid<Scenario>(value)) return value;
  const problems = new Set((valid.errors ?? []).flatMap(problemOf));
  throw configError(`The scenario cannot be used: ${[...problems].join(' ')} See docs/simulator.md.`);
}

/** Replaces some keys of a scenario, section by section; `faults` are replaced as a whole. */
export function patchScenario(now: Scenario, patch: ScenarioPatch): Scenario {
  const sections = Object.entries(patch).filter(([, change]) => change !== undefined);
  const merged = sections.map(([name, change]) => {
    const section: unknown = Object.hasOwn(now, name) ? now[name as keyof Scenario] : undefined;
    return [name, isObject(section) && isObject(change) ? { ...section, ...change } : change];
  });
  return parseScenario({ ...now, ...Object.fromEntries(merged) });
}

const MAX_SHOWN_LENGTH = 60;

/** A sentence with the path and its problem; empty for an error that only repeats another. */
function problemOf({ keyword, params, schemaPath, instancePath, data, parentSchema = {} }: SchemaError): string[] {
  if (keyword === 'if' || /\/anyOf\/\d/.test(schemaPath)) return [];
  const path = instancePath.slice(1).replaceAll(/\/(\d+)/g, '[$1]');
  const at = (...names: unknown[]) => `"${[path, ...names].filter(Boolean).join('/').replaceAll('/', '.')}"`;
  if (keyword === 'required') return [`${at(params.missingProperty)} is missing.`];
  if (keyword === 'additionalProperties') {
    const known = Object.keys(parentSchema.properties ?? {}).join(', ');
    return [`${at(params.additionalProperty)} is not known; here are known: ${known}.`];
  }
  const shown = JSON.stringify(data);
  const short = shown.length > MAX_SHOWN_LENGTH ? `${shown.slice(0, MAX_SHOWN_LENGTH - 3)}…` : shown;
  return [`${at()} is ${short}; wanted ${parentSchema.description}.`];
}
