import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { nextTurn } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { codeOf, messageOf } from '../../base/errors.ts';
import { networkProblem } from './network.ts';
import { type IdleTimeout, TimeLimitReached } from './time-limit.ts';
import { type RawAnswer, Truncated, TURNS } from './transport.ts';

/** Why a body could not be read to its end; `length`: it was declared, and not met or exceeded. */
export type BodyFault = 'reset' | 'stall' | 'gzip' | 'length' | 'content_encoding' | 'charset';

/** A body that came, and is not what its headers say. `message` follows the name of the host. */
export class WrongBody extends Error {
  readonly fault: BodyFault;
  constructor(fault: BodyFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
  }
}

function declaredLength({ headers }: RawAnswer): number | undefined {
  const text = headers['content-length'] ?? '';
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** The coding of a body. Throws WrongBody for one that was not requested. */
function codingOf({ headers }: RawAnswer): 'identity' | 'gzip' {
  const coding = (headers['content-encoding'] ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return 'identity';
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip';
  throw new WrongBody('content_encoding', `compressed its answer as ${shown(coding)}, which was not requested`);
}

/** Throws WrongBody for text that says that it is not UTF-8. */
function checkCharset({ headers }: RawAnswer): void {
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  if (/^(utf-?8|us-ascii)$/i.test(charset)) return;
  throw new WrongBody('charset', `declares the charset ${shown(charset)}, wanted UTF-8`);
}

/**
 * The decoded bytes of a body. Throws what the network threw, `TimeLimitReached`, `WrongBody`, or the caller's reason;
 * `bodyProblem` classifies it.
 */
export async function* bytesOf(
  answer: RawAnswer,
  idleTimeout?: IdleTimeout,
): AsyncGenerator<Uint8Array, void, undefined> {
  checkCharset(answer);
  const coding = codingOf(answer);
  const raw = received(answer, idleTimeout);
  yield* coding === 'identity' || declaredLength(answer) === 0 ? raw : gunzip(raw);
}

/** The bytes without the framing. Throws unless they end where the body is complete, as framing and length show. */
async function* received(
  answer: RawAnswer,
  idleTimeout: IdleTimeout | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { stream, headers, failure } = answer;
  const chunks: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
  const next = () =>
    idleTimeout === undefined ? chunks.next() : idleTimeout.waitFor(chunks.next(), ({ value }) => value?.length ?? 0);
  let count = 0;
  let isCut = false;
  try {
    for (let chunk = await next(); chunk.done !== true; chunk = await next()) {
      count += chunk.value.length;
      yield chunk.value;
    }
  } catch (error) {
    if (idleTimeout?.signal.aborted || (failure() === undefined && stream.complete)) throw error;
    isCut = true;
  } finally {
    await chunks.return?.();
  }
  isCut ||= !stream.complete;
  const error = failure();
  // Node takes a body that ends with its connection for complete, even if a reset was its end.
  const isFramed = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  if (error !== undefined && (isCut || !isFramed)) throw error;
  const declared = declaredLength(answer);
  if (declared === undefined && isCut) throw new Truncated('the connection was closed early');
  if (declared === undefined) return;
  if (count !== declared) throw new WrongBody('length', `declared ${declared} bytes of an answer and sent ${count}`);
  for (let turn = 0; turn < TURNS && failure() === undefined; turn++) await nextTurn();
  if (codeOf(failure())?.startsWith('HPE_') !== true) return;
  throw new WrongBody('length', `declared ${declared} bytes of an answer and sent more`);
}

const CHUNK_BYTES = 64 * 1024;

/** Decodes gzip of one or several members. Throws `WrongBody` unless the data ends with a valid trailer. */
async function* gunzip(raw: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = createGunzip({ chunkSize: CHUNK_BYTES });
  // This is not awaited: at the end it may wait on the network until the owner of the connection closes it.
  pipeline(raw, decoder, () => {});
  try {
    yield* decoder as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (codeOf(error)?.startsWith('Z_') !== true) throw error;
    throw new WrongBody('gzip', `sent gzip that is cut or corrupt (${messageOf(error)})`, error);
  } finally {
    decoder.destroy();
  }
}

/** The name of a coding as far as it can be shown. */
const shown = (name: string): string => (/^[\w .,;+-]{1,40}$/.test(name) ? name : 'something');

/** The fault of a body that could not be read to its end, and a clause that can follow "because". */
export function bodyProblem(error: unknown, host: string): { readonly code: BodyFault; readonly message: string } {
  if (error instanceof TimeLimitReached) {
    return { code: 'stall', message: `${host} sent nothing, or hardly anything, for ${formatDuration(error.afterMs)}` };
  }
  if (error instanceof WrongBody) return { code: error.fault, message: `${host} ${error.message}` };
  return { code: 'reset', message: networkProblem(error, host).message };
}

/** No answer that is not data is longer. */
const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * The first bytes of a body that is not data. Throws what the body throws; with `keepsPart`, gives what came before.
 */
export async function firstBytes(bytes: AsyncIterable<Uint8Array>, { keepsPart = false } = {}): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of bytes) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_ANSWER_BYTES) break;
    }
  } catch (error) {
    if (!keepsPart) throw error;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES);
}
