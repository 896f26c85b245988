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

interface UploadTarget extends Pick<BucketAccess, 'client' | 'options'> {
  readonly object: { readonly Bucket: string; readonly Key: string };
}

/** Uploads a file atomically: nothing of an incomplete upload is visible. */
export async function upload(target: UploadTarget, path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size > PART_BYTES) return await uploadParts(target, file, size);
    await target.client.putObject({ ...target.object, Body: await readAt(file, 0, size) }, target.options);
  } finally {
    await file.close();
  }
}

async function uploadParts(target: UploadTarget, file: FileHandle, size: number): Promise<void> {
  const { client, object, options } = target;
  const { UploadId } = await client.createMultipartUpload(object, options);
  const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
  const limit = pLimit({ concurrency: PART_CONCURRENCY, rejectOnClear: true });
  const send = async (offset: number): Promise<CompletedPart> => {
    const PartNumber = offset / partBytes + 1;
    const Body = await readAt(file, offset, Math.min(partBytes, size - offset));
    const part = { ...object, UploadId, PartNumber, Body };
    const { ETag, ChecksumCRC32 } = await client.uploadPart(part, options);
    return { ETag, PartNumber, ChecksumCRC32 };
  };
  const offsets = Array.from({ length: Math.ceil(size / partBytes) }, (_, i) => i * partBytes);
  const sending = offsets.map((offset) => limit(() => send(offset)));
  try {
    const Parts = await Promise.all(sending);
    const completion = client.completeMultipartUpload({ ...object, UploadId, MultipartUpload: { Parts } }, options);
    await completion.catch((error) => ignoreIfStored(error, target, size));
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
async function ignoreIfStored(error: unknown, target: UploadTarget, size: number): Promise<void> {
  if (s3NameOf(error) !== 'NoSuchUpload') throw error;
  const stored = await target.client.headObject(target.object, target.options).catch(() => undefined);
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
