import type { ObjectIdentifier, S3Client } from '@aws-sdk/client-s3';
import type { S3 } from './s3-client.ts';

/** Keys of one request, by the protocol. */
const MAX_DELETED = 1_000;

export interface BucketAccess {
  readonly s3: S3;
  readonly client: S3Client;
  readonly bucket: string;
  readonly signal: AbortSignal | undefined;
}

/** Options of a request. */
export const optionsOf = ({ signal }: Pick<BucketAccess, 'signal'>) =>
  signal === undefined ? {} : { abortSignal: signal };

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
