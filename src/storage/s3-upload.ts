import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { CompletedPart } from '@aws-sdk/client-s3';
import { mapConcurrently } from './concurrently.ts';
import type { BucketAccess } from './s3-client.ts';
import { s3ErrorNameOf } from './s3-failures.ts';

/** Size of a part (bytes). A larger file is uploaded in parts; at most `PART_CONCURRENCY` parts are held in memory. */
const PART_BYTES = 16 * 1024 * 1024;
const PART_CONCURRENCY = 2;
/** Maximum number of parts, by the protocol of S3. */
const MAX_PARTS = 10_000;

/** Uploads a local file atomically: nothing of an incomplete upload is visible. */
export async function upload(access: BucketAccess, key: string, localPath: string): Promise<void> {
  const { client, bucket, sendOptions } = access;
  const { size } = await stat(localPath);
  if (size > PART_BYTES) return uploadParts(access, key, localPath, size);
  await client.putObject({ Bucket: bucket, Key: key, Body: await readFile(localPath) }, sendOptions);
}

async function uploadParts(access: BucketAccess, key: string, localPath: string, size: number): Promise<void> {
  const { client, bucket, sendOptions } = access;
  const object = { Bucket: bucket, Key: key };
  // AWS takes parts with the checksum that the SDK adds only if the upload was begun with it.
  const hasChecksums = (await client.config.requestChecksumCalculation()) === 'WHEN_SUPPORTED';
  const algorithm = hasChecksums ? ({ ChecksumAlgorithm: 'CRC32' } as const) : {};
  const { UploadId } = await client.createMultipartUpload({ ...object, ...algorithm }, sendOptions);
  const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
  const sendPart = async (offset: number): Promise<CompletedPart> => {
    const PartNumber = offset / partBytes + 1;
    // Not as a stream, which could not be sent again.
    const Body = await buffer(createReadStream(localPath, { start: offset, end: offset + partBytes - 1 }));
    const part = { ...object, UploadId, PartNumber, Body };
    const { ETag, ChecksumCRC32 } = await client.uploadPart(part, sendOptions);
    return { ETag, PartNumber, ChecksumCRC32 };
  };
  const offsets = Array.from({ length: Math.ceil(size / partBytes) }, (_, i) => i * partBytes);
  try {
    const Parts = await mapConcurrently(offsets, PART_CONCURRENCY, sendPart);
    const completion = client.completeMultipartUpload({ ...object, UploadId, MultipartUpload: { Parts } }, sendOptions);
    // An earlier attempt may have completed the upload, and its answer was lost.
    await completion.catch(async (error) => {
      if (s3ErrorNameOf(error) !== 'NoSuchUpload') throw error;
      const head = await client.headObject(object, sendOptions).catch(() => undefined);
      if (head?.ContentLength !== size) throw error;
    });
  } catch (error) {
    // Without the signal: parts that were sent cost money, also when the run is stopped.
    await client.abortMultipartUpload({ ...object, UploadId }).catch(() => {});
    throw error;
  }
}
