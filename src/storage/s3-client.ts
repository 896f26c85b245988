import { readFileSync } from 'node:fs';
import type { S3 } from '@aws-sdk/client-s3';
import { type Env, quietSdkVersionWarning } from '../base/env.ts';
import {
  codeOf,
  configError,
  type ErrorDetails,
  internalError,
  messageOf,
  transientError,
  UserError,
} from '../base/errors.ts';
import { printable } from '../base/printable.ts';
import { endpointProblem } from '../config/base-url.ts';
import { isDiskFull } from '../fs/disk-failure.ts';
import { networkProblem } from '../service/http/network.ts';
import { ProxyAgent } from '../service/http/proxy.ts';

/** Attempts at one request, the first included; the SDK waits longer before each. */
const SDK_ATTEMPTS = 5;
const CONNECT_MS = 10_000;
/** Maximum time without a byte (ms). */
const IDLE_MS = 60_000;

/**
 * Makes a client with the SDK's own credential chain; a configured endpoint is addressed by path. A request ends after
 * `idleMs` without a byte.
 */
export async function s3ClientOf(env: Env, idleMs = IDLE_MS): Promise<S3> {
  quietSdkVersionWarning();
  const { S3 } = await import('@aws-sdk/client-s3');
  const name = env('AWS_ENDPOINT_URL_S3') ? 'AWS_ENDPOINT_URL_S3' : 'AWS_ENDPOINT_URL';
  const endpoint = env(name) || undefined;
  const problem = endpoint && endpointProblem(name, endpoint);
  if (problem !== undefined) throw configError(`${problem}.`);
  const bundle = env('AWS_CA_BUNDLE') || undefined;
  const client = new S3({
    maxAttempts: SDK_ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      // Bytes that come keep a request alive, however long it takes.
      socketTimeout: idleMs,
      httpsAgent: new ProxyAgent(env, { keepAlive: true, ...(bundle !== undefined && { ca: certificates(bundle) }) }),
    },
    ...(endpoint !== undefined && {
      ...{ endpoint, forcePathStyle: true },
      // Several stores refuse the checksums that the SDK would add.
      ...{ requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' },
    }),
  });
  // The SDK may also take an endpoint from its configuration file.
  client.middlewareStack.add(
    (next) => (args) => {
      checkEndpoint(args.request);
      return next(args);
    },
    { step: 'finalizeRequest', name: 'checkEndpoint' },
  );
  client.middlewareStack.add(
    (next) => async (args) => {
      const answer = await next(args);
      checkAnswer(answer.response);
      return answer;
    },
    { step: 'deserialize', name: 'checkAnswer', priority: 'low' },
  );
  return client;
}

/** Throws a configuration failure for a page: the SDK would read it as an empty list, or as an object that was stored. */
function checkAnswer(response: unknown): void {
  const { statusCode, headers } = response as { readonly statusCode: number; readonly headers: Record<string, string> };
  if (statusCode >= 300 || !headers['content-type']?.startsWith('text/html')) return;
  throw configError(
    'The endpoint of S3 answers with an HTML page and is no object store: is AWS_ENDPOINT_URL_S3 right?',
  );
}

/** Throws a configuration failure unless a request goes to `https`, or to this machine. */
function checkEndpoint(request: unknown): void {
  const {
    protocol = '',
    hostname = '',
    port,
  } = request as Readonly<Record<'protocol' | 'hostname', string>> & {
    readonly port?: number;
  };
  const url = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
  const problem = endpointProblem('The endpoint of S3', url);
  if (problem !== undefined) throw configError(`${problem}.`);
}

function certificates(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw configError(`the file that AWS_CA_BUNDLE names cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

export interface BucketAccess {
  readonly client: S3;
  readonly bucket: string;
  readonly options: { readonly abortSignal?: AbortSignal };
}

/** Records where the next page of a listing begins. Throws for a place that was seen before: the listing never ends. */
export function beginPage(seen: Set<string>, ...marker: readonly (string | undefined)[]): void {
  const place = JSON.stringify(marker);
  if (seen.has(place)) {
    throw transientError('The store repeats a page of its list for ever: try again, or use another store.');
  }
  seen.add(place);
}

const CREDENTIALS = new Set([
  'CredentialsProviderError',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidToken',
  'TokenRefreshRequired',
  'UnauthorizedAccess',
  'AuthorizationHeaderMalformed',
]);
/** Answers of a store about a bucket of another region. */
const ELSEWHERE = new Set(['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IncorrectEndpoint', '301']);
/** Characters of a store's own message that are shown. */
const MAX_SAID = 300;
const PASSING = new Set([
  'SlowDown',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'TimeoutError',
  'ThrottlingException',
  'TooManyRequestsException',
  'InternalError',
  'ServiceUnavailable',
  'ConditionalRequestConflict',
  'OperationAborted',
]);

/** The status of an answer of S3; undefined for an error of another kind. */
export const statusOf = (thrown: unknown): number | undefined =>
  (thrown as { readonly $metadata?: { readonly httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
export const nameOfFault = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : 'Error');

/** The region that a store names, in its answer or in the header fields of that. */
function regionOf(thrown: unknown): string | undefined {
  const { Region, $response } = thrown as {
    readonly Region?: string;
    readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
  };
  const region = Region ?? $response?.headers?.['x-amz-bucket-region'];
  return region !== undefined && /^[a-z0-9-]{1,40}$/.test(region) ? region : undefined;
}

/** Converts an error of a store into a failure that names the address and who must act. */
export function s3Error(thrown: unknown, address: string, signal: AbortSignal | undefined): UserError {
  signal?.throwIfAborted();
  if (thrown instanceof UserError) return thrown;
  const [name, status] = [nameOfFault(thrown), statusOf(thrown)];
  const details: ErrorDetails = { cause: thrown, internal: `${name} ${status ?? codeOf(thrown) ?? ''}`.trim() };
  if (isDiskFull(thrown)) {
    return transientError('No space is left in spool_dir: make room, or set spool_dir to another disk.', details);
  }
  if (name === 'NoSuchBucket') return configError(`${address}: there is no such bucket.`, details);
  const network = networkProblem(thrown, `the endpoint of ${address}`);
  if (network.config) return configError(network.message, details);
  if (network.code === 'proxy')
    return transientError(`${address} was not reached, because ${network.message}: try again later.`, details);
  const said = [status, `${name}:`, printable(messageOf(thrown)).slice(0, MAX_SAID)].join(' ').trim();
  const region = ELSEWHERE.has(name) ? regionOf(thrown) : undefined;
  if (region !== undefined)
    return configError(`${address} is in the region ${region} (${said}): set AWS_REGION=${region}.`, details);
  if (name === 'AccessDenied' || status === 403 || status === 401 || CREDENTIALS.has(name)) {
    return configError(
      `${address} refused a request (${said}): give the SDK's credential chain a valid key with the rights that ` +
        'docs/targets.md lists, and AWS_REGION.',
      details,
    );
  }
  if (/region (is missing|not accepted)/i.test(messageOf(thrown))) {
    return configError(`${address}: no region is known: set AWS_REGION.`, details);
  }
  const reason = status !== undefined && status >= 300 ? `${status} ${name}` : (codeOf(thrown) ?? name);
  if (isPassing(thrown)) {
    return transientError(`${address} does not answer as it should (${reason}): try again later.`, details);
  }
  if (status === undefined)
    return internalError(`A request to ${address} could not be made (${name}): please report it.`, details);
  return configError(
    `${address} refused a request (${said}): check the address, AWS_REGION and AWS_ENDPOINT_URL_S3.`,
    details,
  );
}

/** True for errors that a retry may solve: network errors, time-outs, 5xx, throttling. */
export function isPassing(thrown: unknown): boolean {
  const [name, status] = [nameOfFault(thrown), statusOf(thrown)];
  if (PASSING.has(name) || status === 408 || status === 429 || (status !== undefined && status >= 500))
    return status !== 501;
  return (status === undefined || status < 300) && codeOf(thrown) !== undefined;
}
