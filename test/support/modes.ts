import { statSync } from 'node:fs';
import { expect } from 'vitest';

/** Whether files have modes here; Windows keeps none. */
export const HAS_MODES = process.platform !== 'win32';

/** Expects the mode of a file or folder. Where files have none, it says so and expects nothing. */
export function expectMode(path: string, mode: number): void {
  if (HAS_MODES) expect(statSync(path).mode & 0o777, path).toBe(mode);
  else process.stdout.write(`not on this system: the mode of ${path}\n`);
}
