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
import { isDiskFull } from '../fs/disk-failure.ts';
import { networkProblem } from '../service/http/failures.ts';

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
