import fs, { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeFolders } from '../../../src/fs/make-folders.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

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

  it('that somebody else makes at the same moment are there as well', async () => {
    const quicker = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      real(...all);
      return real(...all);
    };
    const path = join(root, 'contested', 'folder');
    await withCall(fs, 'mkdirSync', quicker, () => makeFolders(path, 0o700));
    expect(statSync(path).isDirectory()).toBe(true);
  });

  it('fail where a link leads in a circle, and not where the system calls what is below a file nothing', async () => {
    symlinkSync('circle', join(root, 'circle'));
    expect(() => makeFolders(join(root, 'circle'), 0o700)).toThrow('ELOOP');
    const asNode20 = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      const found = real(...all);
      if (found === undefined) throw systemError('ENOTDIR');
      return found;
    };
    const path = join(root, 'new', 'folder');
    await expect(withCall(fs, 'statSync', asNode20, () => makeFolders(path, 0o700))).resolves.toBeUndefined();
    expect(statSync(path).isDirectory()).toBe(true);
  });

  it.runIf(process.platform === 'linux')('fail at once where nothing can be made', () => {
    expect(() => makeFolders('/proc/dfinery/below', 0o700)).toThrow(/ENOENT|EPERM|EACCES/);
  });
});
