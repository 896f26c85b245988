import fs, { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeWhole } from '../../../src/fs/atomic-file.ts';
import { withCall } from '../../support/system-calls.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'whole-'));
  path = join(dir, 'file');
  fs.writeFileSync(path, '0123456789');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it('a disk that writes in parts gets every byte', async () => {
  const file = openSync(path, 'r+');
  const sizes: unknown[] = [];
  const write = (
    real: (...all: unknown[]) => unknown,
    of: unknown,
    bytes: unknown,
    from: unknown,
    size: unknown,
    at: unknown,
  ) => {
    sizes.push(size);
    return real(of, bytes, from, Math.min(Number(size), 3), at);
  };
  await withCall(fs, 'writeSync', write, () => writeWhole(file, Buffer.from('abcdefg')));
  closeSync(file);
  expect(sizes).toEqual([7, 4, 1]);
  expect(readFileSync(path, 'utf8')).toBe('abcdefg789');
});
