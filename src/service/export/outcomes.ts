import { hasStatus, hasStatusBetween, hasTemporaryStatus, type OutcomeRow } from '../outcome-table.ts';
import type { RequestFailure } from './export-service.ts';

/** What a body's first bytes show, behind a BOM and white space. `maybe_csv`: none of the others; the scan decides. */
export type BodyContent = 'empty' | 'empty_list' | 'json' | 'html' | 'maybe_csv';

export interface ExportTraits {
  readonly status: number;
  readonly content: BodyContent;
  /** The reason in a body that is JSON or the reason alone, in lower case; undefined if there is none. */
  readonly reason: string | undefined;
  readonly host: string;
}

/**
 * Matches answers with one of these reasons. A known reason outweighs the status, since failures come as 200, but
 * neither a 429 nor any 5xx.
 */
const hasReason =
  (...reasons: string[]) =>
  ({ status, reason }: ExportTraits): boolean => {
    const canOutweigh = status === 200 || (status >= 400 && status < 500 && status !== 429);
    return canOutweigh && reason !== undefined && reasons.includes(reason);
  };

const has200With =
  (expected: BodyContent) =>
  ({ status, content }: ExportTraits): boolean =>
    status === 200 && content === expected;

const NO_REASON = 'no reason that is known';
const statusClause = ({ host, status, reason }: ExportTraits): string =>
  `${host} answered ${status}${reason === undefined ? '' : ` (${reason})`}`;
const answeredWith =
  (what: string) =>
  ({ host }: ExportTraits): string =>
    `${host} answered with ${what}`;
const CHECK_TOKEN =
  'check export_token and service_id. A token that was reissued in the console (service management, key information, API ' +
  'token) replaces the old one';
const CHECK_BASE_URL = 'is base_url right?';
/** The code of a web page in place of CSV: `base_url` may be wrong. */
export const HTML_PAGE_CODE = 'html_200';
/** The code of a 404: a day without rows, or an address without exports. */
export const NOT_FOUND_CODE = 'not_here';

/**
 * Every answer but a 200 that begins like CSV: that is for the scan to check. The clause of `retry` and
 * `retry_or_split` can follow "because". `retry_or_split`, such as 500, 504 and 524, may mean that the export is too
 * large. After a few such answers smaller exports are requested.
 */
export const EXPORT_OUTCOMES: readonly OutcomeRow<ExportTraits, RequestFailure['kind']>[] = [
  {
    when: hasReason('unauthorized_token', 'invalid_token', 'invalid_service_id'),
    kind: 'config',
    clause: ({ host, reason }) => `${host} does not accept the export token (${reason ?? NO_REASON}): ${CHECK_TOKEN}`,
  },
  {
    when: hasReason('exceed_date_range_limit'),
    kind: 'gone',
    clause: ({ host }) => `${host} no longer exports days as old as this (exceed_date_range_limit)`,
  },
  {
    when: hasReason('invalid_parameter'),
    kind: 'invalid',
    clause: ({ host }) =>
      `${host} refuses the request (invalid_parameter): a service_id, a day, an event or a property it does not take`,
  },
  {
    when: hasReason('too_many_api_requests', 'too_many_request', 'too_many_requests'),
    kind: 'wait',
    clause: ({ host, reason }) => `${host} says that the limit of exports is reached (${reason ?? NO_REASON})`,
  },
  { when: hasReason('unknown_error', 'query_error'), kind: 'retry_or_split', clause: statusClause },
  { when: hasReason('client_connection_closed'), kind: 'retry', clause: statusClause },
  { when: has200With('empty_list'), kind: 'empty', code: 'empty_list', clause: answeredWith('an empty list') },
  { when: has200With('empty'), kind: 'empty', code: 'empty_body', clause: answeredWith('no byte') },
  {
    when: has200With('json'),
    kind: 'retry',
    code: 'json_200',
    clause: (traits) => `${statusClause(traits)} in place of CSV`,
  },
  {
    when: has200With('html'),
    kind: 'retry',
    code: HTML_PAGE_CODE,
    clause: answeredWith('an HTML page in place of CSV'),
  },
  { when: hasStatus(204), kind: 'empty', code: 'no_content', clause: answeredWith('204') },
  {
    when: hasStatusBetween(300, 399),
    kind: 'config',
    code: 'redirect',
    clause: ({ host, status }) =>
      `${host} answered with a redirect (${status}), which is not followed: ${CHECK_BASE_URL}`,
  },
  {
    when: hasStatus(400, 422),
    kind: 'invalid',
    code: 'bad_request',
    clause: ({ host, status, reason }) => `${host} refuses the request (${status}, ${reason ?? NO_REASON})`,
  },
  {
    when: hasStatus(401, 403),
    kind: 'config',
    code: 'unauthorized',
    clause: ({ host, status, reason }) =>
      `${host} does not accept the export token (${status}, ${reason ?? NO_REASON}): ${CHECK_TOKEN}`,
  },
  { when: hasStatus(404), kind: 'empty', code: NOT_FOUND_CODE, clause: answeredWith('404') },
  { when: hasTemporaryStatus, kind: 'retry', code: 'busy', clause: statusClause },
  // 504 and 524: a gateway gave up waiting for the service.
  { when: hasStatus(413, 500, 504, 524), kind: 'retry_or_split', clause: statusClause },
  {
    when: hasStatus(429),
    kind: 'wait',
    code: 'too_many_api_requests',
    clause: ({ host }) => `${host} says that the limit of exports is reached (429)`,
  },
  {
    when: hasStatusBetween(400, 499),
    kind: 'config',
    code: 'refused_request',
    clause: ({ host, status }) => `${host} does not take the request at all (${status}): ${CHECK_BASE_URL}`,
  },
  { when: hasStatusBetween(500, 599), kind: 'retry', code: 'unavailable', clause: statusClause },
  { when: () => true, kind: 'retry', code: 'odd_status', clause: statusClause },
];
