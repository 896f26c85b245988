import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A new file (0600) in a folder of its own (0700) under `parent`, without a name from the first moment on: whatever
 * becomes of this process, even `kill -9`, its bytes go with it.
 */
export function openScratch(parent: string): number {
  const folder = mkdtempSync(join(parent, 'dfinery-erase-'));
  try {
    return openSync(join(folder, 'scratch'), 'wx+', 0o600);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
