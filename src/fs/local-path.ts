// Paths of this machine, told from the addresses of buckets and databases.

import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { configError, type UserError } from '../base/errors.ts';

/** The scheme of an address, such as `s3` of `s3://…`; undefined for a path. */
export const schemeOf = (text: string): string | undefined =>
  /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(text)?.[1]?.toLowerCase();

/** An address without its user name and password, which may hold `/`. */
export const withoutCredentials = (address: string): string => address.replace(/^([^:]*:\/\/).*@/, '$1');

/**
 * True for an address with a user name or a key in it, which messages and notifications would repeat. An address of
 * the web may have an @ in its path.
 */
export const hasCredentials = (word: unknown): boolean =>
  typeof word === 'string' && /^(https?:\/\/[^/]*|(?!https?:)[a-z][a-z0-9+.-]*:\/\/.*)@/i.test(word);

export const credentialsError = (what: string): UserError =>
  configError(`${what} has a user name or a key in it: give it without, and the key of a bucket in AWS_ACCESS_KEY_ID.`);

/** The beginning of an address of another program, such as `postgres:`, `md:`, `s3:` or `:memory:`. */
const ADDRESS_START = /^(?:[A-Za-z][A-Za-z0-9+.-]+|:memory):/;

export const isAddress = (text: string): boolean => ADDRESS_START.test(text);

/** Throws a configuration failure for an address, which would be taken for a file with a name such as `s3:`. */
export function checkLocalPath(text: string): void {
  const [address] = ADDRESS_START.exec(text) ?? [];
  if (address === undefined) return;
  // A password may stand anywhere in an address without a host.
  const shownAddress = schemeOf(text) === undefined ? `${address}…` : withoutCredentials(text);
  throw configError(`${shownAddress} is an address: give a path on this machine (a bucket can hold delta).`);
}

/** The absolute path without links. Of what is not there: the path as it is given, made absolute. */
export const realOrGivenPath = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path));
