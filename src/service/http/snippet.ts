import type { Clock } from '../../base/clock.ts';

/** Of a failure's body no more is read, nor for any longer. */
const MOST_BYTES = 64 * 1024;
const MOST_MS = 30_000;

/** The first bytes of a body, as many as arrive in time; errors of the body are ignored. */
export async function snippet(bytes: AsyncIterable<Uint8Array>, clock: Clock): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const reading = collect(bytes, chunks).catch(() => {});
  let cancel = () => {};
  const late = new Promise<void>((resolve) => {
    cancel = clock.after(MOST_MS, resolve);
  });
  await Promise.race([reading, late]);
  cancel();
  return Buffer.concat(chunks).subarray(0, MOST_BYTES);
}

async function collect(bytes: AsyncIterable<Uint8Array>, into: Uint8Array[]): Promise<void> {
  let length = 0;
  for await (const chunk of bytes) {
    into.push(chunk);
    length += chunk.length;
    if (length >= MOST_BYTES) return;
  }
}
