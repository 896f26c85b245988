import { isIP } from 'node:net';

/** True for names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/** Whether nobody can read on the way what is sent to an address: https anywhere, plain http on loopback alone. */
export const isSecure = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

/** What is wrong with a base URL, if anything, as a clause: it is secure, without a query and without credentials. */
export function baseUrlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not an address, wanted https://host';
  const url = new URL(text);
  if (url.search !== '' || url.hash !== '') return 'carries a query or a fragment, wanted https://host';
  if (url.username !== '' || url.password !== '') return 'carries a user name or password, wanted https://host';
  return isSecure(url) ? undefined : 'is not https: plain http is accepted on loopback alone';
}

/** What is wrong with the address of an object store, if anything, as a clause. */
export function endpointProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not an address, wanted https://host';
  const url = new URL(text);
  if (isSecure(url)) return undefined;
  return (
    `is ${url.origin}, wanted https (plain http is accepted on loopback alone): ` +
    'keys and rows would go over the network unencrypted'
  );
}

/** The address to which paths are appended: scheme, host, port and path prefix if any, without a trailing slash. */
export const cleanBaseUrl = (text: string): string => {
  const url = new URL(text);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
};
