import { once } from 'node:events';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Exchange } from '../exchange.ts';
import type { Chunks } from './cut.ts';

export type Ending = 'clean' | 'reset' | 'drop' | 'stall';

/** A body to be sent: its bytes as they are made, how fast, and how it ends. `ending` is read once the bytes are out. */
export interface BodyPlan {
  readonly chunks: Chunks;
  readonly ending: () => Ending;
  readonly bytesPerSecond?: number;
  readonly stallMs?: number;
}

/** Sends a body, never faster than the other side reads it, and ends it as planned. */
export async function sendBody(exchange: Exchange, plan: BodyPlan): Promise<void> {
  const { res, closed } = exchange;
  for await (const chunk of paced(exchange, plan)) {
    if (closed.aborted) return;
    exchange.seen.bytes += chunk.length;
    if (!res.write(chunk)) await once(res, 'drain', { signal: closed });
  }
  await end(exchange, plan);
}

async function end(exchange: Exchange, plan: BodyPlan): Promise<void> {
  const { res, closed, service } = exchange;
  const ending = plan.ending();
  if (ending === 'clean') {
    res.end();
    return;
  }
  await flushed(exchange);
  if (ending === 'reset') {
    // A reset that overtakes unread bytes is shown by Node's own client as an end, so a client nearby is let read first.
    await turns(TURNS_TO_READ);
    res.socket?.resetAndDestroy();
  } else if (ending === 'drop') res.socket?.destroySoon();
  else if (plan.stallMs !== undefined) {
    await service.clock.sleep(plan.stallMs, closed);
    res.end();
  }
}

const TURNS_TO_READ = 50;

/** Resolves when what was written has left for the socket, or the other side is gone. */
async function flushed({ res }: Exchange): Promise<void> {
  res.flushHeaders();
  await turns(1);
  await new Promise<void>((resolve) => {
    res.once('close', resolve);
    if (res.socket === null) resolve();
    else res.socket.write(Buffer.alloc(0), () => resolve());
  });
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const PIECES_A_SECOND = 10;

async function* paced(exchange: Exchange, plan: BodyPlan): AsyncGenerator<Buffer, void, undefined> {
  if (plan.bytesPerSecond === undefined) return yield* plan.chunks;
  const piece = Math.max(1, Math.floor(plan.bytesPerSecond / PIECES_A_SECOND));
  for await (const chunk of plan.chunks) {
    for (let at = 0; at < chunk.length; at += piece) {
      yield chunk.subarray(at, at + piece);
      await exchange.service.clock.sleep(1_000 / PIECES_A_SECOND, exchange.closed);
    }
  }
}

export type GzipVariant = 'good' | 'cut' | 'corrupt_trailer' | 'not_gzip';
const TRAILER_BYTES = 8;

/** The same body compressed; cut in its last third, with a trailer that does not fit, or only said to be compressed. */
export async function* gzipped(chunks: Chunks, variant: GzipVariant): AsyncGenerator<Buffer, void, undefined> {
  if (variant === 'not_gzip') return yield* chunks;
  const source = Readable.from(chunks, { objectMode: false });
  const gzip = createGzip({ level: 1 });
  source.on('error', (error) => gzip.destroy(error));
  try {
    yield* variant === 'good' ? source.pipe(gzip) : withoutTail(source.pipe(gzip), variant);
  } finally {
    source.destroy();
    gzip.destroy();
  }
}

/** Holds the last bytes back: a cut body lacks them (and a few more), a corrupt one has others in their place. */
async function* withoutTail(chunks: AsyncIterable<Buffer>, variant: 'cut' | 'corrupt_trailer'): AsyncGenerator<Buffer> {
  const held = variant === 'cut' ? TRAILER_BYTES * 2 : TRAILER_BYTES;
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const all: Buffer = Buffer.concat([tail, chunk]);
    const keep = Math.max(0, all.length - held);
    if (keep > 0) yield all.subarray(0, keep);
    tail = all.subarray(keep);
  }
  if (variant === 'corrupt_trailer') yield Buffer.from(tail.map((byte) => byte ^ 0x5a));
}

/** How many bytes a body has, without keeping any. */
export async function measure(chunks: Chunks): Promise<number> {
  let length = 0;
  for await (const chunk of chunks) length += chunk.length;
  return length;
}
