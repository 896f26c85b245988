import type { BodyFault } from '../http/failures.ts';
import { hasStatus, hasStatusBetween, type OutcomeRow } from '../outcome-table.ts';
import type { ExportRefusal } from './protocol.ts';

/** The content that a body's first bytes show, without a BOM and white space. */
export type Content = 'empty' | 'empty_list' | 'json' | 'html' | 'other';

/** The traits of an answer by which it is classified. */
export interface AnswerTraits {
  readonly status: number;
  readonly content: Content;
  /** The reason in a JSON body, in lower case; undefined if there is none. */
  readonly reason: string | undefined;
  readonly host: string;
  /** Origin that a redirect points to. */
  readonly location: string | undefined;
}

/**
 * Matches answers with one of these reasons. A known reason outweighs the status, since failures come as 200, but
 * neither a 429 nor any 5xx.
 */
const hasReason =
  (...reasons: string[]) =>
  (answer: AnswerTraits): boolean => {
    const canOutweigh = answer.status === 200 || (answer.status !== 429 && hasStatusBetween(400, 499)(answer));
    return canOutweigh && answer.reason !== undefined && reasons.includes(answer.reason);
  };

type ExportRow = OutcomeRow<AnswerTraits, ExportRefusal['kind']> & Pick<ExportRefusal, 'emptyAs' | 'isPage'>;

const has200With =
  (expected: Content) =>
  ({ status, content }: AnswerTraits): boolean =>
    status === 200 && content === expected;

const reasonOf = (answer: AnswerTraits): string => answer.reason ?? 'no reason that is known';
const failed = ({ host, status, reason }: AnswerTraits): string =>
  `${host} answered ${status}${reason === undefined ? '' : ` (${reason})`}`;
const TOKEN =
  'check export_token and service_id. A token that was reissued in the console (service management, key information, API ' +
  'token) replaces the old one.';
const BASE = 'is base_url right?';

/**
 * Every answer but a 200 that begins like CSV or has no byte at all: that is data until the scan finds it broken. The
 * message of `retry` and `retry_or_split` is a clause that can follow "because"; the others are sentences.
 * `retry_or_split`, such as 500, 504 and 524, may mean that the export is too large. Smaller exports are requested
 * after a few such answers.
 */
export const EXPORT_OUTCOMES: readonly ExportRow[] = [
  {
    when: hasReason('unauthorized_token', 'invalid_token', 'invalid_service_id'),
    kind: 'config',
    message: (answer) => `${answer.host} does not accept the export token (${reasonOf(answer)}): ${TOKEN}`,
  },
  {
    when: hasReason('exceed_date_range_limit'),
    kind: 'gone',
    message: (answer) => `${answer.host} no longer exports days as old as this (exceed_date_range_limit).`,
  },
  {
    when: hasReason('invalid_parameter'),
    kind: 'invalid',
    message: (answer) =>
      `${answer.host} refuses the request (invalid_parameter): a service_id, a day, an event or a property it does not take.`,
  },
  {
    when: hasReason('too_many_api_requests', 'too_many_request', 'too_many_requests'),
    kind: 'wait',
    message: (answer) => `${answer.host} says that the limit of exports is reached (${reasonOf(answer)}).`,
  },
  { when: hasReason('unknown_error', 'query_error'), kind: 'retry_or_split', message: failed },
  { when: hasReason('client_connection_closed'), kind: 'retry', message: failed },
  {
    when: has200With('empty_list'),
    kind: 'retry',
    code: 'empty_list',
    emptyAs: 'an empty list',
    message: ({ host }) => `${host} answered with an empty JSON list in place of CSV`,
  },
  {
    when: has200With('json'),
    kind: 'retry',
    code: 'json_200',
    message: (answer) => `${failed(answer)} in place of CSV`,
  },
  {
    when: has200With('html'),
    kind: 'retry',
    code: 'html_200',
    isPage: true,
    message: (answer) => `${answer.host} answered with an HTML page in place of CSV`,
  },
  { when: hasStatus(204), kind: 'retry', code: 'no_content', emptyAs: '204', message: failed },
  {
    when: hasStatusBetween(300, 399),
    kind: 'config',
    code: 'redirect',
    message: ({ host, status, location }) =>
      `${host} answered ${status} and points to ${location ?? 'nowhere'}, which is not followed, ` +
      `since the token is for ${host} alone: ${BASE}`,
  },
  {
    when: hasStatus(400, 422),
    kind: 'invalid',
    code: 'bad_request',
    message: (answer) => `${answer.host} refuses the request (${answer.status}, ${reasonOf(answer)}).`,
  },
  {
    when: hasStatus(401, 403),
    kind: 'config',
    code: 'unauthorized',
    message: (answer) =>
      `${answer.host} does not accept the export token (${answer.status}, ${reasonOf(answer)}): ${TOKEN}`,
  },
  {
    when: hasStatus(404),
    kind: 'config',
    code: 'not_here',
    emptyAs: '404',
    message: ({ host }) => `${host} knows no export under base_url (404): ${BASE}`,
  },
  // A timeout, a conflict, a lock and the like are temporary.
  { when: hasStatus(408, 409, 423, 424, 425, 499), kind: 'retry', code: 'busy', message: failed },
  // 504 and 524: a gateway gave up waiting for the service.
  { when: hasStatus(413, 500, 504, 524), kind: 'retry_or_split', message: failed },
  {
    when: hasStatus(429),
    kind: 'wait',
    code: 'too_many_api_requests',
    message: (answer) => `${answer.host} says that the limit of exports is reached (429).`,
  },
  {
    when: hasStatusBetween(402, 499),
    kind: 'config',
    code: 'refused_request',
    message: ({ host, status }) => `${host} does not take the request at all (${status}): ${BASE}`,
  },
  { when: hasStatusBetween(500, 599), kind: 'retry', code: 'unavailable', message: failed },
  { when: () => true, kind: 'retry', code: 'odd_status', message: failed },
];

const KIND_OF_FAULT: Readonly<Record<BodyFault, ExportRefusal['kind']>> = {
  reset: 'retry',
  gzip: 'retry',
  length: 'retry',
  stall: 'retry_or_split',
  content_encoding: 'unreadable',
  charset: 'unreadable',
};

/** The refusal for a body that could not be read to its end; `clause` says why. */
export function refusalOfBody(code: BodyFault, clause: string, status: number | undefined): ExportRefusal {
  const kind = KIND_OF_FAULT[code];
  return { kind, code, message: kind === 'unreadable' ? `${clause}.` : clause, status };
}
