import { once } from 'node:events';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { messageOf, transientError, type UserError } from '../../base/errors.ts';
import { abortable, onAbort, withinTime } from './abort.ts';
import { oneOf } from './headers.ts';
import { networkProblem } from './network.ts';
import { type RawAnswer, Truncated } from './transport.ts';

/** No byte came for too long. */
export class Stalled extends Error {
  readonly afterMs: number;
  constructor(afterMs: number) {
    super(`no byte for ${formatDuration(afterMs)}`);
    this.afterMs = afterMs;
  }
}

class WrongLength extends Error {}

/** Aborts `signal`, with `Stalled`, when nothing arrives for `stallMs` while a caller waits; also when `caller` aborts. */
export class IdleTimeout {
  readonly #clock: Clock;
  readonly #stallMs: number;
  readonly #controller = new AbortController();
  readonly #unlink: () => void;
  #disarm: () => void = () => {};

  constructor(clock: Clock, stallMs: number, caller: AbortSignal) {
    this.#clock = clock;
    this.#stallMs = stallMs;
    this.#unlink = onAbort(caller, () => this.#controller.abort(caller.reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Waits for one thing to arrive. Rejects with the caller's reason or with `Stalled`, even where what is to arrive does
   * not end by the signal.
   */
  async waitFor<T>(arrival: Promise<T>): Promise<T> {
    this.#disarm = this.#clock.after(this.#stallMs, () => this.#controller.abort(new Stalled(this.#stallMs)));
    try {
      return await abortable(arrival, this.signal);
    } catch (error) {
      if (this.signal.aborted) throw this.signal.reason;
      throw error;
    } finally {
      this.#disarm();
    }
  }

  end(): void {
    this.#disarm();
    this.#unlink();
  }
}

/** `identity`, `gzip`, or undefined for a coding that was not requested. */
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
 * The bytes of a body after content decoding. Throws what the network threw, `Stalled`, `BadGzip`, `WrongLength`, or
 * the caller's reason; `bodyProblem` classifies it.
 */
export async function* bytesOf(
  answer: RawAnswer,
  idleTimeout: IdleTimeout,
): AsyncGenerator<Uint8Array, void, undefined> {
  const raw = exactly(answer, withIdleTimeout(answer.body, idleTimeout));
  if (codingOf(answer) !== 'gzip' || declaredLength(answer) === 0) yield* raw;
  else yield* gunzip(raw);
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

async function* exactly(
  answer: RawAnswer,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const declared = declaredLength(answer);
  let received = 0;
  try {
    for await (const chunk of body) {
      received += chunk.length;
      yield chunk;
    }
  } catch (error) {
    if (declared === undefined || !(error instanceof Truncated)) throw error;
    throw new WrongLength(`${received} of ${declared} declared bytes came`);
  }
  if (declared === undefined) return;
  if (received !== declared) throw new WrongLength(`${received} of ${declared} declared bytes came`);
  if (await answer.hasTrailingBytes()) throw new WrongLength(`more came than the ${declared} bytes declared`);
}

/** Why a body could not be read to its end. */
export interface BodyProblem {
  readonly code: string;
  /** A clause that can follow "because". */
  readonly message: string;
}

export function bodyProblem(error: unknown, host: string): BodyProblem {
  if (error instanceof Stalled) {
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

export function bodyError(error: unknown, host: string): UserError {
  const { code, message } = bodyProblem(error, host);
  return transientError(message, { internal: `${code}: ${message}`, cause: error });
}

/** A compressed body that is cut, corrupt, or followed by something else. */
export class BadGzip extends Error {}

const CHUNK_BYTES = 64 * 1024;

/** Decodes gzip of one or several members. Throws `BadGzip` unless the data ends with a valid trailer and nothing after it. */
export async function* gunzip(raw: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = createGunzip({ chunkSize: CHUNK_BYTES });
  const feed = { received: 0, over: false, error: undefined as unknown };
  const over = new AbortController();
  // Not waited for at the end: it may wait on the network until the owner of the connection closes it.
  void pump(raw, decoder, feed, over.signal).catch((error: unknown) => {
    if (decoder.errored !== null) return;
    feed.error = error;
    decoder.destroy(error instanceof Error ? error : new Error(messageOf(error)));
  });
  try {
    yield* decoder.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
    if (!feed.over || decoder.bytesWritten !== feed.received)
      throw new BadGzip('bytes follow the end of the gzip data');
  } catch (error) {
    if (feed.error !== undefined) throw feed.error;
    throw error instanceof BadGzip ? error : new BadGzip(messageOf(error), { cause: error });
  } finally {
    over.abort();
    decoder.destroy();
  }
}

interface Feed {
  received: number;
  over: boolean;
}

async function pump(
  raw: AsyncIterable<Uint8Array>,
  decoder: ReturnType<typeof createGunzip>,
  feed: Feed,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of raw) {
      feed.received += chunk.length;
      if (!decoder.write(chunk)) await once(decoder, 'drain', { signal });
      if (signal.aborted) return;
    }
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  feed.over = true;
  decoder.end();
}

/** Of a failure's body no more is read, nor for any longer. */
const MAX_BYTES = 64 * 1024;
const MAX_MS = 30_000;

/** The first bytes of a body, as many as arrive in time and before an abort; errors of the body are ignored. */
export async function snippet(
  bytes: AsyncIterable<Uint8Array>,
  context: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  await withinTime(MAX_MS, context, () => collect(bytes, chunks)).catch(() => {});
  return Buffer.concat(chunks).subarray(0, MAX_BYTES);
}

async function collect(bytes: AsyncIterable<Uint8Array>, into: Uint8Array[]): Promise<void> {
  let length = 0;
  for await (const chunk of bytes) {
    into.push(chunk);
    length += chunk.length;
    if (length >= MAX_BYTES) return;
  }
}
