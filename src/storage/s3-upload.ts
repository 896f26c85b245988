import { type FileHandle, open } from 'node:fs/promises';
import type { CompletedPart } from '@aws-sdk/client-s3';
import pLimit from 'p-limit';
import type { BucketAccess } from './s3-client.ts';
import { s3NameOf } from './s3-failures.ts';

/** Size of a part (bytes). A larger file is uploaded in parts; at most `PART_CONCURRENCY` parts are held in memory. */
const PART_BYTES = 16 * 1024 * 1024;
const PART_CONCURRENCY = 2;
/** Maximum number of parts, by the protocol of S3. */
const MAX_PARTS = 10_000;

interface UploadTo extends BucketAccess {
  readonly key: string;
}

/** Uploads a file atomically: nothing of an incomplete upload is visible. */
export async function upload(to: UploadTo, path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size > PART_BYTES) return await uploadParts(to, file, size);
    await to.client.putObject({ Bucket: to.bucket, Key: to.key, Body: await readAt(file, 0, size) }, to.options);
  } finally {
    await file.close();
  }
}

async function uploadParts(to: UploadTo, file: FileHandle, size: number): Promise<void> {
  const { client, options } = to;
  const object = { Bucket: to.bucket, Key: to.key };
  const { UploadId } = await client.createMultipartUpload(object, options);
  const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
  const limit = pLimit({ concurrency: PART_CONCURRENCY, rejectOnClear: true });
  const send = async (from: number): Promise<CompletedPart> => {
    const PartNumber = from / partBytes + 1;
    const Body = await readAt(file, from, Math.min(partBytes, size - from));
    const part = { ...object, UploadId, PartNumber, Body };
    const { ETag, ChecksumCRC32 } = await client.uploadPart(part, options);
    return { ETag, PartNumber, ChecksumCRC32 };
  };
  const froms = Array.from({ length: Math.ceil(size / partBytes) }, (_, i) => i * partBytes);
  const sending = froms.map((from) => limit(() => send(from)));
  try {
    const Parts = await Promise.all(sending);
    const end = client.completeMultipartUpload({ ...object, UploadId, MultipartUpload: { Parts } }, options);
    await end.catch((error) => unlessStored(error, to, size));
  } catch (error) {
    limit.clearQueue();
    // A part that arrives after the end of the upload would stay.
    await Promise.allSettled(sending);
    // Without the signal: parts that were sent cost money, also when the run is stopped.
    await client.abortMultipartUpload({ ...object, UploadId }).catch(() => {});
    throw error;
  }
}

/** Ignores an unknown upload if the object is stored: an earlier attempt completed it, and its answer was lost. */
async function unlessStored(error: unknown, to: UploadTo, size: number): Promise<void> {
  if (s3NameOf(error) !== 'NoSuchUpload') throw error;
  const stored = await to.client.headObject({ Bucket: to.bucket, Key: to.key }, to.options).catch(() => undefined);
  if (stored?.ContentLength !== size) throw error;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  for (let read = 0; read < length; ) {
    const { bytesRead } = await file.read(buffer, read, length - read, position + read);
    if (bytesRead === 0) throw new RangeError('a file that is shorter than it was');
    read += bytesRead;
  }
  return buffer;
}
