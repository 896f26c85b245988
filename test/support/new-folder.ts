import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder in that of the test file. All of them are removed when the run has ended. */
export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'test-'));
