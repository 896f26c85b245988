import { objectIn } from '../../base/json.ts';
import { type OutcomeRow, status } from '../outcome.ts';

export type DeletionKind = 'done' | 'rejected' | 'retry' | 'wait' | 'stop' | 'undecided';

/** The properties by which an answer is classified; none of them is free text of the service. */
export interface DeletionFacts {
  readonly status: number;
  /** `code` of a JSON envelope; undefined if the body is none. */
  readonly code: string | undefined;
  /** True if all four fields say success. */
  readonly allFour: boolean;
  /** True if the envelope's own `status` says success. */
  readonly claimsSuccess: boolean;
  /** True if another profile was deleted at this address, which shows that the address is right. */
  readonly hasDeleted: boolean;
  readonly host: string;
}

const has =
  (...codes: string[]) =>
  ({ code }: DeletionFacts) =>
    code !== undefined && codes.includes(code);
/** True for a status that concerns one request and not the token, the address or the state of the service. */
const isOfOneRequest = (facts: DeletionFacts): boolean =>
  status(200, 299)(facts) || [400, 404, 409, 413, 422].includes(facts.status);
const TOKEN =
  'nothing more is sent. Check import_token and service_id; a token that was reissued in the console replaces the old one.';
const BASE = 'nothing more is sent. Is base_url right?';

/**
 * A code outweighs the HTTP status, since failures come as 200; but `rejected`, which is final for an id, is believed
 * only if the status does not concern the whole service.
 */
export const DELETION_OUTCOMES: readonly OutcomeRow<DeletionFacts, DeletionKind>[] = [
  { when: ({ allFour }) => allFour, kind: 'done', message: () => 'The service says that the profile is deleted.' },
  { when: has('40101'), kind: 'stop', message: ({ host }) => `${host} does not know the service_id (40101): ${TOKEN}` },
  {
    when: has('40201'),
    kind: 'stop',
    message: ({ host }) => `${host} does not accept the import token (40201): ${TOKEN}`,
  },
  {
    when: has('40401'),
    kind: 'wait',
    message: ({ host }) => `${host} says that the limit of requests is reached (40401).`,
  },
  {
    when: status(429),
    kind: 'wait',
    message: ({ host }) => `${host} says that the limit of requests is reached (429).`,
  },
  { when: has('50000'), kind: 'retry', message: ({ host }) => `${host} failed inside (50000).` },
  {
    when: (facts) => has('40000', '40001')(facts) && !facts.claimsSuccess && isOfOneRequest(facts),
    kind: 'rejected',
    message: ({ host, code }) => `${host} does not accept this id (${code}).`,
  },
  {
    when: has('40402', '40403'),
    kind: 'undecided',
    message: ({ host, code }) =>
      `${host} answered ${code}, whose meaning is not documented: it may or may not be deleted.`,
  },
  {
    when: has('20000'),
    kind: 'undecided',
    message: ({ host }) => `${host} answered 20000, but not all of status, code, message and data say success.`,
  },
  {
    when: status(300, 399),
    kind: 'stop',
    code: 'redirect',
    message: (facts) => `${facts.host} answered with a redirect (${facts.status}), which is not followed: ${BASE}`,
  },
  {
    when: (facts) => facts.status === 401 || facts.status === 403,
    kind: 'stop',
    message: (facts) => `${facts.host} does not allow the deletion (${facts.status}): ${TOKEN}`,
  },
  {
    // An answer with an envelope comes from the service itself and may concern this one id; so may one without, once
    // the address is known to be right.
    when: (facts) =>
      status(405)(facts) ||
      (!facts.hasDeleted && ((status(404)(facts) && facts.code === undefined) || status(410)(facts))),
    kind: 'stop',
    message: (facts) => `${facts.host} knows no deletion under base_url (${facts.status}): ${BASE}`,
  },
  {
    when: status(407),
    kind: 'stop',
    message: () => 'The proxy wants a user name and a password (407): nothing more is sent. Put them into HTTPS_PROXY.',
  },
  {
    when: (facts) => status(500, 599)(facts) || [408, 409, 423, 424, 425, 499].includes(facts.status),
    kind: 'retry',
    message: (facts) => `${facts.host} answered ${facts.status}.`,
  },
  {
    when: ({ code }) => code !== undefined,
    kind: 'undecided',
    message: (facts) =>
      `${facts.host} answered ${facts.status} with a code that is not known: it may or may not be deleted.` +
      (status(404)(facts) && !facts.hasDeleted ? ' If no id is deleted, base_url may be wrong.' : ''),
  },
  {
    when: status(200, 299),
    kind: 'retry',
    code: 'odd_body',
    message: (facts) => `${facts.host} answered ${facts.status} with something that is no answer to a deletion.`,
  },
  {
    when: () => true,
    kind: 'undecided',
    message: (facts) => `${facts.host} answered ${facts.status}: it may or may not be deleted.`,
  },
];

const CODE = /^\d{3,8}$/;

/** Reads the envelope of an answer; a body that is none has no code. */
export function deletionFacts(
  httpStatus: number,
  text: string,
  about: Pick<DeletionFacts, 'host' | 'hasDeleted'>,
): DeletionFacts {
  const { status: own, code, message, data } = objectIn(text);
  const shown = typeof code === 'number' ? String(code) : code;
  return {
    status: httpStatus,
    code: typeof shown === 'string' ? (CODE.test(shown) ? shown : 'odd_code') : undefined,
    allFour: own === true && code === '20000' && message === 'OK' && data === true,
    claimsSuccess: own === true,
    ...about,
  };
}
