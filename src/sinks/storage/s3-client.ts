import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import type { S3Client } from '@aws-sdk/client-s3';
import { type Env, quietSdkVersionWarning } from '../../base/env.ts';
import { configError, messageOf } from '../../base/errors.ts';
import { endpointProblem } from '../../config/base-url.ts';

/** Attempts at one request, the first included; the SDK waits longer before each. */
const MAX_ATTEMPTS = 5;
const CONNECT_MS = 10_000;
/** Without a byte. */
const IDLE_MS = 60_000;

export type S3 = typeof import('@aws-sdk/client-s3');

/** The SDK, loaded only when an S3 address is used. */
export function loadS3(): Promise<S3> {
  quietSdkVersionWarning();
  return import('@aws-sdk/client-s3');
}

/** A client with the SDK's own credential chain; a given endpoint is addressed by path, as such stores want it. */
export function s3ClientOf(s3: S3, env: Env): S3Client {
  const name = env('AWS_ENDPOINT_URL_S3') ? 'AWS_ENDPOINT_URL_S3' : 'AWS_ENDPOINT_URL';
  const endpoint = env(name) || undefined;
  const problem = endpoint && endpointProblem(name, endpoint);
  if (problem !== undefined) throw configError(`${problem}.`);
  const bundle = env('AWS_CA_BUNDLE') || undefined;
  return new s3.S3Client({
    maxAttempts: MAX_ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: IDLE_MS,
      throwOnRequestTimeout: true,
      ...(bundle !== undefined && { httpsAgent: new Agent({ keepAlive: true, ca: certificates(bundle) }) }),
    },
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
  });
}

function certificates(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw configError(`the file that AWS_CA_BUNDLE names cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** What a request to a bucket needs. */
export interface BucketAccess {
  readonly s3: S3;
  readonly client: S3Client;
  readonly bucket: string;
  readonly signal: AbortSignal | undefined;
}

/** Options of a request. */
export const optionsOf = ({ signal }: Pick<BucketAccess, 'signal'>) =>
  signal === undefined ? {} : { abortSignal: signal };
