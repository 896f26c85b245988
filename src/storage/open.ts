import { schemeOf, withoutCredentials } from '../base/address.ts';
import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { DiskStorage } from './disk.ts';
import { S3Storage } from './s3.ts';
import { type BucketFolder, s3ClientOf } from './s3-client.ts';
import type { Storage } from './storage.ts';

const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;

/** Parses `s3://BUCKET/PREFIX`. */
function bucketFolderOf(address: string): BucketFolder {
  const [bucket = '', ...segments] = address.slice('s3://'.length).replace(/\/$/, '').split('/');
  if (!BUCKET.test(bucket))
    throw configError(`${withoutCredentials(address)} names no bucket: wanted s3://BUCKET/PREFIX.`);
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw configError(`${address} has an empty or dotted part in its prefix: wanted s3://BUCKET/PREFIX.`);
  }
  const prefix = segments.map((segment) => `${segment}/`).join('');
  return { address: ['s3:/', bucket, ...segments].join('/'), bucket, prefix };
}

/** Opens the storage of an address, without a request. Throws UserError for an address of another kind. */
export async function openStorage(
  address: string,
  { env, signal }: { readonly env: Env; readonly signal: AbortSignal },
): Promise<Storage> {
  if (schemeOf(address) !== 's3') return new DiskStorage(address);
  const folder = bucketFolderOf(address);
  return new S3Storage({ ...folder, client: await s3ClientOf(env), sendOptions: { abortSignal: signal } });
}
