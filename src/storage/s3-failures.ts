import { codeOf, configError, messageOf, systemError, transientError, UserError } from '../base/errors.ts';
import { printable, sentenceOf } from '../base/text.ts';
import { diskError, isDiskFailing, isDiskFull } from '../fs/disk-failure.ts';
import { networkProblem } from '../http/failures.ts';

// Names of errors of S3 and of the SDK.
const CREDENTIALS_ERRORS = new Set([
  'CredentialsProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidToken',
  'TokenRefreshRequired',
  'AuthorizationHeaderMalformed',
]);
/** Answers of a store about a bucket of another region. */
const OTHER_REGION_ERRORS = new Set(['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IncorrectEndpoint', '301']);
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 409, 429]);
const TRANSIENT_ERRORS = new Set(['RequestTimeout', 'TimeoutError', 'ThrottlingException']);

/** Characters of a store's own message that are shown. */
const MAX_MESSAGE_CHARS = 300;

/** Statuses of answers that the storage decides by. */
export const S3_STATUS = {
  forbidden: 403,
  notFound: 404,
  /** Two requests create one object at the same time: possibly neither succeeded. */
  conflict: 409,
  exists: 412,
  notImplemented: 501,
} as const;

/** The status of an answer of S3, also of one that was thrown; undefined for an error of another kind. */
export const s3StatusOf = (answerOrError: unknown): number | undefined =>
  (answerOrError as { readonly $metadata?: { readonly httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
/** The name by which S3 or the SDK tells one error from another. */
export const s3ErrorNameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : 'Error');

/** Status, name and message of an answer, as the store has them. */
export function s3AnswerOf(thrown: unknown): string {
  const message = printable(messageOf(thrown)).slice(0, MAX_MESSAGE_CHARS);
  return `${s3StatusOf(thrown) ?? ''} ${s3ErrorNameOf(thrown)}: ${message}`.trim();
}

/** The region that a store names, in its answer or in the header fields of that. */
function regionOf(thrown: unknown): string | undefined {
  const { Region, $response } = thrown as {
    readonly Region?: string;
    readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
  };
  const region = Region ?? $response?.headers?.['x-amz-bucket-region'];
  return region !== undefined && /^[a-z0-9-]{1,40}$/.test(region) ? region : undefined;
}

/** The path of a local file that Node names in an error. */
function pathOf(thrown: unknown): string | undefined {
  const { path } = thrown as { readonly path?: unknown };
  return typeof path === 'string' ? path : undefined;
}

/** True for an error of a local file: it names a path, or has a code that no network has. */
const isOfLocalFile = (thrown: unknown): boolean => pathOf(thrown) !== undefined || isDiskFailing(thrown);

/** The words for a local file whose path does not matter, or is not known. */
const SPOOL_FILE = { subject: 'a file in spool_dir', remedy: 'set spool_dir to a folder on another disk' };

/** The failure that an error of a store or a local file means: it names the address or file, and who must act. */
export function storeError(thrown: unknown, address: string, signal: AbortSignal): UserError {
  signal.throwIfAborted();
  if (thrown instanceof UserError) return thrown;
  const path = isDiskFull(thrown) ? undefined : pathOf(thrown);
  const fileError = isOfLocalFile(thrown) ? diskError(thrown, path === undefined ? SPOOL_FILE : { path }) : undefined;
  return fileError instanceof UserError ? fileError : requestError(thrown, address);
}

/** What a request that failed means. The first match wins: a wrong region may look like wrong credentials. */
function requestError(thrown: unknown, address: string): UserError {
  const [name, status, answer] = [s3ErrorNameOf(thrown), s3StatusOf(thrown), s3AnswerOf(thrown)];
  const details = { cause: thrown, detail: `${name} ${status ?? codeOf(thrown) ?? ''}`.trim() };
  const config = (message: string) => configError(message, details);
  const transient = (message: string) => transientError(message, details);

  if (name === 'NoSuchBucket') return config(`${address}: there is no such bucket.`);

  // The network between.
  const network = networkProblem(thrown, `the endpoint of ${address}`);
  if (network.needsUser) return config(sentenceOf(network.clause));
  if (network.code === 'proxy') {
    return transient(`${address} was not reached, because ${network.clause}: try again later.`);
  }

  // The answer of the store, or of the SDK before it asks; then what may pass, of the network too.
  const refusal = `${address} refused a request (${answer})`;
  const region = OTHER_REGION_ERRORS.has(name) ? regionOf(thrown) : undefined;
  if (region !== undefined) {
    return config(`${address} is in the region ${region} (${answer}): set AWS_REGION=${region}.`);
  }
  if (name === 'RequestTimeTooSkewed') return config(`${refusal}: set the clock of this machine right.`);
  if (status === 401 || status === S3_STATUS.forbidden || CREDENTIALS_ERRORS.has(name)) {
    const remedy =
      "give the SDK's credential chain a valid key with the rights that docs/targets.md lists, and AWS_REGION";
    return config(`${refusal}: ${remedy}.`);
  }
  if (/region (is missing|not accepted)/i.test(messageOf(thrown))) {
    return config(`${address}: no region is known: set AWS_REGION.`);
  }
  if (isTransient(thrown)) {
    const why = status !== undefined && status >= 300 ? `${status} ${name}` : (codeOf(thrown) ?? name);
    return transient(`${address} does not answer as it should (${why}): try again later.`);
  }
  if (status !== undefined) return config(`${refusal}: check the address, AWS_REGION and AWS_ENDPOINT_URL_S3.`);
  return systemError(`A request to ${address} could not be made (${name}): please report it.`, details);
}

/** True if a body broke or was stopped. The SDK marks failed requests, and retries these. */
export const isBrokenBody = (thrown: unknown): boolean =>
  isTransient(thrown) && (thrown as { readonly $metadata?: object }).$metadata === undefined;

/** True for errors that a retry may solve: network errors, time-outs, conflicts, 5xx, throttling. None of a local file. */
export function isTransient(thrown: unknown): boolean {
  const status = s3StatusOf(thrown);
  if (isOfLocalFile(thrown)) return false;
  if (TRANSIENT_ERRORS.has(s3ErrorNameOf(thrown))) return true;
  if (status === undefined || status < 300) return codeOf(thrown) !== undefined;
  return TRANSIENT_STATUSES.has(status) || (status >= 500 && status !== S3_STATUS.notImplemented);
}
