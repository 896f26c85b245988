import type * as Fs from 'node:fs';
import { createRequire } from 'node:module';

/** The file system of the machine that the test runs on. */
export const realFs: typeof Fs = createRequire(import.meta.url)('node:fs');
