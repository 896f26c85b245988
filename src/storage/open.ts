import { randomUUID } from 'node:crypto';
import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { checkLocalPath, schemeOf, withoutUser } from '../fs/local-path.ts';
import { DiskStorage } from './disk.ts';
import { type BucketFolder, openS3Storage } from './s3.ts';
import { PROBE_FOLDER, type Storage } from './storage.ts';

const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;

/** Parses `s3://BUCKET/PREFIX`; undefined for a folder. Throws UserError for any other address. */
function bucketOf(text: string): BucketFolder | undefined {
  if (schemeOf(text) !== 's3') {
    checkLocalPath(text);
    return undefined;
  }
  const [bucket = '', ...segments] = text.slice('s3://'.length).replace(/\/$/, '').split('/');
  if (!BUCKET.test(bucket)) throw configError(`${withoutUser(text)} names no bucket: wanted s3://BUCKET/PREFIX.`);
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw configError(`${text} has an empty or dotted part in its prefix: wanted s3://BUCKET/PREFIX.`);
  }
  const address = ['s3:/', bucket, ...segments].join('/');
  return { address, bucket, prefix: segments.map((segment) => `${segment}/`).join('') };
}

/** Opens the storage of an address. Throws UserError for an address of another kind, or a bucket that is not there. */
export async function openStorage(
  text: string,
  { env, signal }: { readonly env: Env; readonly signal?: AbortSignal | undefined },
): Promise<Storage> {
  const folder = bucketOf(text);
  return folder === undefined ? new DiskStorage(text) : await openS3Storage(folder, env, signal);
}

/** Throws UserError for a store that creates an object which exists: commits would overwrite each other. */
export async function checkConditionalWrites(storage: Storage): Promise<void> {
  const path = `${PROBE_FOLDER}/${randomUUID()}`;
  try {
    const isCreated = await storage.create(path, 'first');
    if (isCreated && !(await storage.create(path, 'second'))) return;
    throw configError(
      `${storage.address} does not honour "create only if absent" (of a bucket: If-None-Match: *): commits of two ` +
        'writers would overwrite each other. Use a store that does, or a folder on a disk.',
    );
  } finally {
    await storage.remove([path]);
  }
}
