import { isIP } from 'node:net';

/** True for names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/** The problem with a base URL, if any: https anywhere, plain http on loopback alone, no query, no credentials. */
export function baseUrlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'base_url is not an address, wanted https://host';
  const url = new URL(text);
  if (url.search !== '' || url.hash !== '') return 'base_url carries a query or a fragment, wanted https://host';
  if (url.username !== '' || url.password !== '')
    return 'base_url carries a user name or password, wanted https://host';
  return isPrivate(url) ? undefined : 'base_url is not https: plain http is accepted on loopback alone';
}

/** Whether nobody can read on the way what is sent to an address: https anywhere, plain http on loopback alone. */
const isPrivate = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

/** The problem with the address of an object store, which `name` holds; undefined if there is none. */
export function endpointProblem(name: string, text: string): string | undefined {
  if (!URL.canParse(text)) return `${name} is not an address, wanted https://host`;
  const url = new URL(text);
  if (isPrivate(url)) return undefined;
  return (
    `${name} is ${url.origin}, wanted https (plain http is accepted on loopback alone): ` +
    'keys and rows would go over the network unencrypted'
  );
}

/** The address to which paths are appended: scheme, host, port and path prefix if any, without a trailing slash. */
export const cleanBaseUrl = (text: string): string => {
  const url = new URL(text);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
};
