import { isIP } from 'node:net';
import { configError, type UserError } from './errors.ts';

/** The host of an address as Node connects to it: IPv6 has brackets in a URL alone. */
export const withoutBrackets = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');

/** True for names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  const host = withoutBrackets(hostname).toLowerCase();
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

/** The scheme of an address, such as `s3` of `s3://…`; undefined for a path. */
export const schemeOf = (text: string): string | undefined =>
  /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(text)?.[1]?.toLowerCase();

/** An address without its user name and password. These may hold `/`: everything before the last @ is taken for them. */
export const withoutCredentials = (address: string): string => address.replace(/^([^:]*:\/\/).*@/, '$1');

/**
 * True for an address with a user name or a key in it, which messages and notifications would repeat. An address of
 * the web may have an @ in its path.
 */
export const hasCredentials = (word: unknown): boolean =>
  typeof word === 'string' && /^(https?:\/\/[^/]*|(?!https?:)[a-z][a-z0-9+.-]*:\/\/.*)@/i.test(word);

export const credentialsError = (name: string): UserError =>
  configError(`${name} has a user name or a key in it: give it without, and the key of a bucket in AWS_ACCESS_KEY_ID.`);
