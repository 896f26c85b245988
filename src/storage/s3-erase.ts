import type {
  ListMultipartUploadsCommandOutput,
  ListObjectVersionsCommandOutput,
  ObjectIdentifier,
  ObjectVersion,
} from '@aws-sdk/client-s3';
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
  const { client, bucket, sendOptions } = access;
  const listPage = (after?: ListObjectVersionsCommandOutput) => {
    const position = { KeyMarker: after?.NextKeyMarker, VersionIdMarker: after?.NextVersionIdMarker };
    return client.listObjectVersions({ Bucket: bucket, Prefix: prefix, ...position }, sendOptions);
  };
  const pages = await allPages(access, 's3:ListBucketVersions', listPage);
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

/** Aborts the unfinished uploads of the objects to erase below a prefix. */
export async function abortUploads(access: BucketAccess, prefix: string, shouldErase: ErasePredicate): Promise<void> {
  const { client, bucket, sendOptions } = access;
  const listPage = (after?: ListMultipartUploadsCommandOutput) => {
    const position = { KeyMarker: after?.NextKeyMarker, UploadIdMarker: after?.NextUploadIdMarker };
    return client.listMultipartUploads({ Bucket: bucket, Prefix: prefix, ...position }, sendOptions);
  };
  const pages = await allPages(access, 's3:ListBucketMultipartUploads', listPage);
  const uploads = pages.flatMap(({ Uploads = [] }) => Uploads);
  for (const { Key, UploadId, Initiated } of uploads) {
    if (Key?.startsWith(prefix) !== true || !shouldErase(toStoredObject(access, Key, Initiated))) continue;
    await abortUpload(access, Key, UploadId);
  }
}

/** Begins an upload and aborts it, if the store knows uploads. Fails as a purge would that meets an unfinished one. */
export async function checkAbortable(access: BucketAccess, key: string): Promise<void> {
  const { client, bucket, sendOptions } = access;
  const upload = await client
    .createMultipartUpload({ Bucket: bucket, Key: key }, sendOptions)
    .catch((error) => undefinedIfUnsupported(error, access, 's3:PutObject'));
  if (upload !== undefined) await abortUpload(access, key, upload.UploadId);
}

async function abortUpload(access: BucketAccess, Key: string, UploadId?: string): Promise<void> {
  const { client, bucket, sendOptions } = access;
  await client.abortMultipartUpload({ Bucket: bucket, Key, UploadId }, sendOptions).catch((error) => {
    // Its writer completed it first, or the answer to this very request was lost.
    if (s3ErrorNameOf(error) !== 'NoSuchUpload') throw explainForbidden(error, access, 's3:AbortMultipartUpload');
  });
}

/**
 * The pages of a listing, which needs a right; none from a store that does not know it. All at once: a store may
 * continue from an item only while that exists, and the caller removes the items.
 */
async function allPages<P extends ListObjectVersionsCommandOutput | ListMultipartUploadsCommandOutput>(
  access: BucketAccess,
  right: string,
  listPage: (after?: P) => Promise<P>,
): Promise<P[]> {
  const pages: P[] = [];
  for (;;) {
    const page = await listPage(pages.at(-1)).catch((error) => undefinedIfUnsupported(error, access, right));
    if (page !== undefined) pages.push(page);
    if (page?.IsTruncated !== true) return pages;
    if (!page.NextKeyMarker)
      throw configError(`${access.address} gives half a list, without a marker of the next page: use another store.`);
  }
}

/** Undefined for a request that the store does not know; else it throws. */
function undefinedIfUnsupported(error: unknown, access: BucketAccess, right: string): undefined {
  if (s3StatusOf(error) === S3_STATUS.notImplemented) return undefined;
  throw explainForbidden(error, access, right);
}

/** Gives an error of a request as it is, or one that names the right if the key lacks it. */
function explainForbidden(error: unknown, { address }: BucketAccess, right: string): unknown {
  if (s3StatusOf(error) !== S3_STATUS.forbidden) return error;
  const message =
    `${address}: objects, earlier versions or unfinished uploads cannot be removed (${s3ErrorNameOf(error)}): give the key ` +
    `the right ${right}.`;
  return configError(message, { cause: error });
}
