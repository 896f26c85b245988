import type { ListObjectVersionsCommandOutput, ObjectIdentifier, S3Client } from '@aws-sdk/client-s3';
import { configFailure, type Failure, transientFailure } from '../../../base/errors.ts';
import type { S3 } from './s3-client.ts';
import { statusOf } from './s3-faults.ts';

/** By the protocol. */
const MOST_DELETED = 1_000;
const NOT_KNOWN = 501;
const FORBIDDEN = 403;

export interface BucketAccess {
  readonly s3: S3;
  readonly client: S3Client;
  readonly bucket: string;
  readonly signal: AbortSignal | undefined;
}

/**
 * Removes every version below a prefix, delete markers too, but the latest version of the keys to keep. Throws
 * MissingPermission where that may not be done: the objects are out of sight then, their bytes still in the bucket.
 */
export async function eraseVersions(
  of: BucketAccess,
  prefix: string,
  isKept: (key: string, modified: number) => boolean,
): Promise<void> {
  let marker: { KeyMarker?: string | undefined; VersionIdMarker?: string | undefined } | undefined = {};
  while (marker !== undefined) {
    const page: ListObjectVersionsCommandOutput | undefined = await listVersions(of, { Prefix: prefix, ...marker });
    // A store that knows no versions keeps none.
    if (page === undefined) return;
    const gone: ObjectIdentifier[] = [];
    for (const { Key, VersionId, IsLatest, LastModified } of [
      ...(page.Versions ?? []),
      ...(page.DeleteMarkers ?? []),
    ]) {
      if (Key === undefined || VersionId === undefined) continue;
      if (IsLatest === true && isKept(Key, LastModified?.getTime() ?? 0)) continue;
      gone.push({ Key, VersionId });
    }
    await deleteVersions(of, gone);
    const isMore: boolean = page.IsTruncated === true;
    marker = isMore ? { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker } : undefined;
  }
}

/** Gives up the uploads below a prefix that were begun before `until` (ms) and that nobody finished. Throws MissingPermission. */
export async function abortUploads(of: BucketAccess, prefix: string, until: number): Promise<void> {
  const { s3, client, bucket } = of;
  for (;;) {
    const list = new s3.ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix });
    const page = await client
      .send(list, optionsOf(of))
      .catch((error) => refused(error, 's3:ListBucketMultipartUploads'));
    const uploads = (page?.Uploads ?? []).filter(({ Initiated }) => (Initiated?.getTime() ?? 0) < until);
    for (const { Key, UploadId } of uploads) {
      await client.send(new s3.AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }), optionsOf(of));
    }
    if (uploads.length === 0 || page?.IsTruncated !== true) return;
  }
}

function listVersions(of: BucketAccess, from: { readonly Prefix: string }) {
  const command = new of.s3.ListObjectVersionsCommand({ Bucket: of.bucket, ...from });
  return of.client.send(command, optionsOf(of)).catch((error) => refused(error, 's3:ListBucketVersions'));
}

async function deleteVersions(of: BucketAccess, versions: readonly ObjectIdentifier[]): Promise<void> {
  for (let at = 0; at < versions.length; at += MOST_DELETED) {
    const Delete = { Objects: versions.slice(at, at + MOST_DELETED), Quiet: true };
    const command = new of.s3.DeleteObjectsCommand({ Bucket: of.bucket, Delete });
    const { Errors: [first] = [] } = await of.client.send(command, optionsOf(of));
    if (first !== undefined) throw new MissingPermission('s3:DeleteObjectVersion', first);
  }
}

const optionsOf = ({ signal }: BucketAccess) => (signal === undefined ? {} : { abortSignal: signal });

function refused(error: unknown, right: string): undefined {
  if (statusOf(error) === NOT_KNOWN) return undefined;
  throw statusOf(error) === FORBIDDEN ? new MissingPermission(right, error) : error;
}

/** A right of the key without which earlier versions or unfinished uploads stay. */
export class MissingPermission extends Error {
  readonly right: string;

  constructor(right: string, cause: unknown) {
    super(right, { cause });
    this.right = right;
  }
}

/** After a purge. */
export const bytesStay = (address: string, cause: MissingPermission): Failure =>
  transientFailure(
    `${address}: the rows are out of the table, but bytes of theirs may still be in the bucket as earlier versions or ` +
      `unfinished uploads: give the key the right ${cause.right} and run the purge again.`,
    { cause },
  );

/** Before one. */
export const cannotErase = (address: string, cause: MissingPermission): Failure =>
  configFailure(
    `${address}: earlier versions and unfinished uploads could not be removed by a purge: give the key the right ` +
      `${cause.right}. Nothing was changed.`,
    { cause },
  );
