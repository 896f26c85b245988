import { createWriteStream, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { isatty } from 'node:tty';

/**
 * A stream on stdout (1) or stderr (2) that never blocks the process and loses no part of a write. Node writes to pipes
 * synchronously: a reader that stands still stops timers and signals too. Node does not look whether a file took all of
 * a write. For a terminal Node's own stream is used: only its user can stop it.
 */
export function openOutputStream(fd: 1 | 2): Writable {
  if (isatty(fd)) return nodeStream(fd);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFIFO() && !stat.isSocket()) return createWriteStream('', { fd, autoClose: false });
    const out = new Socket({ fd, readable: false, writable: true });
    // Callers wait where it matters that everything is written; a silent reader must not keep the process alive.
    out.unref();
    return out;
  } catch {
    // This stream cannot be opened a second time.
    return nodeStream(fd);
  }
}

const nodeStream = (fd: 1 | 2): Writable => (fd === 1 ? process.stdout : process.stderr);
