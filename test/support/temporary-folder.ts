import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

/**
 * Each file of tests has a temporary folder of its own, and so have the processes that it starts. For a purge looks for
 * kept downloads in the system's temporary folder, and would count those of other files.
 */
process.env.TMPDIR = mkdtempSync(join(inject('temporaryRoot'), 'file-'));
