import type {
  ListMultipartUploadsCommandOutput,
  ListObjectVersionsCommandOutput,
  ObjectIdentifier,
} from '@aws-sdk/client-s3';
import pLimit from 'p-limit';
import type { BucketAccess } from './s3-client.ts';
import { S3_STATUS, s3NameOf, s3StatusOf } from './s3-failures.ts';

const DELETED_AT_ONCE = 16;

/** Thrown for a right that the credentials lack, such as `s3:DeleteObject`. */
export class PermissionDenied extends Error {
  readonly permission: string;

  constructor(permission: string, cause: unknown) {
    super(permission, { cause });
    this.permission = permission;
  }
}

/**
 * Deletes objects, or versions; those that are gone are no error. Each is a request: for many at once the SDK sends a
 * checksum that several stores refuse.
 */
export async function deleteObjects(access: BucketAccess, objects: readonly ObjectIdentifier[]): Promise<void> {
  const { client, bucket, options } = access;
  const limit = pLimit(DELETED_AT_ONCE);
  const remove = (object: ObjectIdentifier) =>
    client.deleteObject({ Bucket: bucket, ...object }, options).catch((error) => {
      const permission = object.VersionId === undefined ? 's3:DeleteObject' : 's3:DeleteObjectVersion';
      if (s3StatusOf(error) === S3_STATUS.forbidden) throw new PermissionDenied(permission, error);
      if (s3StatusOf(error) !== S3_STATUS.notFound) throw error;
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
    return page.catch((error) => undefinedIfUnsupported(error, 's3:ListBucketVersions'));
  };
  await removePages(list, async ({ Versions = [], DeleteMarkers = [] }) => {
    const versions = [...Versions, ...DeleteMarkers].flatMap(({ Key, VersionId, IsLatest, LastModified }) => {
      if (Key === undefined || VersionId === undefined) return [];
      return IsLatest === true && isKept(Key, LastModified) ? [] : [{ Key, VersionId }];
    });
    await deleteObjects(access, versions);
  });
}

/** Aborts the unfinished uploads below a prefix, except those of the keys to keep. */
export async function abortUploads(access: BucketAccess, prefix: string, isKept: IsKeptKey): Promise<void> {
  const { client, bucket, options } = access;
  const list = (after?: ListMultipartUploadsCommandOutput) => {
    const from = { KeyMarker: after?.NextKeyMarker, UploadIdMarker: after?.NextUploadIdMarker };
    const page = client.listMultipartUploads({ Bucket: bucket, Prefix: prefix, ...from }, options);
    return page.catch((error) => undefinedIfUnsupported(error, 's3:ListBucketMultipartUploads'));
  };
  await removePages(list, async ({ Uploads = [] }) => {
    for (const { Key, UploadId, Initiated } of Uploads) {
      if (Key !== undefined && !isKept(Key, Initiated)) await abortUpload(access, Key, UploadId);
    }
  });
}

/** Begins an upload and aborts it, if the store knows uploads. Fails as a purge would that meets an unfinished one. */
export async function tryAbort(access: BucketAccess, key: string): Promise<void> {
  const { client, bucket, options } = access;
  const begun = await client
    .createMultipartUpload({ Bucket: bucket, Key: key }, options)
    .catch((error) => undefinedIfUnsupported(error, 's3:PutObject'));
  if (begun !== undefined) await abortUpload(access, key, begun.UploadId);
}

async function abortUpload({ client, bucket, options }: BucketAccess, Key: string, UploadId?: string): Promise<void> {
  try {
    await client.abortMultipartUpload({ Bucket: bucket, Key, UploadId }, options);
  } catch (error) {
    if (s3StatusOf(error) === S3_STATUS.forbidden) throw new PermissionDenied('s3:AbortMultipartUpload', error);
    // Its writer completed it first, or the answer to this very request was lost.
    if (s3NameOf(error) !== 'NoSuchUpload') throw error;
  }
}

/**
 * Removes what the pages of a listing name. `list` gives undefined if a store does not know such objects. The next page
 * is listed before one is removed: a store may continue from an item only while that exists.
 */
async function removePages<P extends { readonly IsTruncated?: boolean | undefined }>(
  list: (after?: P) => Promise<P | undefined>,
  remove: (page: P) => Promise<void>,
): Promise<void> {
  let page = await list();
  while (page !== undefined) {
    const next: P | undefined = page.IsTruncated === true ? await list(page) : undefined;
    await remove(page);
    page = next;
  }
}

/** Undefined for a request that the store does not know; else it throws. */
function undefinedIfUnsupported(error: unknown, permission: string): undefined {
  if (s3StatusOf(error) === S3_STATUS.notImplemented) return undefined;
  throw s3StatusOf(error) === S3_STATUS.forbidden ? new PermissionDenied(permission, error) : error;
}
