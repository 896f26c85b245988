// Why no answer came, or no whole body: the errors of a connection, and what is said of them.

import { formatDuration } from '../../base/durations.ts';
import { codeOf } from '../../base/errors.ts';
import { ProxyFailed } from './proxy.ts';
import { TimeLimitReached } from './time-limit.ts';

/** The server closed the connection, without an error, before the answer was complete. */
export class Truncated extends Error {}

/** Why a body could not be read to its end; `length`: it was declared, and not met or exceeded. */
export type BodyFault = 'reset' | 'stall' | 'gzip' | 'length' | 'content_encoding' | 'charset';

/** A body that came, and is not what its headers say. `message` follows the name of the host. */
export class WrongBody extends Error {
  readonly fault: BodyFault;
  constructor(fault: BodyFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
  }
}

/** The fault of a body that could not be read to its end, and a clause that can follow "because". */
export function bodyProblem(error: unknown, host: string): { readonly code: BodyFault; readonly message: string } {
  if (error instanceof TimeLimitReached)
    return { code: 'stall', message: `${host} sent nothing for ${formatDuration(error.afterMs)}` };
  if (error instanceof WrongBody) return { code: error.fault, message: `${host} ${error.message}` };
  return { code: 'reset', message: networkProblem(error, host).message };
}

interface NetworkProblem {
  /** True if only the user can fix it. */
  readonly isConfig: boolean;
  readonly code: string;
  /** A sentence if `isConfig`; else a clause that can follow "because". */
  readonly message: string;
}

type NetworkFailure = readonly [
  codesOfNode: RegExp,
  code: string,
  /** What stands in parentheses: the code of Node; a question if a wrong address may be the cause. */
  details: readonly ('code' | 'address')[],
  message: (host: string) => string,
];

/** Failures whose cause may pass. The first match applies, the last row matches everything. */
const NETWORK_FAILURES: readonly NetworkFailure[] = [
  [/^(ENOTFOUND|EAI_)/, 'dns', ['code', 'address'], (host) => `the name of ${host} could not be looked up`],
  [/^ECONNREFUSED$/, 'refused', ['code', 'address'], (host) => `${host} refused the connection`],
  [/^ETIMEDOUT$/, 'connect_timeout', ['address'], (host) => `${host} did not take the connection in time`],
  [
    /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|EACCES|EPERM)$/,
    'unreachable',
    ['code', 'address'],
    (host) => `${host} is not reachable from this machine`,
  ],
  [/^(ERR_SSL_|EPROTO|ERR_TLS_)/, 'tls', ['code', 'address'], (host) => `no TLS connection to ${host} came about`],
  [/^HPE_/, 'protocol', ['code', 'address'], (host) => `${host} answered with something that is not HTTP`],
  [/^(ECONNRESET|EPIPE|ECONNABORTED)$/, 'reset', [], (host) => `the connection to ${host} broke`],
  [/^/, 'network', ['code'], (host) => `the request to ${host} failed`],
];

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|HOSTNAME_MISMATCH|INVALID_CA)/;

/**
 * Why no answer, or no complete one, came over the network. An unknown error counts as temporary. `setting`: the key
 * that holds the address.
 */
export function networkProblem(error: unknown, host: string, setting?: string): NetworkProblem {
  if (error instanceof ProxyFailed) return proxyProblem(error);
  const codeOfNode = error instanceof Truncated ? 'ECONNRESET' : (codeOf(error) ?? '');
  if (CERTIFICATE.test(codeOfNode)) {
    const message =
      `The certificate of ${host} cannot be trusted (${codeOfNode}): check its address, this machine's clock, and ` +
      'NODE_EXTRA_CA_CERTS where a proxy opens TLS connections.';
    return { isConfig: true, code: 'certificate', message };
  }
  const row = NETWORK_FAILURES.find(([codes]) => codes.test(codeOfNode));
  const [, code, details, message] = row ?? NETWORK_FAILURES[NETWORK_FAILURES.length - 1];
  const shown = details.flatMap((detail) => {
    if (detail === 'code') return [codeOfNode || 'no code'];
    return setting === undefined ? [] : [`is ${setting} right?`];
  });
  return { isConfig: false, code, message: `${message(host)}${shown.length === 0 ? '' : ` (${shown.join('; ')})`}` };
}

function proxyProblem({ host, status, cause }: ProxyFailed): NetworkProblem {
  const proxy = `the proxy ${host} of HTTPS_PROXY`;
  if (status === undefined) return { ...networkProblem(cause, proxy), code: 'proxy' };
  if (status !== 403 && status !== 407)
    return { isConfig: false, code: 'proxy', message: `${proxy} could not connect (HTTP ${status})` };
  const message =
    `T${proxy.slice(1)} refused to connect (HTTP ${status}): ` +
    'check its user name and password, or add the host to NO_PROXY.';
  return { isConfig: true, code: 'proxy', message };
}
