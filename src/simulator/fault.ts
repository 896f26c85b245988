import { day, field, flag, number, object, oneOf, oneOrMore, optional, tagged, text, whole } from './shape.ts';

/** When a fault happens: all conditions given must hold. */
const when = object({
  operation: optional(oneOf('export', 'delete')),
  /** The n-th request of its operation since the start or since the faults were set; from 1. */
  nth: optional(oneOrMore(whole(1))),
  after: optional(whole(0)),
  day: optional(oneOrMore(day)),
  least_days: optional(whole(1)),
  unfiltered: field(flag, false),
  external_id: optional(oneOrMore(text)),
  probability: field(number(0, 1), 1),
  times: optional(whole(1)),
});

const ALWAYS = {
  operation: undefined,
  nth: undefined,
  after: undefined,
  day: undefined,
  least_days: undefined,
  unfiltered: false,
  external_id: undefined,
  probability: 1,
  times: undefined,
};

const rule = { when: field(when, ALWAYS) };
/** Where a body ends: a byte of the plain CSV, or a place looked for after so many data rows. */
const place = {
  ...rule,
  at_byte: optional(whole(0)),
  at: field(oneOf('mid_row', 'mid_quote', 'between_rows'), 'mid_row'),
  after_rows: field(whole(0), 3),
};

const kinds = {
  status: { ...rule, status: field(whole(200, 599), 500), body: optional(text), content_type: optional(text) },
  rate_limit: {
    ...rule,
    remaining: field(whole(0), 0),
    reset: field(oneOf('given', 'absent'), 'given'),
    reset_in_s: field(number(-1e9, 1e9), 60),
  },
  refuse: rule,
  reset: place,
  cut: place,
  drop: place,
  stall: { ...place, for_s: optional(number(0, 1e9)) },
  slow: { ...rule, bytes_per_s: field(whole(1), 1_000) },
  json_200: {
    ...rule,
    message: field(text, 'client_connection_closed'),
    content_type: field(text, 'application/json'),
  },
  json_tail: { ...rule, message: field(text, 'client_connection_closed'), after_rows: optional(whole(0)) },
  empty_body: rule,
  header_only: rule,
  gzip: { ...rule, variant: field(oneOf('good', 'cut', 'corrupt_trailer', 'not_gzip'), 'good') },
  wrong_length: { ...rule, by: field(whole(-1e9, 1e9), 100) },
  bom: rule,
  crlf: rule,
  row_short: { ...rule, row: field(whole(1), 2) },
  row_long: { ...rule, row: field(whole(1), 2) },
  redirect: { ...rule, status: field(oneOf(301, 302, 303, 307, 308), 302), location: optional(text) },
  code: { ...rule, code: field(text, '50000'), status: optional(whole(200, 599)), message: optional(text) },
  cut_after: rule,
};

export const FAULT_KINDS: readonly string[] = Object.keys(kinds);
export const fault = tagged(kinds);

export type Fault = NonNullable<ReturnType<typeof fault>>;
export type FaultKind = Fault['kind'];
export type FaultOf<K extends FaultKind> = Extract<Fault, { kind: K }>;
export type When = Fault['when'];
