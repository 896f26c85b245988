import { configFailure } from '../base/errors.ts';
import { fault } from './fault.ts';
import {
  day,
  field,
  flag,
  isObject,
  listOf,
  mapOf,
  number,
  object,
  oneOf,
  optional,
  required,
  type Shape,
  text,
  whole,
} from './shape.ts';

const share = number(0, 1);
const hours = number(-14, 14);
const someLater = object({ share: field(share, 0), hours: field(number(0, 10_000), 6) });
const NEVER_LATER = { share: 0, hours: 6 };

const days = object({
  to_date_inclusive: field(flag, true),
  selects_on: field(oneOf('server', 'correction', 'event'), 'server'),
  zone_hours: field(hours, 9),
  cell_zone_hours: field(hours, 9),
  future: field(oneOf('empty', 'error'), 'empty'),
  to_date_omitted: field(oneOf('today', 'from_date'), 'today'),
  history_days: field(whole(0), 30),
});

const ownColumn = object({
  name: required(text, ''),
  values: required(listOf(text), []),
  per: field(oneOf('row', 'day'), 'row'),
  share: field(share, 1),
  days: optional(listOf(day)),
});

const columns = object({
  event_name: field(oneOf('event_name', 'df_event_name'), 'event_name'),
  type_drift: field(flag, true),
  hostile_names: field(flag, false),
  extra: field(whole(0, 20_000), 0),
  own: field(listOf(ownColumn), []),
});

const rows = object({
  per_day: field(whole(0, 50_000_000), 500),
  variation: field(share, 0.2),
  by_day: field(mapOf(whole(0, 50_000_000)), new Map()),
  order: field(oneOf('time', 'reverse', 'shuffled', 'items_apart'), 'time'),
  late: field(someLater, NEVER_LATER),
  corrected: field(someLater, NEVER_LATER),
  withdrawn: field(someLater, NEVER_LATER),
  longest_delay_hours: field(number(0, 720), 24),
  users: field(whole(1, 100_000_000), 2_000),
  unnamed_share: field(share, 0),
  of_deleted_profiles: field(oneOf('kept', 'removed'), 'kept'),
});

const ids = object({
  first_item: field(oneOf(0, 1), 0),
  duplicate_share: field(share, 0),
  missing_share: field(share, 0),
  repeat_share: field(share, 0),
  other_item_events: field(oneOf('single', 'repeat_id', 'numbered'), 'single'),
});

const format = object({
  framing: field(oneOf('chunked', 'length'), 'chunked'),
  final_newline: field(flag, true),
  gzip: field(oneOf('never', 'accepted', 'always'), 'never'),
  bom: field(flag, false),
  crlf: field(flag, false),
  content_type: field(text, 'text/csv;charset=UTF-8'),
});

const limits = object({
  exports_per_hour: field(whole(0), 100),
  concurrent_exports: field(whole(0), 5),
  deletions_per_minute: field(whole(0), 10_000),
  window: field(oneOf('fixed', 'sliding'), 'fixed'),
  failed_exports_count: field(flag, true),
  concurrent_remaining: field(oneOf('actual', 'zero'), 'actual'),
  headers: field(oneOf('x-ratelimit', 'X-Rate-Limit', 'none'), 'x-ratelimit'),
  headers_on: field(oneOf('all', '429'), 'all'),
  reset: field(oneOf('ms', 's', 'absent', 'nonsense', 'past'), 'ms'),
  retry_after: field(flag, false),
});

const answers = object({
  unknown_service: field(oneOf('401', '400', 'empty'), '401'),
  known_events_only: field(flag, false),
  date_header: field(flag, true),
  date_skew_s: field(number(-1e9, 1e9), 0),
});

const deletions = object({
  success_status: field(whole(200, 299), 200),
  failure_status: field(oneOf('200', 'by_code'), '200'),
  over_limit: field(oneOf('429', '40401'), '429'),
  known_ids: optional(listOf(text)),
  unmatched: field(oneOf('20000', '40402', '40403', '40000'), '20000'),
  codes: field(mapOf(text), new Map()),
});

const tooBig = object({
  days: field(listOf(day), []),
  longest_days: optional(whole(0)),
  most_rows: optional(whole(0)),
  unless_events: field(flag, true),
  status: field(whole(400, 599), 500),
});

const scenario = object({
  days: required(days, read(days, {})),
  columns: required(columns, read(columns, {})),
  rows: required(rows, read(rows, {})),
  ids: required(ids, read(ids, {})),
  format: required(format, read(format, {})),
  limits: required(limits, read(limits, {})),
  answers: required(answers, read(answers, {})),
  deletions: required(deletions, read(deletions, {})),
  too_big: required(tooBig, read(tooBig, {})),
  faults: field(listOf(fault), []),
});

/** Everything the service may do one way or another, fully populated. Keys and meanings: docs/simulator.md. */
export type Scenario = NonNullable<ReturnType<typeof scenario>>;
export type Format = Scenario['format'];
type Sections = { readonly [K in keyof Scenario]?: unknown };
const SECTIONS = ['days', 'columns', 'rows', 'ids', 'format', 'limits', 'answers', 'deletions', 'too_big'] as const;

function read<T>(shape: Shape<T>, value: unknown): T {
  const problems: string[] = [];
  const out = shape(value, '', problems);
  if (out === undefined || problems.length > 0) {
    throw configFailure(`The scenario cannot be used: ${problems.join(' ')} See docs/simulator.md.`);
  }
  return out;
}

/** A scenario from its JSON text or from an object; what is absent has its default. Throws a config failure naming every problem. */
export function parseScenario(source: unknown): Scenario {
  const value = typeof source === 'string' ? parseJson(source) : (source ?? {});
  if (!isObject(value)) throw configFailure('The scenario is not a JSON object; see docs/simulator.md.');
  const whole: Record<string, unknown> = { ...value };
  for (const name of SECTIONS) whole[name] ??= {};
  return read(scenario, whole);
}

/** The same scenario with some keys replaced, section by section; `faults` are replaced as a whole. */
export function patchScenario(now: Scenario, patch: Sections): Scenario {
  const merged: Record<string, unknown> = { ...now, ...patch };
  for (const name of SECTIONS) {
    const change = patch[name];
    if (change !== undefined) merged[name] = isObject(change) ? { ...now[name], ...change } : change;
  }
  return parseScenario(merged);
}

export type ScenarioPatch = Sections;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    throw configFailure('The scenario is not valid JSON.', { cause });
  }
}
