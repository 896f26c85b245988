import { parseJsonObject } from '../base/json.ts';
import { hasStatus, hasStatusBetween, hasTemporaryStatus, type OutcomeRow } from './outcome-table.ts';

/**
 * `done`: all four fields say so. `rejected`: the service has decided not to delete this id. `retry`: the request may
 * be sent again, which is harmless. `wait`: nothing may be sent before the instants of its limits. `stop`: nothing more
 * may be sent. `undecided`: the answer does not tell.
 */
export type DeletionKind = 'done' | 'rejected' | 'retry' | 'wait' | 'stop' | 'undecided';

/** The traits by which an answer is classified; none of them is free text of the service. */
export interface DeletionTraits {
  readonly status: number;
  /** The code of the service; `odd_code` for one of another form, which may hold anything; undefined without one. */
  readonly code: string | undefined;
  /** True if all four fields say success. */
  readonly isFullSuccess: boolean;
  /** True if the envelope's own `status` says success. */
  readonly claimsSuccess: boolean;
  /** True if the envelope's `data` is false. */
  readonly deletedNothing: boolean;
  /** True if the service has confirmed a deletion before: then its address is right. */
  readonly hasConfirmedBefore: boolean;
  readonly host: string;
}

const statusClause = ({ host, status }: DeletionTraits): string => `${host} answered ${status}`;
const CHECK_TOKEN =
  'nothing more is sent. Check import_token and service_id; a token that was reissued in the console replaces the old one';
const CHECK_BASE_URL = 'nothing more is sent. Is base_url right?';
/** What is said of a profile where the answer does not tell. */
const MAYBE_DELETED = 'it may or may not be deleted';

/**
 * A code outweighs the HTTP status, since failures come as 200. But an answer about the token, the address or the
 * state of the service decides nothing about one id.
 */
export const DELETION_OUTCOMES: readonly OutcomeRow<DeletionTraits, DeletionKind>[] = [
  {
    when: ({ isFullSuccess }) => isFullSuccess,
    kind: 'done',
    clause: () => 'the service says that the profile is deleted',
  },
  {
    when: ({ code }) => code === '40101' || code === '40201',
    kind: 'stop',
    clause: ({ host, code }) =>
      `${host} does not accept the import token for this service_id (${code}): ${CHECK_TOKEN}`,
  },
  {
    when: ({ code, status }) => code === '40401' || status === 429,
    kind: 'wait',
    clause: ({ host, code, status }) => `${host} says that the limit of requests is reached (${code ?? status})`,
  },
  {
    when: ({ code }) => code !== undefined && Number(code) >= 50_000,
    kind: 'retry',
    clause: ({ host, code }) => `${host} failed inside (${code})`,
  },
  {
    when: hasStatusBetween(300, 399),
    kind: 'stop',
    code: 'redirect',
    clause: ({ host, status }) =>
      `${host} answered with a redirect (${status}), which is not followed: ${CHECK_BASE_URL}`,
  },
  {
    when: hasStatus(401, 403),
    kind: 'stop',
    clause: ({ host, status }) => `${host} does not allow the deletion (${status}): ${CHECK_TOKEN}`,
  },
  { when: hasStatusBetween(500, 599), kind: 'retry', clause: statusClause },
  {
    // A service may answer so for a profile that it does not know; to ask again would never end.
    when: ({ code, deletedNothing }) => code !== undefined && deletedNothing,
    kind: 'rejected',
    clause: ({ host, code }) => `${host} deleted nothing for this id (${code})`,
  },
  {
    when: ({ code, claimsSuccess }) => code === '20000' || claimsSuccess,
    kind: 'undecided',
    clause: ({ host }) => `${host} did not say success in all of status, code, message and data: ${MAYBE_DELETED}`,
  },
  {
    when: ({ code }) => code !== undefined,
    kind: 'rejected',
    clause: ({ host, code }) => `${host} does not delete this id (${code})`,
  },
  {
    when: ({ status, hasConfirmedBefore }) => status === 404 && hasConfirmedBefore,
    kind: 'rejected',
    clause: ({ host }) => `${host} does not know this id (404)`,
  },
  {
    when: hasStatus(404, 405, 410),
    kind: 'stop',
    clause: ({ host, status }) => `${host} knows no deletion under base_url (${status}): ${CHECK_BASE_URL}`,
  },
  {
    when: hasStatusBetween(200, 299),
    kind: 'retry',
    code: 'odd_body',
    clause: ({ host, status }) => `${host} answered ${status} with something that is no answer to a deletion`,
  },
  { when: hasTemporaryStatus, kind: 'retry', clause: statusClause },
  { when: () => true, kind: 'undecided', clause: ({ host, status }) => `${host} answered ${status}: ${MAYBE_DELETED}` },
];

const CODE = /^\d{5}$/;

/**
 * Reads the envelope of an answer. A code of another form counts only beside a `status` of the service: a gateway under
 * a wrong address has codes, too. A number is a code as well, but full success is proved by the documented text alone.
 */
export function deletionTraits(
  status: number,
  body: string,
  context: Pick<DeletionTraits, 'host' | 'hasConfirmedBefore'>,
): DeletionTraits {
  const { status: envelopeStatus, code, message, data } = parseJsonObject(body);
  const codeText = typeof code === 'number' ? String(code) : code;
  const oddCode = typeof codeText === 'string' && typeof envelopeStatus === 'boolean' ? 'odd_code' : undefined;
  return {
    status,
    code: typeof codeText === 'string' && CODE.test(codeText) ? codeText : oddCode,
    isFullSuccess: envelopeStatus === true && code === '20000' && message === 'OK' && data === true,
    claimsSuccess: envelopeStatus === true,
    deletedNothing: data === false,
    ...context,
  };
}
