import type { ListObjectVersionsCommandOutput, ObjectIdentifier, ObjectVersion } from '@aws-sdk/client-s3';
import { configError } from '../base/errors.ts';
import { mapConcurrently } from './concurrently.ts';
import { type BucketAccess, toStoredObject } from './s3-client.ts';
import { S3_STATUS, s3ErrorNameOf, s3StatusOf } from './s3-failures.ts';
import type { ErasePredicate } from './storage.ts';

const DELETE_CONCURRENCY = 16;

/**
 * Deletes objects, or versions; those that are gone are no error. Each is a request: for many at once the SDK sends a
 * checksum that several stores refuse.
 */
export async function deleteObjects(access: BucketAccess, objects: readonly ObjectIdentifier[]): Promise<void> {
  const { client, bucket, sendOptions } = access;
  await mapConcurrently(objects, DELETE_CONCURRENCY, (object) =>
    client.deleteObject({ Bucket: bucket, ...object }, sendOptions).catch((error) => {
      if (s3StatusOf(error) === S3_STATUS.notFound) return;
      const right = object.VersionId === undefined ? 's3:DeleteObject' : 's3:DeleteObjectVersion';
      throw explainForbidden(error, access, right);
    }),
  );
}

/** Removes earlier versions and delete markers below a prefix, and of the objects to erase the latest version, too. */
export async function eraseVersions(access: BucketAccess, prefix: string, shouldErase: ErasePredicate): Promise<void> {
  const pages = await listVersions(access, prefix);
  const isErased = ({ Key = '', IsLatest, LastModified }: ObjectVersion) =>
    IsLatest === false || shouldErase(toStoredObject(access, Key, LastModified));
  const versions = pages.flatMap(({ Versions = [] }) => Versions.filter(isErased));
  // Every delete marker goes, also if its date would keep an object: it has the date of the removal.
  const deleteMarkers = pages.flatMap(({ DeleteMarkers = [] }) => DeleteMarkers);
  // An object would appear again if its delete marker went before its versions.
  for (const items of [versions, deleteMarkers]) {
    const objects = items.flatMap(({ Key, VersionId }) =>
      Key?.startsWith(prefix) && VersionId !== undefined ? [{ Key, VersionId }] : [],
    );
    await deleteObjects(access, objects);
  }
}

/**
 * The pages of all versions below a prefix; none from a store that does not know versions. They are listed before one
 * is removed: a store may continue from a version only while that exists.
 */
async function listVersions(access: BucketAccess, prefix: string): Promise<ListObjectVersionsCommandOutput[]> {
  const { address, client, bucket, sendOptions } = access;
  const pages: ListObjectVersionsCommandOutput[] = [];
  for (;;) {
    const { NextKeyMarker: KeyMarker, NextVersionIdMarker: VersionIdMarker } = pages.at(-1) ?? {};
    const input = { Bucket: bucket, Prefix: prefix, KeyMarker, VersionIdMarker };
    const page = await client.listObjectVersions(input, sendOptions).catch((error) => {
      if (s3StatusOf(error) === S3_STATUS.notImplemented) return undefined;
      throw explainForbidden(error, access, 's3:ListBucketVersions');
    });
    if (page !== undefined) pages.push(page);
    if (page?.IsTruncated !== true) return pages;
    if (!page.NextKeyMarker)
      throw configError(`${address} gives half a list, without a marker of the next page: use another store.`);
  }
}

/** Gives an error of a request as it is, or one that names the right if the key lacks it. */
function explainForbidden(error: unknown, { address }: BucketAccess, right: string): unknown {
  if (s3StatusOf(error) !== S3_STATUS.forbidden) return error;
  const why = `objects or their earlier versions cannot be removed (${s3ErrorNameOf(error)})`;
  return configError(`${address}: ${why}: give the key the right ${right}.`, { cause: error });
}
