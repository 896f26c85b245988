import { writeSync } from 'node:fs';

/**
 * Writes all of these bytes, at `position` or where the file is. A disk that is nearly full takes a part of a write and
 * says nothing: only the write after it fails. Throws the system's error.
 */
export function writeWhole(file: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.length; ) {
    const at = position === undefined ? null : position + done;
    done += writeSync(file, bytes, done, bytes.length - done, at);
  }
}
