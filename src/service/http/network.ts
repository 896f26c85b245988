import { codeOf } from '../../base/errors.ts';
import { ProxyFailed } from './proxy.ts';
import { Truncated } from './transport.ts';

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|HOSTNAME_MISMATCH|INVALID_CA)/;

type Row = readonly [codes: RegExp, code: string, message: (host: string, code: string) => string];

/** Failures that a wrong address may also have. */
const WRONG_ADDRESS: ReadonlySet<string> = new Set([
  'dns',
  'refused',
  'connect_timeout',
  'unreachable',
  'tls',
  'protocol',
]);

/** Error codes of Node whose cause may pass. First match wins, the last row matches everything. */
const ROWS: readonly Row[] = [
  [/^(ENOTFOUND|EAI_)/, 'dns', (host, code) => `the name of ${host} could not be looked up (${code})`],
  [/^ECONNREFUSED$/, 'refused', (host) => `${host} refused the connection (ECONNREFUSED)`],
  [/^ETIMEDOUT$/, 'connect_timeout', (host) => `${host} did not take the connection in time`],
  [
    /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|EACCES|EPERM)$/,
    'unreachable',
    (host, code) => `${host} is not reachable from this machine (${code})`,
  ],
  [/^(ERR_SSL_|EPROTO|ERR_TLS_)/, 'tls', (host, code) => `no TLS connection to ${host} came about (${code})`],
  [
    /^HPE_HEADER_OVERFLOW$/,
    'large_header',
    (host) => `${host} answered with header fields of more than 64 KB, which are not read`,
  ],
  [/^HPE_/, 'protocol', (host, code) => `${host} answered with something that is not HTTP (${code})`],
  [/^(ECONNRESET|EPIPE|ECONNABORTED)$/, 'reset', (host) => `the connection to ${host} broke`],
  [/^/, 'network', (host, code) => `the request to ${host} failed (${code || 'no code'})`],
];

interface NetworkProblem {
  /** True if only the user can fix it. */
  readonly config: boolean;
  readonly code: string;
  /** A sentence for `config`; else a clause that can follow "because". */
  readonly message: string;
}

/**
 * Why no answer, or no complete one, came over the network. An unknown error counts as temporary. `setting`: the key
 * that holds the address.
 */
export function networkProblem(error: unknown, host: string, setting?: string): NetworkProblem {
  if (error instanceof ProxyFailed) return proxyProblem(error);
  const code = error instanceof Truncated ? 'ECONNRESET' : (codeOf(error) ?? '');
  if (CERTIFICATE.test(code)) {
    const message =
      `The certificate of ${host} cannot be trusted (${code}): check its address, this machine's clock, and ` +
      'NODE_EXTRA_CA_CERTS where a proxy opens TLS connections.';
    return { config: true, code: 'certificate', message };
  }
  const [, kind, message] = ROWS.find(([codes]) => codes.test(code)) ?? ROWS[ROWS.length - 1];
  const problem = message(host, code);
  const question = setting !== undefined && WRONG_ADDRESS.has(kind) ? `is ${setting} right?` : '';
  const asked = problem.endsWith(')') ? `${problem.slice(0, -1)}; ${question})` : `${problem} (${question})`;
  return { config: false, code: kind, message: question === '' ? problem : asked };
}

function proxyProblem({ host, status, cause }: ProxyFailed): NetworkProblem {
  const proxy = `the proxy ${host} of HTTPS_PROXY`;
  if (status === undefined) return { ...networkProblem(cause, proxy), code: 'proxy' };
  if (status !== 403 && status !== 407)
    return { config: false, code: 'proxy', message: `${proxy} could not connect (HTTP ${status})` };
  const message =
    `T${proxy.slice(1)} refused to connect (HTTP ${status}): ` +
    'check its user name and password, or add the host to NO_PROXY.';
  return { config: true, code: 'proxy', message };
}
