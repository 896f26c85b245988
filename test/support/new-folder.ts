import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder in that of the test file, which is removed when the file has ended. */
export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'test-'));
