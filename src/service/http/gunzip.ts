import { once } from 'node:events';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../../base/errors.ts';

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
