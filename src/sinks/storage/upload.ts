import { type FileHandle, open } from 'node:fs/promises';
import type { CompletedPart } from '@aws-sdk/client-s3';
import pLimit from 'p-limit';
import { type BucketAccess, optionsOf } from './s3-client.ts';
import { nameOfFault } from './s3-faults.ts';

/** Bytes. A larger file goes up in parts of this size: what is held in memory of one is at most `CONCURRENCY` times that. */
const PART_BYTES = 16 * 1024 * 1024;
const CONCURRENCY = 2;
/** By the protocol of S3. */
const MAX_PARTS = 10_000;

interface UploadTo extends BucketAccess {
  readonly key: string;
}

/** Uploads a file atomically: of an incomplete upload nothing is visible. */
export async function upload(to: UploadTo, path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size > PART_BYTES) return await uploadParts(to, file, size);
    const object = { Bucket: to.bucket, Key: to.key, Body: await readAt(file, 0, size) };
    await to.client.send(new to.s3.PutObjectCommand(object), optionsOf(to));
  } finally {
    await file.close();
  }
}

async function uploadParts(to: UploadTo, file: FileHandle, size: number): Promise<void> {
  const { s3, client, bucket, key } = to;
  const object = { Bucket: bucket, Key: key };
  const ChecksumAlgorithm = 'CRC32';
  const begin = new s3.CreateMultipartUploadCommand({ ...object, ChecksumAlgorithm });
  const { UploadId } = await client.send(begin, optionsOf(to));
  const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
  const limit = pLimit(CONCURRENCY);
  const send = async (from: number): Promise<CompletedPart> => {
    const PartNumber = from / partBytes + 1;
    const Body = await readAt(file, from, Math.min(partBytes, size - from));
    const part = new s3.UploadPartCommand({ ...object, UploadId, PartNumber, Body, ChecksumAlgorithm });
    const { ETag, ChecksumCRC32 } = await client.send(part, optionsOf(to));
    return { ETag, PartNumber, ChecksumCRC32 };
  };
  const froms = Array.from({ length: Math.ceil(size / partBytes) }, (_, i) => i * partBytes);
  try {
    const Parts = await Promise.all(froms.map((from) => limit(() => send(from))));
    const end = new s3.CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } });
    await client.send(end, optionsOf(to)).catch((error) => unlessStored(error, to, size));
  } catch (error) {
    limit.clearQueue();
    // Without the signal: the parts already sent must be removed, since they cost money, also when the run is stopped.
    await client.send(new s3.AbortMultipartUploadCommand({ ...object, UploadId })).catch(() => {});
    throw error;
  }
}

/** An unknown upload after a retry of its completion was completed before: the answer of the first request was lost. */
async function unlessStored(error: unknown, to: UploadTo, size: number): Promise<void> {
  if (nameOfFault(error) !== 'NoSuchUpload') throw error;
  const head = new to.s3.HeadObjectCommand({ Bucket: to.bucket, Key: to.key });
  const found = await to.client.send(head, optionsOf(to)).catch(() => undefined);
  if (found?.ContentLength !== size) throw error;
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
