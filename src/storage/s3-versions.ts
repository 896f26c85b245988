import type {
  ListMultipartUploadsCommandOutput,
  ListObjectVersionsCommandOutput,
  ObjectIdentifier,
} from '@aws-sdk/client-s3';
import type { UserError } from '../base/errors.ts';
import { type BucketAccess, beginPage, nameOfFault, statusOf } from './s3-client.ts';

/** Maximum number of keys in one request, by the protocol. */
const MAX_DELETED = 1_000;
const NOT_KNOWN = 501;
const FORBIDDEN = 403;

/** Makes the failure for a permission that the credentials lack, such as `s3:DeleteObject`. */
export type Denied = (permission: string, cause: unknown) => UserError;

/** Deletes objects, or versions. `refuse` makes the failure for one that an answer says was not deleted. */
export async function deleteObjects(
  { client, bucket, options }: BucketAccess,
  objects: readonly ObjectIdentifier[],
  refuse: (error: { readonly Code?: string | undefined }) => UserError,
): Promise<void> {
  for (let at = 0; at < objects.length; at += MAX_DELETED) {
    const Delete = { Objects: objects.slice(at, at + MAX_DELETED), Quiet: true };
    const { Errors: [first] = [] } = await client.deleteObjects({ Bucket: bucket, Delete }, options);
    if (first !== undefined) throw refuse(first);
  }
}

/** Removes all versions and delete markers below a prefix, except the latest versions of the keys to keep. */
export async function eraseVersions(
  access: BucketAccess,
  prefix: string,
  isKept: (key: string, modified: number) => boolean,
  denied: Denied,
): Promise<void> {
  const { client, bucket, options } = access;
  const seen = new Set<string>();
  const list = async (after?: ListObjectVersionsCommandOutput) => {
    beginPage(seen, after?.NextKeyMarker, after?.NextVersionIdMarker);
    const from = { KeyMarker: after?.NextKeyMarker, VersionIdMarker: after?.NextVersionIdMarker };
    const page = client.listObjectVersions({ Bucket: bucket, Prefix: prefix, ...from }, options);
    return page.catch((error) => noPage(error, 's3:ListBucketVersions', denied));
  };
  await eachPage(list, async ({ Versions = [], DeleteMarkers = [] }) => {
    const unkept = [...Versions, ...DeleteMarkers].flatMap(({ Key, VersionId, IsLatest, LastModified }) => {
      if (Key === undefined || VersionId === undefined) return [];
      return IsLatest === true && isKept(Key, LastModified?.getTime() ?? 0) ? [] : [{ Key, VersionId }];
    });
    await deleteObjects(access, unkept, (error) => denied('s3:DeleteObjectVersion', error));
  });
}

/** Aborts the unfinished uploads below a prefix that were begun before `until` (ms). */
export async function abortUploads(
  { client, bucket, options }: BucketAccess,
  prefix: string,
  until: number,
  denied: Denied,
): Promise<void> {
  const seen = new Set<string>();
  const list = async (after?: ListMultipartUploadsCommandOutput) => {
    beginPage(seen, after?.NextKeyMarker, after?.NextUploadIdMarker);
    const from = { KeyMarker: after?.NextKeyMarker, UploadIdMarker: after?.NextUploadIdMarker };
    const page = client.listMultipartUploads({ Bucket: bucket, Prefix: prefix, ...from }, options);
    return page.catch((error) => noPage(error, 's3:ListBucketMultipartUploads', denied));
  };
  await eachPage(list, async ({ Uploads = [] }) => {
    for (const { Key, UploadId, Initiated } of Uploads) {
      if ((Initiated?.getTime() ?? 0) >= until) continue;
      await client.abortMultipartUpload({ Bucket: bucket, Key, UploadId }, options).catch((error) => {
        // Its writer completed it first, or the answer to this very request was lost.
        if (nameOfFault(error) !== 'NoSuchUpload') throw error;
      });
    }
  });
}

/**
 * Removes what the pages of a listing name; none if a store does not know such objects. A page is removed once the next
 * one is listed: a store may continue from an item only while that exists.
 */
async function eachPage<P extends { readonly IsTruncated?: boolean | undefined }>(
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

function noPage(error: unknown, permission: string, denied: Denied): undefined {
  if (statusOf(error) === NOT_KNOWN) return undefined;
  throw statusOf(error) === FORBIDDEN ? denied(permission, error) : error;
}
