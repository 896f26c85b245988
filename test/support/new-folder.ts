import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A new folder in that of the test file, which is removed when the file has ended. It is named like a Hive partition: no
 * path around a file may change its rows or columns. DuckDB reads the fourth column of a CSV as `c3`.
 */
export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'c3=zz-'));
