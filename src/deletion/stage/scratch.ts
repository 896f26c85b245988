import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeWhole } from '../../fs/atomic-file.ts';
import { diskFailure } from '../../fs/disk-failure.ts';

/**
 * A new file (0600) in a new folder (0700) under `parent`, unlinked as soon as it is open: its bytes are gone when the
 * process ends, even by `kill -9`.
 */
export function openScratch(parent: string): number {
  try {
    const folder = mkdtempSync(join(parent, 'dfinery-erase-'));
    try {
      return openSync(join(folder, 'scratch'), 'wx+', 0o600);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  } catch (error) {
    throw scratchFailure(error, parent);
  }
}

/** Writes all of the bytes; at `position`, or at the end of what was written so far. */
export function writeScratch(fd: number, bytes: Uint8Array, position?: number): void {
  try {
    writeWhole(fd, bytes, position);
  } catch (error) {
    throw scratchFailure(error, tmpdir());
  }
}

/** The list is read and put aside before the first request: a disk that fails here has cost nothing. */
const scratchFailure = (error: unknown, folder: string): unknown =>
  diskFailure(error, {
    what: `the temporary folder ${folder}`,
    path: folder,
    remedy: 'set TMPDIR to a folder on another disk that this user may write to',
    consequence: 'nothing was deleted',
  });
