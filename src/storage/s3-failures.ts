import { codeOf, type ErrorKind, messageOf, UserError } from '../base/errors.ts';
import { printable, sentenceOf } from '../base/visible-text.ts';
import { isDiskFull } from '../fs/disk-failure.ts';
import { networkProblem } from '../http/failures.ts';

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
const OTHER_REGION = new Set(['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IncorrectEndpoint', '301']);
/** Characters of a store's own message that are shown. */
const MAX_MESSAGE = 300;
const TRANSIENT = new Set([
  'SlowDown',
  'RequestTimeout',
  'TimeoutError',
  'ThrottlingException',
  'TooManyRequestsException',
  'InternalError',
  'ServiceUnavailable',
  'ConditionalRequestConflict',
  'OperationAborted',
]);

/** Statuses of answers that the storage decides by. */
export const S3_STATUS = {
  /** A part of an object. */
  partial: 206,
  forbidden: 403,
  notFound: 404,
  /** Two requests create one object at the same time: possibly neither succeeded. */
  undecided: 409,
  exists: 412,
  notImplemented: 501,
} as const;

/** The status of an answer of S3; undefined for an error of another kind. */
export const s3StatusOf = (thrown: unknown): number | undefined =>
  (thrown as { readonly $metadata?: { readonly httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
/** The name by which S3 or the SDK tells one error from another. */
export const s3NameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : 'Error');

/** Status, name and message of an answer, as the store has them. */
export const s3AnswerOf = (thrown: unknown): string =>
  [s3StatusOf(thrown), `${s3NameOf(thrown)}:`, printable(messageOf(thrown)).slice(0, MAX_MESSAGE)].join(' ').trim();

/** The region that a store names, in its answer or in the header fields of that. */
function regionOf(thrown: unknown): string | undefined {
  const { Region, $response } = thrown as {
    readonly Region?: string;
    readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
  };
  const region = Region ?? $response?.headers?.['x-amz-bucket-region'];
  return region !== undefined && /^[a-z0-9-]{1,40}$/.test(region) ? region : undefined;
}

/** What is known of a request that failed. */
interface FailedRequest {
  readonly thrown: unknown;
  readonly address: string;
  readonly name: string;
  readonly status: number | undefined;
  /** Status, name and message, as the store has them. */
  readonly said: string;
  /** The region of the bucket, if the store says that it is another. */
  readonly region: string | undefined;
  readonly network: ReturnType<typeof networkProblem>;
}

interface FailureRow {
  readonly when: (failed: FailedRequest) => boolean;
  readonly kind: ErrorKind;
  readonly message: (failed: FailedRequest) => string;
}

const isDenied = ({ name, status }: FailedRequest) =>
  name === 'AccessDenied' || status === 401 || status === S3_STATUS.forbidden || CREDENTIALS.has(name);

/** Every failure of a request: the first match wins, and `OTHER_FAILURE` is the rest. */
const FAILURES: readonly FailureRow[] = [
  {
    when: ({ thrown }) => isDiskFull(thrown),
    kind: 'transient',
    message: () => 'No space is left in spool_dir: make room, or set spool_dir to another disk.',
  },
  {
    when: ({ name }) => name === 'NoSuchBucket',
    kind: 'config',
    message: ({ address }) => `${address}: there is no such bucket.`,
  },
  { when: ({ network }) => network.isConfig, kind: 'config', message: ({ network }) => sentenceOf(network.clause) },
  {
    when: ({ network }) => network.code === 'proxy',
    kind: 'transient',
    message: ({ address, network }) => `${address} was not reached, because ${network.clause}: try again later.`,
  },
  {
    when: ({ region }) => region !== undefined,
    kind: 'config',
    message: ({ address, region, said }) =>
      `${address} is in the region ${region} (${said}): set AWS_REGION=${region}.`,
  },
  {
    when: ({ name }) => name === 'RequestTimeTooSkewed',
    kind: 'config',
    message: ({ address, said }) => `${address} refused a request (${said}): set the clock of this machine right.`,
  },
  {
    when: isDenied,
    kind: 'config',
    message: ({ address, said }) =>
      `${address} refused a request (${said}): give the SDK's credential chain a valid key with the rights that ` +
      'docs/targets.md lists, and AWS_REGION.',
  },
  {
    when: ({ thrown }) => /region (is missing|not accepted)/i.test(messageOf(thrown)),
    kind: 'config',
    message: ({ address }) => `${address}: no region is known: set AWS_REGION.`,
  },
  {
    when: ({ thrown }) => isTransient(thrown),
    kind: 'transient',
    message: (failed) => `${failed.address} does not answer as it should (${reasonOf(failed)}): try again later.`,
  },
  {
    when: ({ status }) => status === undefined,
    kind: 'system',
    message: ({ address, name }) => `A request to ${address} could not be made (${name}): please report it.`,
  },
];

const OTHER_FAILURE: Omit<FailureRow, 'when'> = {
  kind: 'config',
  message: ({ address, said }) =>
    `${address} refused a request (${said}): check the address, AWS_REGION and AWS_ENDPOINT_URL_S3.`,
};

const reasonOf = ({ thrown, name, status }: FailedRequest): string =>
  status !== undefined && status >= 300 ? `${status} ${name}` : (codeOf(thrown) ?? name);

/** Converts an error of a store into a failure that names the address and who must act. */
export function s3Error(thrown: unknown, address: string, signal: AbortSignal | undefined): UserError {
  signal?.throwIfAborted();
  if (thrown instanceof UserError) return thrown;
  const [name, status] = [s3NameOf(thrown), s3StatusOf(thrown)];
  const said = s3AnswerOf(thrown);
  const region = OTHER_REGION.has(name) ? regionOf(thrown) : undefined;
  const network = networkProblem(thrown, `the endpoint of ${address}`);
  const failed: FailedRequest = { thrown, address, name, status, said, region, network };
  const { kind, message } = FAILURES.find(({ when }) => when(failed)) ?? OTHER_FAILURE;
  const technical = `${name} ${status ?? codeOf(thrown) ?? ''}`.trim();
  return new UserError(kind, message(failed), { cause: thrown, technical });
}

/** True for errors that a retry may solve: network errors, time-outs, 5xx, throttling. */
export function isTransient(thrown: unknown): boolean {
  const [name, status] = [s3NameOf(thrown), s3StatusOf(thrown)];
  if (TRANSIENT.has(name) || status === 408 || status === 429 || (status !== undefined && status >= 500))
    return status !== S3_STATUS.notImplemented;
  return (status === undefined || status < 300) && codeOf(thrown) !== undefined;
}
