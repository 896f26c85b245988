import type {
  ListMultipartUploadsCommandOutput,
  ListObjectVersionsCommandOutput,
  MultipartUpload,
  ObjectIdentifier,
} from '@aws-sdk/client-s3';
import pLimit from 'p-limit';
import { configError } from '../base/errors.ts';
import type { BucketAccess } from './s3-client.ts';
import { S3_STATUS, s3NameOf, s3StatusOf } from './s3-failures.ts';

const DELETED_AT_ONCE = 16;

/**
 * Deletes objects, or versions; those that are gone are no error. Each is a request: for many at once the SDK sends a
 * checksum that several stores refuse.
 */
export async function deleteObjects(access: BucketAccess, objects: readonly ObjectIdentifier[]): Promise<void> {
  const { client, bucket, options } = access;
  const limit = pLimit(DELETED_AT_ONCE);
  const remove = (object: ObjectIdentifier) =>
    client.deleteObject({ Bucket: bucket, ...object }, options).catch((error) => {
      if (s3StatusOf(error) === S3_STATUS.notFound) return;
      throw removalError(error, access, object.VersionId === undefined ? 's3:DeleteObject' : 's3:DeleteObjectVersion');
    });
  try {
    await Promise.all(objects.map((object) => limit(() => remove(object))));
  } finally {
    limit.clearQueue();
  }
}

/** True for a key that stays. `date`: that of its object, or of the begin of its upload. */
type IsKeptKey = (key: string, date: Date | undefined) => boolean;

/** Removes all versions and delete markers below a prefix, except the latest versions of the keys to keep. */
export async function eraseVersions(access: BucketAccess, prefix: string, isKept: IsKeptKey): Promise<void> {
  const { client, bucket, options } = access;
  const list = (after?: ListObjectVersionsCommandOutput) => {
    const from = { KeyMarker: after?.NextKeyMarker, VersionIdMarker: after?.NextVersionIdMarker };
    const page = client.listObjectVersions({ Bucket: bucket, Prefix: prefix, ...from }, options);
    return page.catch((error) => undefinedIfUnsupported(error, access, 's3:ListBucketVersions'));
  };
  const versions: ObjectIdentifier[] = [];
  for await (const { Versions = [], DeleteMarkers = [] } of pagesOf(list)) {
    for (const { Key, VersionId, IsLatest, LastModified } of [...Versions, ...DeleteMarkers]) {
      if (Key === undefined || VersionId === undefined) continue;
      if (IsLatest !== true || !isKept(Key, LastModified)) versions.push({ Key, VersionId });
    }
  }
  await deleteObjects(access, versions);
}

/** Aborts the unfinished uploads below a prefix, except those of the keys to keep. */
export async function abortUploads(access: BucketAccess, prefix: string, isKept: IsKeptKey): Promise<void> {
  const { client, bucket, options } = access;
  const list = (after?: ListMultipartUploadsCommandOutput) => {
    const from = { KeyMarker: after?.NextKeyMarker, UploadIdMarker: after?.NextUploadIdMarker };
    const page = client.listMultipartUploads({ Bucket: bucket, Prefix: prefix, ...from }, options);
    return page.catch((error) => undefinedIfUnsupported(error, access, 's3:ListBucketMultipartUploads'));
  };
  const uploads: MultipartUpload[] = [];
  for await (const { Uploads = [] } of pagesOf(list)) uploads.push(...Uploads);
  for (const { Key, UploadId, Initiated } of uploads) {
    if (Key !== undefined && !isKept(Key, Initiated)) await abortUpload(access, Key, UploadId);
  }
}

/** Begins an upload and aborts it, if the store knows uploads. Fails as a purge would that meets an unfinished one. */
export async function checkAbortable(access: BucketAccess, key: string): Promise<void> {
  const { client, bucket, options } = access;
  const begun = await client
    .createMultipartUpload({ Bucket: bucket, Key: key }, options)
    .catch((error) => undefinedIfUnsupported(error, access, 's3:PutObject'));
  if (begun !== undefined) await abortUpload(access, key, begun.UploadId);
}

async function abortUpload(access: BucketAccess, Key: string, UploadId?: string): Promise<void> {
  const { client, bucket, options } = access;
  await client.abortMultipartUpload({ Bucket: bucket, Key, UploadId }, options).catch((error) => {
    // Its writer completed it first, or the answer to this very request was lost.
    if (s3NameOf(error) !== 'NoSuchUpload') throw removalError(error, access, 's3:AbortMultipartUpload');
  });
}

/**
 * The pages of a listing; none if `list` gives undefined. All are read before anything is removed: a store may continue
 * from an item only while that exists.
 */
async function* pagesOf<P extends { readonly IsTruncated?: boolean | undefined }>(
  list: (after?: P) => Promise<P | undefined>,
): AsyncGenerator<P> {
  for (let page = await list(); page !== undefined; ) {
    yield page;
    page = page.IsTruncated === true ? await list(page) : undefined;
  }
}

/** Undefined for a request that the store does not know; else it throws. */
function undefinedIfUnsupported(error: unknown, access: BucketAccess, permission: string): undefined {
  if (s3StatusOf(error) === S3_STATUS.notImplemented) return undefined;
  throw removalError(error, access, permission);
}

/** The failure of a request; it names the right if the key lacks it. */
function removalError(error: unknown, { address }: BucketAccess, permission: string): unknown {
  if (s3StatusOf(error) !== S3_STATUS.forbidden) return error;
  const message =
    `${address}: objects, earlier versions or unfinished uploads cannot be removed (${s3NameOf(error)}): give the key ` +
    `the right ${permission}.`;
  return configError(message, { cause: error });
}
