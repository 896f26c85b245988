import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

const READ_BYTES = 1 << 20;

/** What a file on disk is. */
export interface Fingerprint {
  readonly bytes: number;
  readonly sha256: string;
}

/** Reads a file to its end. Throws the system's error. */
export async function fingerprint(path: string): Promise<Fingerprint> {
  const file = await open(path, 'r');
  try {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    let bytes = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES, bytes);
      if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') };
      hash.update(buffer.subarray(0, bytesRead));
      bytes += bytesRead;
    }
  } finally {
    await file.close();
  }
}
