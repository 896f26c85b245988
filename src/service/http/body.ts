import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { messageOf } from '../../base/errors.ts';
import { type IdleTimeout, TimeLimitReached, withinTime } from './abort.ts';
import { oneOf } from './headers.ts';
import { networkProblem } from './network.ts';
import { type RawAnswer, Truncated } from './transport.ts';

/** A compressed body that is cut, corrupt, or followed by something else. */
export class BadGzip extends Error {}
class WrongLength extends Error {}

/** The coding of a body: `identity`, `gzip`, or undefined for one that was not requested. */
export function codingOf(answer: RawAnswer): 'identity' | 'gzip' | undefined {
  const coding = (oneOf(answer.headers['content-encoding']) ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return 'identity';
  return coding === 'gzip' || coding === 'x-gzip' ? 'gzip' : undefined;
}

export function declaredLength(answer: RawAnswer): number | undefined {
  const text = oneOf(answer.headers['content-length']);
  return text !== undefined && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/**
 * The bytes of a body after content decoding. Throws what the network threw, `TimeLimitReached`, `BadGzip`,
 * `WrongLength`, or the caller's reason; `bodyProblem` classifies it.
 */
export async function* bytesOf(
  answer: RawAnswer,
  idleTimeout: IdleTimeout,
): AsyncGenerator<Uint8Array, void, undefined> {
  const declared = declaredLength(answer);
  const body = withIdleTimeout(answer.body, idleTimeout);
  const raw = declared === undefined ? body : exactly(declared, answer, body);
  yield* codingOf(answer) !== 'gzip' || declared === 0 ? raw : gunzip(raw);
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
  if (received !== declared) throw new WrongLength(`${received} of ${declared} declared bytes came`);
  if (await answer.hasTrailingBytes()) throw new WrongLength(`more came than the ${declared} bytes declared`);
}

/** Why a body could not be read to its end; `length`: it was declared, and not met or exceeded. */
export type BodyFault = 'reset' | 'stall' | 'gzip' | 'length';

/** The fault of a body that could not be read to its end, and a clause that can follow "because". */
export function bodyProblem(error: unknown, host: string): { readonly code: BodyFault; readonly message: string } {
  if (error instanceof TimeLimitReached) {
    return { code: 'stall', message: `${host} sent no byte for ${formatDuration(error.afterMs)}` };
  }
  if (error instanceof BadGzip) {
    return { code: 'gzip', message: `the compressed answer of ${host} is cut or corrupt (${error.message})` };
  }
  if (error instanceof WrongLength) {
    return { code: 'length', message: `the answer of ${host} does not have the length it declared: ${error.message}` };
  }
  return { code: 'reset', message: networkProblem(error, host).message };
}

const CHUNK_BYTES = 64 * 1024;

/**
 * Decodes gzip of one or several members. Throws `BadGzip` unless the data ends with a valid trailer and nothing after
 * it.
 */
export async function* gunzip(raw: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
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
    throw source.error ?? new BadGzip(messageOf(error), { cause: error });
  } finally {
    decoder.destroy();
  }
  throw new BadGzip('bytes follow the end of the gzip data');
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
