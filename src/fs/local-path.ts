// Paths of this machine: told from the addresses of buckets and databases, and refused for dead links and mounts.

import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { schemeOf, withoutCredentials } from '../base/address.ts';
import { configError, undefinedIfAbsent } from '../base/errors.ts';

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

/** Throws a configuration failure for a link to what is not there: what is made behind it may be on another disk. */
export async function refuseDeadLink(path: string, kind: 'file' | 'folder'): Promise<void> {
  const stat = await lstat(path).catch(undefinedIfAbsent);
  if (existsSync(path) || !stat?.isSymbolicLink()) return;
  throw configError(
    `${path} is a link to a ${kind} that is not there: mount its disk, or give the path of that ${kind}.`,
  );
}

/** Throws a configuration failure for a file that is a mount itself, as in a container: it cannot be replaced. */
export function checkNotMounted(path: string): void {
  const mounts = existsSync('/proc/self/mountinfo') ? readFileSync('/proc/self/mountinfo', 'utf8') : '';
  const escapedPoints = mounts.split('\n').map((line) => line.split(' ')[4] ?? '');
  // Blanks are there as octal numbers.
  const mountPoints = escapedPoints.map((point) =>
    point.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8))),
  );
  if (!mountPoints.includes(realpathSync(path))) return;
  const message = `${path} is a mount of its own, which cannot be replaced: mount its folder instead. Nothing was done.`;
  throw configError(message);
}

/** The absolute path without links. Of what is not there: the path as it is given, made absolute. */
export const realOrGivenPath = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path));
