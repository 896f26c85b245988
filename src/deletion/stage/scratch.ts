import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, configFailure, type Failure, NO_ROOM, transientFailure } from '../../base/errors.ts';

/**
 * A new file (0600) in a folder of its own (0700) under `parent`, without a name from the first moment on: whatever
 * becomes of this process, even `kill -9`, its bytes go with it.
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
    for (let done = 0; done < bytes.length; ) {
      const at = position === undefined ? null : position + done;
      done += writeSync(fd, bytes, done, bytes.length - done, at);
    }
  } catch (error) {
    throw scratchFailure(error, tmpdir());
  }
}

/** The list is read and put aside before the first request: a disk that fails here has cost nothing. */
function scratchFailure(error: unknown, folder: string): Failure {
  const code = codeOf(error) ?? 'no code';
  if (NO_ROOM.has(code)) {
    return transientFailure(
      `Nothing was deleted: the temporary folder ${folder} has no room for the list (${code}): make room, or set TMPDIR to a folder on another disk.`,
      { cause: error },
    );
  }
  return configFailure(
    `Nothing was deleted: the temporary folder ${folder} cannot be used (${code}): set TMPDIR to a folder that this user may write to.`,
    { cause: error },
  );
}
