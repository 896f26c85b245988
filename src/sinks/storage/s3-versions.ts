import type {
  ListMultipartUploadsCommandOutput,
  ListObjectVersionsCommandOutput,
  MultipartUpload,
  ObjectIdentifier,
} from '@aws-sdk/client-s3';
import { configError, transientError, type UserError } from '../../base/errors.ts';
import { type BucketAccess, optionsOf } from './s3-client.ts';
import { nameOfFault, statusOf } from './s3-faults.ts';

/** Keys of one request, by the protocol. */
const MAX_DELETED = 1_000;
const NOT_KNOWN = 501;
const FORBIDDEN = 403;

/**
 * Deletes objects, or versions of them. The service reports objects that it does not delete inside a successful answer:
 * the first of these goes to `refuse`, which throws. Throws errors of the SDK.
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
  let marker: { KeyMarker?: string | undefined; VersionIdMarker?: string | undefined } | undefined = {};
  const remove = (versions: readonly ObjectIdentifier[]) =>
    deleteObjects(of, versions, (error) => {
      throw new MissingPermission('s3:DeleteObjectVersion', error);
    });
  // Removed once the next page is listed: a store may go on from a version only while that is there.
  let before: readonly ObjectIdentifier[] = [];
  while (marker !== undefined) {
    const page: ListObjectVersionsCommandOutput | undefined = await listVersions(of, { Prefix: prefix, ...marker });
    // The store does not support versions.
    if (page === undefined) return;
    await remove(before);
    const gone: ObjectIdentifier[] = [];
    for (const { Key, VersionId, IsLatest, LastModified } of [
      ...(page.Versions ?? []),
      ...(page.DeleteMarkers ?? []),
    ]) {
      if (Key === undefined || VersionId === undefined) continue;
      if (IsLatest === true && isKept(Key, LastModified?.getTime() ?? 0)) continue;
      gone.push({ Key, VersionId });
    }
    before = gone;
    const isMore: boolean = page.IsTruncated === true;
    marker = isMore ? { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker } : undefined;
  }
  await remove(before);
}

/** Aborts the unfinished uploads below a prefix that were begun before `until` (ms). Throws MissingPermission. */
export async function abortUploads(of: BucketAccess, prefix: string, until: number): Promise<void> {
  let marker: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | undefined = {};
  // As above: a store may go on from an upload only while that is there.
  let before: readonly MultipartUpload[] = [];
  while (marker !== undefined) {
    const page: ListMultipartUploadsCommandOutput | undefined = await listUploads(of, { Prefix: prefix, ...marker });
    await abort(of, before);
    before = (page?.Uploads ?? []).filter(({ Initiated }) => (Initiated?.getTime() ?? 0) < until);
    const isMore: boolean = page?.IsTruncated === true;
    marker = isMore ? { KeyMarker: page?.NextKeyMarker, UploadIdMarker: page?.NextUploadIdMarker } : undefined;
  }
  await abort(of, before);
}

async function abort(of: BucketAccess, uploads: readonly MultipartUpload[]): Promise<void> {
  for (const { Key, UploadId } of uploads) {
    const command = new of.s3.AbortMultipartUploadCommand({ Bucket: of.bucket, Key, UploadId });
    await of.client.send(command, optionsOf(of)).catch((error) => {
      // Gone already: its writer was quicker, or the answer to this very request was lost.
      if (nameOfFault(error) !== 'NoSuchUpload') throw error;
    });
  }
}

function listUploads(of: BucketAccess, from: { readonly Prefix: string }) {
  const command = new of.s3.ListMultipartUploadsCommand({ Bucket: of.bucket, ...from });
  return of.client.send(command, optionsOf(of)).catch((error) => refused(error, 's3:ListBucketMultipartUploads'));
}

function listVersions(of: BucketAccess, from: { readonly Prefix: string }) {
  const command = new of.s3.ListObjectVersionsCommand({ Bucket: of.bucket, ...from });
  return of.client.send(command, optionsOf(of)).catch((error) => refused(error, 's3:ListBucketVersions'));
}

function refused(error: unknown, right: string): undefined {
  if (statusOf(error) === NOT_KNOWN) return undefined;
  throw statusOf(error) === FORBIDDEN ? new MissingPermission(right, error) : error;
}

/** A permission is missing without which earlier versions or unfinished uploads cannot be removed. */
export class MissingPermission extends Error {
  readonly right: string;

  constructor(right: string, cause: unknown) {
    super(right, { cause });
    this.right = right;
  }
}

/** The failure for a purge that removed the rows but not the earlier versions. */
export const bytesStay = (address: string, cause: MissingPermission): UserError =>
  transientError(
    `${address}: the rows are out of the table, but their bytes may still be in the bucket as earlier versions or ` +
      `unfinished uploads: give the key the right ${cause.right} and run the purge again.`,
    { cause },
  );

/** The failure for the check before a purge. */
export const cannotErase = (address: string, cause: MissingPermission): UserError =>
  configError(
    `${address}: earlier versions and unfinished uploads could not be removed by a purge: give the key the right ` +
      `${cause.right}. Nothing was changed.`,
    { cause },
  );
