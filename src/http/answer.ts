import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { nextTurn } from '../base/clock.ts';
import { codeOf } from '../base/errors.ts';
import { type ByteStream, decompress } from './body.ts';
import { BodyMismatch, ConnectionClosed } from './failures.ts';
import type { WaitLimit } from './time-limit.ts';

/**
 * Turns of the event loop in which Node still acts after an end: it reports what follows the declared bytes of a body, or
 * connects for a request that waited for a connection. Trials took no more.
 */
export const TURNS_AFTER_END = 3;

/** An answer: its head has come, its body is read once. */
export class HttpAnswer {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly #stream: IncomingMessage;
  #connectionError: Error | undefined;

  constructor(request: ClientRequest, stream: IncomingMessage) {
    this.status = stream.statusCode ?? 0;
    this.headers = stream.headers;
    this.#stream = stream;
    request.on('error', (error) => {
      this.#connectionError ??= error;
    });
    // The reader of the body receives this error.
    stream.on('error', () => {});
  }

  /** Stops the body. A connection that is kept stays open if the whole answer has come. */
  close(): void {
    this.#stream.destroy();
  }

  /** The bytes, decompressed. Throws the network's error, `TimeLimitReached`, `BodyMismatch`, or the caller's reason. */
  async *bytes(waitLimit?: WaitLimit): ByteStream {
    yield* decompress(this.#receivedBytes(waitLimit), this.headers);
  }

  /** The bytes as sent. Throws unless they end where the body is whole. */
  async *#receivedBytes(waitLimit: WaitLimit | undefined): ByteStream {
    const stream = this.#stream;
    const chunks: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
    const readNext = () => (waitLimit === undefined ? chunks.next() : waitLimit.waitFor(chunks.next()));
    let received = 0;
    let isCut = true;
    try {
      for (let next = await readNext(); next.done !== true; next = await readNext()) {
        received += next.value.length;
        yield next.value;
      }
      isCut = !stream.complete;
    } catch (error) {
      // Every error of a connection has a code. What it means for the body is decided below.
      if (waitLimit?.signal.aborted || codeOf(error) === undefined) throw error;
    } finally {
      await chunks.return?.();
    }
    if (received === Number(this.headers['content-length']))
      for (let turn = 0; turn < TURNS_AFTER_END; turn++) await nextTurn();
    const error = this.#bodyError(received, isCut);
    if (error !== undefined) throw error;
  }

  /**
   * The error of a body that is not whole; undefined for one that is. `isCut`: it ended before Node saw its end.
   *
   *   body                    cut                                   a reset behind its last byte
   *   chunked                 the error, or ConnectionClosed        whole
   *   up to a close           the error, or ConnectionClosed        the error, although Node takes it for complete
   *   of a declared length    the error; BodyMismatch if too short  whole; BodyMismatch if more bytes came
   */
  #bodyError(received: number, isCut: boolean): Error | undefined {
    const { 'content-length': length, 'transfer-encoding': encoding } = this.headers;
    const error = this.#connectionError;
    const closed = error ?? new ConnectionClosed('the connection was closed early');
    if (encoding !== undefined) return isCut ? closed : undefined;
    if (length === undefined) return isCut || error !== undefined ? closed : undefined;
    if (isCut && error !== undefined) return error;
    // Node's parser fails where bytes follow behind a declared length.
    const isLonger = codeOf(error)?.startsWith('HPE_') === true;
    if (received === Number(length) && !isLonger) return undefined;
    return new BodyMismatch('length', `declared ${length} bytes of an answer and sent ${isLonger ? 'more' : received}`);
  }
}
