import { isIP } from 'node:net';

/** True for names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/**
 * What is wrong with an address, if anything, as a clause that does not repeat it. Nobody may read on the way what is
 * sent there: https anywhere, plain http on loopback alone. Messages show addresses, so it has no credentials.
 */
export function addressProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not an address, wanted https://host';
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return 'carries a user name or password, wanted https://host';
  if (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) return undefined;
  return 'is not https: plain http is accepted on loopback alone';
}

/** The address to which paths are appended: scheme, host, port and path prefix if any, without a trailing slash. */
export const cleanBaseUrl = (text: string): string => {
  const url = new URL(text);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
};
