import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/**
 * Each file of tests has a temporary folder of its own, and so have the processes that it starts. For a purge looks for
 * kept downloads in the system's temporary folder, and would count those of other files.
 */
const shared = tmpdir();
const own = mkdtempSync(join(shared, 'dfinery-tests-'));
process.env.TMPDIR = own;
afterAll(() => {
  process.env.TMPDIR = shared;
  rmSync(own, { recursive: true, force: true, maxRetries: 5 });
});
