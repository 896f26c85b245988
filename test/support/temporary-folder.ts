import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, inject } from 'vitest';

/**
 * Each file of tests has a temporary folder of its own, and so have the processes that it starts. For a purge looks for
 * kept downloads in the system's temporary folder, and would count those of other files.
 */
const root = inject('temporaryRoot');
const folder = mkdtempSync(join(root, 'file-'));
process.env.TMPDIR = folder;
afterAll(() => {
  process.env.TMPDIR = root;
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
