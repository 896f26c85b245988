import { codeOf } from '../../base/errors.ts';
import { ProxyRefused } from './proxy.ts';
import { Truncated } from './transport.ts';

/** Why no answer, or no complete answer, came over the network. */
export interface NetworkProblem {
  /** True when only the user can fix it. */
  readonly config: boolean;
  readonly code: string;
  /** A sentence when `config` is true, else a clause that can follow "because". */
  readonly message: string;
}

interface Row {
  readonly codes: RegExp;
  readonly code: string;
  readonly config?: true;
  readonly message: (host: string, code: string) => string;
}

const CERTIFICATE =
  /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)|HOSTNAME_MISMATCH|INVALID_CA)/;

/** Error codes of Node, first match wins. */
const ROWS: readonly Row[] = [
  {
    codes: CERTIFICATE,
    code: 'certificate',
    config: true,
    message: (host, code) =>
      `The certificate of ${host} cannot be trusted (${code}): check base_url, this machine's clock, and NODE_EXTRA_CA_CERTS where a proxy opens TLS connections.`,
  },
  {
    codes: /^(ENOTFOUND|EAI_)/,
    code: 'dns',
    message: (host, code) => `the name of ${host} could not be looked up (${code})`,
  },
  { codes: /^ECONNREFUSED$/, code: 'refused', message: (host) => `${host} refused the connection (ECONNREFUSED)` },
  {
    codes: /^ETIMEDOUT$/,
    code: 'connect_timeout',
    message: (host) => `${host} did not take the connection in time`,
  },
  {
    codes: /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|EACCES|EPERM)$/,
    code: 'unreachable',
    message: (host, code) => `${host} is not reachable from this machine (${code})`,
  },
  {
    codes: /^(ERR_SSL_|EPROTO|ERR_TLS_)/,
    code: 'tls',
    message: (host, code) => `no TLS connection to ${host} came about (${code})`,
  },
  {
    codes: /^HPE_/,
    code: 'protocol',
    message: (host, code) => `${host} answered with something that is not HTTP (${code})`,
  },
  {
    codes: /^(ECONNRESET|EPIPE|ECONNABORTED)$/,
    code: 'reset',
    message: (host) => `the connection to ${host} broke`,
  },
];

/** Classifies an error of a request or of the reading of its body. An unknown error counts as temporary. */
export function networkProblem(error: unknown, host: string): NetworkProblem {
  if (error instanceof ProxyRefused) {
    const { status } = error;
    if (status !== 407 && status !== 403) {
      return { config: false, code: 'proxy', message: `the proxy of HTTPS_PROXY could not connect (HTTP ${status})` };
    }
    const message = `The proxy of HTTPS_PROXY refused to connect (HTTP ${status}): check its user name and password, or add the host to NO_PROXY.`;
    return { config: true, code: 'proxy', message };
  }
  const code = error instanceof Truncated ? 'ECONNRESET' : (codeOf(error) ?? '');
  const row = ROWS.find(({ codes }) => codes.test(code));
  if (row) return { config: row.config === true, code: row.code, message: row.message(host, code) };
  return { config: false, code: 'network', message: `the request to ${host} failed (${code || 'no code'})` };
}
