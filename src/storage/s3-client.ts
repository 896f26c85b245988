import { readFileSync } from 'node:fs';
import type { S3 } from '@aws-sdk/client-s3';
import { addressProblem } from '../base/address.ts';
import { type Env, setProcessVariableUnlessSet } from '../base/env.ts';
import { configError, messageOf } from '../base/errors.ts';
import { ProxyAgent } from '../http/proxy.ts';
import type { StoredObject } from './storage.ts';

/** Attempts at one request, the first included; the SDK waits longer before each. */
const SDK_ATTEMPTS = 5;
const CONNECT_MS = 10_000;
/** Maximum time without a byte (ms). */
const IDLE_MS = 60_000;

export interface BucketFolder {
  /** `s3://BUCKET/PREFIX`, for messages. */
  readonly address: string;
  readonly bucket: string;
  /** Prefix of all keys: empty, or ending with `/`. */
  readonly prefix: string;
}

export interface BucketAccess extends BucketFolder {
  readonly client: S3;
  /** The second argument of a request that ends when the run is stopped. */
  readonly sendOptions: { readonly abortSignal: AbortSignal };
}

/** An object or a version of a folder, by its key. `date`: when it was written. */
export const toStoredObject = ({ prefix }: BucketFolder, key: string, date: Date | undefined): StoredObject => ({
  path: key.slice(prefix.length),
  modified: date?.getTime() ?? 0,
});

/**
 * Makes a client with the SDK's own credential chain; a configured endpoint is addressed by path. A request ends after
 * `idleMs` without a byte.
 */
export async function s3ClientOf(env: Env, idleMs = IDLE_MS): Promise<S3> {
  // The SDK warns of old versions of Node; this program pins the SDK.
  setProcessVariableUnlessSet('AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED', 'true');
  const { S3 } = await import('@aws-sdk/client-s3');
  const variable = env.AWS_ENDPOINT_URL_S3 ? 'AWS_ENDPOINT_URL_S3' : 'AWS_ENDPOINT_URL';
  const endpoint = env[variable] || undefined;
  const problem = endpoint && addressProblem(endpoint);
  if (problem !== undefined) throw configError(`${variable} ${problem}.`);
  const bundle = env.AWS_CA_BUNDLE || undefined;
  const client = new S3({
    maxAttempts: SDK_ATTEMPTS,
    // The SDK would write to the console when a file could not be sent.
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      // Bytes that come keep a request alive, however long it takes.
      socketTimeout: idleMs,
      httpsAgent: new ProxyAgent(
        env,
        { keepAlive: true, ...(bundle !== undefined && { ca: certificates(bundle) }) },
        CONNECT_MS,
      ),
    },
    ...(endpoint !== undefined && {
      endpoint,
      forcePathStyle: true,
      // Several stores refuse the checksums that the SDK would add.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
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
      refuseHtml(answer.response);
      return answer;
    },
    { step: 'deserialize', name: 'refuseHtml', priority: 'low' },
  );
  return client;
}

/** Throws a configuration failure for an HTML page: the SDK would take it for an empty list, or for success. */
function refuseHtml(response: unknown): void {
  const { statusCode, headers } = response as { readonly statusCode: number; readonly headers: Record<string, string> };
  const isPage = headers['content-type']?.startsWith('text/html') && headers['content-length'] !== '0';
  if (statusCode >= 300 || !isPage) return;
  throw configError(
    'The endpoint of S3 answers with an HTML page and is no object store: is AWS_ENDPOINT_URL_S3 right?',
  );
}

/** Throws a configuration failure unless a request goes to `https`, or to this machine. */
function checkEndpoint(request: unknown): void {
  const { protocol = '', hostname = '', port } = request as Readonly<Record<string, string | number | undefined>>;
  const url = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
  const problem = addressProblem(url);
  if (problem !== undefined) throw configError(`The endpoint of S3 ${problem}.`);
}

function certificates(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw configError(`the file that AWS_CA_BUNDLE names cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}
