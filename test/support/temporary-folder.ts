import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

/**
 * Each file of tests has a temporary folder of its own, and so have the processes that it starts: a purge looks for kept downloads in the
 * system's temporary folder, where those of another run or of another file would be counted.
 */
process.env.TMPDIR = mkdtempSync(join(inject('temporaryRoot'), 'file-'));
