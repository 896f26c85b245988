import { pipeline } from 'node:stream';
import { TextDecoder } from 'node:util';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { messageOf } from '../../base/errors.ts';
import { type IdleTimeout, TimeLimitReached, withinTime } from './abort.ts';
import { oneOf } from './headers.ts';
import { networkProblem } from './network.ts';
import { type RawAnswer, Truncated } from './transport.ts';

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

function declaredLength(answer: RawAnswer): number | undefined {
  const text = oneOf(answer.headers['content-length']);
  return text !== undefined && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** The coding of a body. Throws WrongBody for one that was not requested. */
function codingOf(answer: RawAnswer): 'identity' | 'gzip' {
  const coding = (oneOf(answer.headers['content-encoding']) ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return 'identity';
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip';
  throw new WrongBody('content_encoding', `compressed its answer as ${shown(coding)}, which was not requested`);
}

/**
 * The bytes of a body, decoded and in UTF-8. Throws what the network threw, `TimeLimitReached`, `WrongBody`, or the
 * caller's reason; `bodyProblem` classifies it.
 */
export async function* bytesOf(
  answer: RawAnswer,
  idleTimeout?: IdleTimeout,
): AsyncGenerator<Uint8Array, void, undefined> {
  const coding = codingOf(answer);
  const declared = declaredLength(answer);
  const body = idleTimeout === undefined ? answer.body : withIdleTimeout(answer.body, idleTimeout);
  const raw = declared === undefined ? body : exactly(declared, answer, body);
  const decoded = coding === 'identity' || declared === 0 ? raw : gunzip(raw);
  const decoder = decoderOf(answer);
  yield* decoder === undefined ? decoded : inUtf8(decoded, decoder);
}

async function* withIdleTimeout(
  body: AsyncIterable<Uint8Array>,
  idleTimeout: IdleTimeout,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await idleTimeout.waitFor(chunks.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}

/** A body whose length was declared; throws if it has another. */
async function* exactly(
  declared: number,
  answer: RawAnswer,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let received = 0;
  try {
    for await (const chunk of body) {
      received += chunk.length;
      yield chunk;
    }
  } catch (error) {
    if (!(error instanceof Truncated)) throw error;
  }
  const declares = `declared ${declared} bytes of an answer`;
  if (received !== declared) throw new WrongBody('length', `${declares} and sent ${received}`);
  if (await answer.hasTrailingBytes()) throw new WrongBody('length', `${declares} and sent more`);
}

const CHUNK_BYTES = 64 * 1024;

/** Decodes gzip of one or several members. Throws `WrongBody` unless the data ends with a valid trailer. */
async function* gunzip(raw: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = createGunzip({ chunkSize: CHUNK_BYTES });
  const source = { received: 0, isOver: false, error: undefined as unknown };
  async function* counted() {
    try {
      for await (const chunk of raw) {
        source.received += chunk.length;
        yield chunk;
      }
      source.isOver = true;
    } catch (error) {
      source.error = error;
      throw error;
    }
  }
  // This is not awaited: at the end it may wait on the network until the owner of the connection closes it.
  pipeline(counted, decoder, () => {});
  try {
    yield* decoder as AsyncIterable<Uint8Array>;
    if (source.isOver && decoder.bytesWritten === source.received) return;
  } catch (error) {
    throw source.error ?? new WrongBody('gzip', `sent gzip that is cut or corrupt (${messageOf(error)})`, error);
  } finally {
    decoder.destroy();
  }
  throw new WrongBody('gzip', 'sent bytes behind the end of its gzip data');
}

/** Names of Korean charsets that `TextDecoder` does not know. */
const CHARSET_ALIASES: ReadonlyMap<string, string> = new Map(
  ['cp949', 'ms949', 'x-windows-949', 'uhc'].map((name) => [name, 'euc-kr']),
);

/** The decoder of a declared charset other than UTF-8. Throws `WrongBody` for one that is not known. */
function decoderOf(answer: RawAnswer): TextDecoder | undefined {
  const type = oneOf(answer.headers['content-type']) ?? '';
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(type)?.[1]?.toLowerCase();
  if (charset === undefined || /^(utf-?8|us-ascii)$/.test(charset)) return undefined;
  try {
    return new TextDecoder(CHARSET_ALIASES.get(charset) ?? charset, { fatal: true });
  } catch (cause) {
    throw new WrongBody('charset', `declares the charset ${shown(charset)}, which is not known`, cause);
  }
}

async function* inUtf8(
  bytes: AsyncIterable<Uint8Array>,
  decoder: TextDecoder,
): AsyncGenerator<Uint8Array, void, undefined> {
  const decode = (chunk?: Uint8Array) => {
    try {
      return Buffer.from(decoder.decode(chunk, { stream: chunk !== undefined }));
    } catch (cause) {
      throw new WrongBody('charset', `sent text that is not ${decoder.encoding}, the charset it declares`, cause);
    }
  };
  for await (const chunk of bytes) yield decode(chunk);
  yield decode();
}

/** The name of a coding as far as it can be shown. */
const shown = (name: string): string => (/^[\w .,;+-]{1,40}$/.test(name) ? name : 'something');

/** The fault of a body that could not be read to its end, and a clause that can follow "because". */
export function bodyProblem(error: unknown, host: string): { readonly code: BodyFault; readonly message: string } {
  if (error instanceof TimeLimitReached) {
    return { code: 'stall', message: `${host} sent no byte for ${formatDuration(error.afterMs)}` };
  }
  if (error instanceof WrongBody) return { code: error.fault, message: `${host} ${error.message}` };
  return { code: 'reset', message: networkProblem(error, host).message };
}

/** Limits for the body of a failure, in bytes and in time. */
const MAX_FAILURE_BYTES = 64 * 1024;
const MAX_MS = 30_000;

/** Reads the first bytes of a body, as many as arrive in time and before an abort; errors of the body are ignored. */
export async function snippet(
  bytes: AsyncIterable<Uint8Array>,
  context: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const read = async () => {
    let length = 0;
    for await (const chunk of bytes) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_FAILURE_BYTES) return;
    }
  };
  await withinTime(MAX_MS, context, read).catch(() => {});
  return Buffer.concat(chunks).subarray(0, MAX_FAILURE_BYTES);
}
