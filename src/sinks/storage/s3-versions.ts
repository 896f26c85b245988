import type {
  ListMultipartUploadsCommandOutput,
  ListObjectVersionsCommandOutput,
  ObjectIdentifier,
} from '@aws-sdk/client-s3';
import { configError, transientError, type UserError } from '../../base/errors.ts';
import { type BucketAccess, nameOfFault, optionsOf, statusOf } from './s3-client.ts';

/** Maximum number of keys in one request, by the protocol. */
const MAX_DELETED = 1_000;
const NOT_KNOWN = 501;
const FORBIDDEN = 403;

/**
 * Deletes objects, or versions of them. The service reports an object that it does not delete inside a successful
 * answer: `refuse` gets the first of these, and throws. Throws errors of the SDK.
 */
export async function deleteObjects(
  of: BucketAccess,
  objects: readonly ObjectIdentifier[],
  refuse: (error: { readonly Code?: string | undefined }) => never,
): Promise<void> {
  for (let at = 0; at < objects.length; at += MAX_DELETED) {
    const Delete = { Objects: objects.slice(at, at + MAX_DELETED), Quiet: true };
    const command = new of.s3.DeleteObjectsCommand({ Bucket: of.bucket, Delete });
    const { Errors: [first] = [] } = await of.client.send(command, optionsOf(of));
    if (first !== undefined) refuse(first);
  }
}

/**
 * Removes all versions and delete markers below a prefix, except the latest versions of the keys to keep. Throws
 * MissingPermission if the credentials do not allow it; earlier versions are then still in the bucket.
 */
export async function eraseVersions(
  of: BucketAccess,
  prefix: string,
  isKept: (key: string, modified: number) => boolean,
): Promise<void> {
  const list = (after?: ListObjectVersionsCommandOutput) => {
    const from = { KeyMarker: after?.NextKeyMarker, VersionIdMarker: after?.NextVersionIdMarker };
    const command = new of.s3.ListObjectVersionsCommand({ Bucket: of.bucket, Prefix: prefix, ...from });
    return of.client.send(command, optionsOf(of)).catch((error) => refused(error, 's3:ListBucketVersions'));
  };
  await eachPage(list, async ({ Versions = [], DeleteMarkers = [] }) => {
    const left = [...Versions, ...DeleteMarkers].flatMap(({ Key, VersionId, IsLatest, LastModified }) => {
      if (Key === undefined || VersionId === undefined) return [];
      return IsLatest === true && isKept(Key, LastModified?.getTime() ?? 0) ? [] : [{ Key, VersionId }];
    });
    await deleteObjects(of, left, (error) => {
      throw new MissingPermission('s3:DeleteObjectVersion', error);
    });
  });
}

/** Aborts the unfinished uploads below a prefix that were begun before `until` (ms). Throws MissingPermission. */
export async function abortUploads(of: BucketAccess, prefix: string, until: number): Promise<void> {
  const list = (after?: ListMultipartUploadsCommandOutput) => {
    const from = { KeyMarker: after?.NextKeyMarker, UploadIdMarker: after?.NextUploadIdMarker };
    const command = new of.s3.ListMultipartUploadsCommand({ Bucket: of.bucket, Prefix: prefix, ...from });
    return of.client.send(command, optionsOf(of)).catch((error) => refused(error, 's3:ListBucketMultipartUploads'));
  };
  await eachPage(list, async ({ Uploads = [] }) => {
    for (const { Key, UploadId, Initiated } of Uploads) {
      if ((Initiated?.getTime() ?? 0) >= until) continue;
      const command = new of.s3.AbortMultipartUploadCommand({ Bucket: of.bucket, Key, UploadId });
      await of.client.send(command, optionsOf(of)).catch((error) => {
        // Its writer completed it first, or the answer to this very request was lost.
        if (nameOfFault(error) !== 'NoSuchUpload') throw error;
      });
    }
  });
}

/**
 * Removes what the pages of a listing name; a store that does not know such objects gives no page. A page is removed
 * once the next one is listed: a store may continue from an item only while that exists.
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

function refused(error: unknown, right: string): undefined {
  if (statusOf(error) === NOT_KNOWN) return undefined;
  throw statusOf(error) === FORBIDDEN ? new MissingPermission(right, error) : error;
}

/** Thrown if a permission is missing without which earlier versions or unfinished uploads cannot be removed. */
export class MissingPermission extends Error {
  readonly right: string;

  constructor(right: string, cause: unknown) {
    super(right, { cause });
    this.right = right;
  }
}

/** The failure of a purge that removed the rows but not the earlier versions. */
export const bytesStay = (address: string, cause: MissingPermission): UserError =>
  transientError(
    `${address}: the rows are out of the table, but their bytes may still be in the bucket as earlier versions or ` +
      `unfinished uploads: give the key the right ${cause.right} and run the purge again.`,
    { cause },
  );

/** The failure of the check before a purge. */
export const cannotErase = (address: string, cause: MissingPermission): UserError =>
  configError(
    `${address}: earlier versions and unfinished uploads could not be removed by a purge: give the key the right ` +
      `${cause.right}. Nothing was changed.`,
    { cause },
  );
