import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeFolders } from '../../../src/fs/make-folders.ts';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'dfinery-folders-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('folders', () => {
  it('are made with those above them, and made once', () => {
    const path = join(root, 'a', 'b', 'c');
    makeFolders(path, 0o700);
    makeFolders(path, 0o700);
    for (const one of [path, join(root, 'a')]) expect(statSync(one).mode & 0o777).toBe(0o700);
  });

  it('fail with the word of the system where a file stands', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolders(join(root, 'file'), 0o700)).toThrow('EEXIST');
    for (const below of ['below', 'far/below'])
      expect(() => makeFolders(join(root, 'file', below), 0o700)).toThrow('ENOTDIR');
  });

  it.runIf(process.platform === 'linux')('fail at once where nothing can be made', () => {
    expect(() => makeFolders('/proc/dfinery/below', 0o700)).toThrow(/ENOENT|EPERM|EACCES/);
  });
});
