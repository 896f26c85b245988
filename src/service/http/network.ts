import { codeOf } from '../../base/errors.ts';
import { ProxyRefused } from './proxy.ts';
import { Truncated } from './transport.ts';

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|HOSTNAME_MISMATCH|INVALID_CA)/;

type Row = readonly [codes: RegExp, code: string, message: (host: string, code: string) => string];

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

/**
 * Why no answer, or no complete one, came over the network. `config`: only the user can fix it, and the message is a
 * sentence; else it is a clause that can follow "because". An unknown error counts as temporary.
 */
export function networkProblem(error: unknown, host: string) {
  if (error instanceof ProxyRefused) {
    const { status } = error;
    if (status !== 407 && status !== 403) {
      return { config: false, code: 'proxy', message: `the proxy of HTTPS_PROXY could not connect (HTTP ${status})` };
    }
    const message =
      `The proxy of HTTPS_PROXY refused to connect (HTTP ${status}): ` +
      'check its user name and password, or add the host to NO_PROXY.';
    return { config: true, code: 'proxy', message };
  }
  const code = error instanceof Truncated ? 'ECONNRESET' : (codeOf(error) ?? '');
  if (CERTIFICATE.test(code)) {
    const message =
      `The certificate of ${host} cannot be trusted (${code}): check base_url, this machine's clock, and ` +
      'NODE_EXTRA_CA_CERTS where a proxy opens TLS connections.';
    return { config: true, code: 'certificate', message };
  }
  const [, kind, message] = ROWS.find(([codes]) => codes.test(code)) ?? ROWS[ROWS.length - 1];
  return { config: false, code: kind, message: message(host, code) };
}
