import type { IncomingHttpHeaders } from 'node:http';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { withStart } from '../base/byte-streams.ts';
import { codeOf, messageOf } from '../base/errors.ts';
import { BodyMismatch } from './failures.ts';

export type ByteStream = AsyncGenerator<Uint8Array, void, undefined>;

/** The bytes of a body before its compression. Throws BodyMismatch for a compression that was not requested. */
export function decompress(bytes: ByteStream, headers: IncomingHttpHeaders): ByteStream {
  const coding = (headers['content-encoding'] ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity') return bytes;
  if (coding === 'gzip' || coding === 'x-gzip') return gunzip(bytes);
  throw new BodyMismatch('content_encoding', `compressed its answer as ${codingText(coding)}, which was not requested`);
}

/** Throws BodyMismatch for text that is not UTF-8. A failure may be in any charset: its words are ASCII. */
export function checkCharset(headers: IncomingHttpHeaders): void {
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  if (/^(utf-?8|us-ascii)$/i.test(charset)) return;
  throw new BodyMismatch('charset', `declares the charset ${codingText(charset)}, wanted UTF-8`);
}

/** The name of a coding as far as it can be shown. */
const codingText = (name: string): string => (/^[\w .,;+-]{1,40}$/.test(name) ? name : 'something');

const GUNZIP_CHUNK_BYTES = 64 * 1024;

/** Decodes gzip of one or several members, or no byte. Throws BodyMismatch unless it ends with a valid trailer. */
async function* gunzip(compressed: ByteStream): ByteStream {
  const first = await compressed.next();
  if (first.done === true) return;
  const decoder = createGunzip({ chunkSize: GUNZIP_CHUNK_BYTES });
  // This is not awaited: its last read may settle only when the owner of the connection closes that.
  pipeline(withStart(first.value, compressed), decoder, () => {});
  try {
    yield* decoder as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (codeOf(error)?.startsWith('Z_') !== true) throw error;
    throw new BodyMismatch('gzip', `sent gzip that is cut or corrupt (${messageOf(error)})`, error);
  } finally {
    decoder.destroy();
  }
}

/** The most that is read of an answer that is not data. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** The first bytes of a body that is not data. `keepsPart`: if it fails, those before its failure. */
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
