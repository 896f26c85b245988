// Why no answer came, or no whole body: the errors of a connection, and what is said of them.

import { codeOf } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { formatDuration } from '../base/quantities.ts';
import { ProxyError } from './proxy.ts';
import { TimeLimitReached } from './time-limit.ts';

/** The server closed the connection, without an error, before the answer was complete. */
export class ConnectionClosed extends Error {
  readonly code = 'ECONNRESET';
}

/** A body that came, and is not what its headers say. `predicate` follows the name of the host. */
export class BodyMismatch extends Error {
  /** `length`: it had fewer or more bytes than declared. */
  readonly code: 'gzip' | 'length' | 'content_encoding' | 'charset';
  readonly predicate: string;
  constructor(code: BodyMismatch['code'], predicate: string, cause?: unknown) {
    super(`the server ${predicate}`, { cause });
    this.code = code;
    this.predicate = predicate;
  }

  /** True if bytes are missing or wrong, which another request may mend. */
  get isBroken(): boolean {
    return this.code === 'gzip' || this.code === 'length';
  }
}

interface NetworkProblem {
  /** True if only the user can fix it. */
  readonly needsUser: boolean;
  /** The reason in one word, such as `dns`, for logs. */
  readonly code: string;
  /** A clause that can follow "because"; `sentenceOf` makes a sentence of it. */
  readonly clause: string;
}

const UNREACHABLE = /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|EACCES|EPERM)$/;

type ProblemRow = readonly [nodeCodes: RegExp, code: string, clause: (host: string) => string];

/** Problems whose cause may pass. The first row that matches applies, else `OTHER_PROBLEM`. */
const NETWORK_PROBLEMS: readonly ProblemRow[] = [
  [/^(ENOTFOUND|EAI_)/, 'dns', (host) => `the name of ${host} could not be looked up`],
  [/^ECONNREFUSED$/, 'refused', (host) => `${host} refused the connection`],
  [/^ETIMEDOUT$/, 'connect_timeout', (host) => `${host} did not take the connection in time`],
  [UNREACHABLE, 'unreachable', (host) => `${host} is not reachable from this machine`],
  [/^(ERR_SSL_|EPROTO|ERR_TLS_)/, 'tls', (host) => `no TLS connection to ${host} came about`],
  [/^HPE_/, 'protocol', (host) => `${host} answered with something that is not HTTP`],
  [/^(ECONNRESET|EPIPE|ECONNABORTED)$/, 'reset', (host) => `the connection to ${host} broke`],
];
const OTHER_PROBLEM: ProblemRow = [/^/, 'network', (host) => `the request to ${host} failed`];

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|HOSTNAME_MISMATCH|INVALID_CA)/;

/** Why no answer, or no complete one, came over the network. `addressKey`: the configured key of the address. */
export function networkProblem(error: unknown, host: string, addressKey?: string): NetworkProblem {
  if (error instanceof ProxyError) return proxyProblem(error);
  if (error instanceof TimeLimitReached) {
    const clause = `${host} did not answer within ${formatDuration(error.afterMs)}`;
    return { needsUser: false, code: 'timeout', clause };
  }
  if (error instanceof BodyMismatch)
    return { needsUser: false, code: error.code, clause: `${host} ${error.predicate}` };
  // A connection that stood may time out, too.
  const isLost = isObject(error) && error.code === 'ETIMEDOUT' && error.syscall === 'read';
  const nodeCode = isLost ? 'ECONNRESET' : (codeOf(error) ?? '');
  if (CERTIFICATE.test(nodeCode)) {
    const clause =
      `the certificate of ${host} cannot be trusted (${nodeCode}): check its address, this machine's clock, and ` +
      'NODE_EXTRA_CA_CERTS where a proxy opens TLS connections';
    return { needsUser: true, code: 'certificate', clause };
  }
  const [, code, clause] = NETWORK_PROBLEMS.find(([nodeCodes]) => nodeCodes.test(nodeCode)) ?? OTHER_PROBLEM;
  // A connection that broke was one to the right address.
  const mayBeAddress = code !== 'reset' && code !== 'network';
  const question = mayBeAddress && addressKey !== undefined ? `; is ${addressKey} right?` : '';
  return { needsUser: false, code, clause: `${clause(host)} (${nodeCode || 'no code'}${question})` };
}

function proxyProblem({ host, status, code, cause }: ProxyError): NetworkProblem {
  const proxy = `the proxy ${host} of HTTPS_PROXY`;
  if (status === undefined) return { ...networkProblem(cause, proxy), code: 'proxy' };
  if (code !== 'ERR_PROXY_REFUSED')
    return { needsUser: false, code: 'proxy', clause: `${proxy} could not connect (HTTP ${status})` };
  const advice = 'check its user name and password, or add the host to NO_PROXY';
  return { needsUser: true, code: 'proxy', clause: `${proxy} refused to connect (HTTP ${status}): ${advice}` };
}
