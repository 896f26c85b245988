import type { ExportRefusal } from './answer.ts';

/** What a body's first bytes look like, a BOM and white space aside. */
export type Content = 'empty' | 'json' | 'html' | 'other';

/** The properties of an answer by which it is classified. */
export interface AnswerFacts {
  readonly status: number;
  readonly content: Content;
  /** The reason in a JSON body, where there is one, in lower case. */
  readonly reason: string | undefined;
  readonly host: string;
  /** Origin that a redirect points to. */
  readonly location: string | undefined;
}

export interface OutcomeRow {
  /** One status, or the first and the last of a range. */
  readonly status: number | readonly [number, number];
  readonly content?: readonly Content[];
  readonly reason?: readonly string[];
  readonly kind: ExportRefusal['kind'];
  /** Stable, for logs and tests; absent: the reason in the body. */
  readonly code?: string;
  /** For `retry` and `retry_or_split` a clause that can follow "because"; else sentences. */
  readonly message: (facts: AnswerFacts) => string;
}

const ANY = [100, 599] as const;
const SUCCESS_OR_REFUSAL = [
  [200, 200],
  [400, 428],
  [430, 499],
] as const;

const reasonOf = (facts: AnswerFacts): string => facts.reason ?? 'no reason that is known';
const failed = ({ host, status, reason }: AnswerFacts): string =>
  `${host} answered ${status}${reason === undefined ? '' : ` (${reason})`}`;
const TOKEN =
  'check export_token and service_id. A token that was reissued in the console (service management, key information, API ' +
  'token) replaces the old one.';
const BASE = 'is base_url right?';

/** A reason that is known outweighs the status it comes with: the provider is known to send failures as 200. */
const BY_REASON: readonly OutcomeRow[] = SUCCESS_OR_REFUSAL.flatMap((status): OutcomeRow[] => [
  {
    status,
    reason: ['unauthorized_token', 'invalid_token', 'invalid_service_id'],
    kind: 'config',
    message: (facts) => `${facts.host} does not accept the export token (${reasonOf(facts)}): ${TOKEN}`,
  },
  {
    status,
    reason: ['exceed_date_range_limit'],
    kind: 'gone',
    message: (facts) => `${facts.host} no longer exports days as old as this (exceed_date_range_limit).`,
  },
  {
    status,
    reason: ['invalid_parameter'],
    kind: 'invalid',
    message: (facts) =>
      `${facts.host} refuses the request (invalid_parameter): a service_id, a day, an event or a property it does not take.`,
  },
  {
    status,
    reason: ['too_many_api_requests', 'too_many_request', 'too_many_requests'],
    kind: 'wait',
    message: (facts) => `${facts.host} says that the limit of exports is reached (${reasonOf(facts)}).`,
  },
  { status, reason: ['unknown_error', 'query_error'], kind: 'retry_or_split', message: failed },
  { status, reason: ['client_connection_closed'], kind: 'retry', message: failed },
]);

/**
 * Every answer but a 200 that begins like CSV or has no byte at all, which is data until the scan says otherwise.
 * First match wins; the last row matches everything.
 */
export const EXPORT_OUTCOMES: readonly OutcomeRow[] = [
  ...BY_REASON,
  {
    status: 200,
    content: ['json'],
    kind: 'retry',
    code: 'json_200',
    message: (facts) => `${failed(facts)} in place of CSV`,
  },
  {
    status: 200,
    content: ['html'],
    kind: 'retry',
    code: 'html_200',
    message: (facts) => `${facts.host} answered with an HTML page in place of CSV`,
  },
  { status: [100, 299], kind: 'retry', code: 'odd_status', message: failed },
  {
    status: [300, 399],
    kind: 'config',
    code: 'redirect',
    message: ({ host, status, location }) =>
      `${host} answered ${status} and points to ${location ?? 'nowhere'}, which is not followed, since the token is for ${host} alone: ${BASE}`,
  },
  {
    status: 400,
    kind: 'invalid',
    code: 'bad_request',
    message: (facts) => `${facts.host} refuses the request (400, ${reasonOf(facts)}).`,
  },
  {
    status: 401,
    kind: 'config',
    code: 'unauthorized',
    message: (facts) => `${facts.host} does not accept the export token (401, ${reasonOf(facts)}): ${TOKEN}`,
  },
  {
    status: 403,
    kind: 'config',
    code: 'forbidden',
    message: (facts) => `${facts.host} forbids the export (403, ${reasonOf(facts)}): ${TOKEN}`,
  },
  {
    status: [404, 405],
    kind: 'config',
    code: 'not_here',
    message: ({ host, status }) => `${host} knows no export under base_url (${status}): ${BASE}`,
  },
  {
    status: 407,
    kind: 'config',
    code: 'proxy',
    message: () => 'The proxy wants a user name and a password (407): put them into HTTPS_PROXY.',
  },
  { status: 408, kind: 'retry', code: 'timeout', message: failed },
  { status: 413, kind: 'retry_or_split', code: 'too_large', message: failed },
  { status: 422, kind: 'invalid', code: 'bad_request', message: (facts) => `${facts.host} refuses the request (422).` },
  // Conflict, locked, failed dependency, too early: states that pass.
  { status: 409, kind: 'retry', code: 'busy', message: failed },
  { status: [423, 425], kind: 'retry', code: 'busy', message: failed },
  {
    status: 429,
    kind: 'wait',
    code: 'too_many_api_requests',
    message: (facts) => `${facts.host} says that the limit of exports is reached (429).`,
  },
  { status: 499, kind: 'retry', code: 'closed', message: failed },
  {
    status: [402, 499],
    kind: 'config',
    code: 'refused_request',
    message: ({ host, status }) => `${host} does not take the request at all (${status}): ${BASE}`,
  },
  { status: 500, kind: 'retry_or_split', message: failed },
  { status: 504, kind: 'retry_or_split', code: 'gateway_timeout', message: failed },
  // A content network that gave up waiting for its origin.
  { status: 524, kind: 'retry_or_split', code: 'gateway_timeout', message: failed },
  { status: [500, 599], kind: 'retry', code: 'unavailable', message: failed },
  { status: ANY, kind: 'retry', code: 'odd_status', message: failed },
];

/** The first row that matches; the last one for a status beyond the table. */
export function exportOutcome(facts: AnswerFacts): OutcomeRow {
  return EXPORT_OUTCOMES.find((row) => matches(row, facts)) ?? EXPORT_OUTCOMES[EXPORT_OUTCOMES.length - 1];
}

function matches({ status, content, reason }: OutcomeRow, facts: AnswerFacts): boolean {
  const [first, last] = typeof status === 'number' ? [status, status] : status;
  if (facts.status < first || facts.status > last) return false;
  if (content !== undefined && !content.includes(facts.content)) return false;
  return reason === undefined || (facts.reason !== undefined && reason.includes(facts.reason));
}
