import fs, { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeFolders } from '../../../src/fs/private-folder.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'dfinery-folders-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('folders', () => {
  it('are created with their parents, once', () => {
    const path = join(root, 'a', 'b', 'c');
    makeFolders(path);
    makeFolders(path);
    for (const one of [path, join(root, 'a')]) expect(statSync(one).mode & 0o777).toBe(0o700);
  });

  it('are synced to disk, the upper one first, and fail when the disk refuses that', async () => {
    const synced: string[] = [];
    const sync = (real: (fd: unknown) => unknown, fd: unknown) => {
      synced.push(fs.readlinkSync(`/proc/self/fd/${fd}`));
      return real(fd);
    };
    await withCall(fs, 'fsyncSync', sync, () => makeFolders(join(root, 'upper', 'lower')));
    expect(synced).toEqual([root, join(root, 'upper')].map((path) => fs.realpathSync(path)));
    const refused = () => {
      throw systemError('EIO');
    };
    const made = withCall(fs, 'fsyncSync', refused, async () => makeFolders(join(root, 'refused')));
    await expect(made).rejects.toThrow('EIO');
  });

  it('are created below an unreadable folder, and on a file system that cannot sync folders', async () => {
    for (const [call, code] of [
      ['openSync', 'EACCES'],
      ['fsyncSync', 'EINVAL'],
    ] as const) {
      const refused = () => {
        throw systemError(code);
      };
      await withCall(fs, call, refused, () => makeFolders(join(root, code)));
      expect(statSync(join(root, code)).isDirectory()).toBe(true);
    }
  });

  it('fail with the error of the system when a file is in the way', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolders(join(root, 'file'))).toThrow('EEXIST');
    for (const below of ['below', 'far/below']) expect(() => makeFolders(join(root, 'file', below))).toThrow('ENOTDIR');
  });

  it('may be created by another process at the same time', async () => {
    const quicker = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      real(...all);
      return real(...all);
    };
    const path = join(root, 'contested', 'folder');
    await withCall(fs, 'mkdirSync', quicker, () => makeFolders(path));
    expect(statSync(path).isDirectory()).toBe(true);
  });

  it('fail for a circular symbolic link, and not for ENOTDIR below a file', async () => {
    symlinkSync('circle', join(root, 'circle'));
    expect(() => makeFolders(join(root, 'circle'))).toThrow('ELOOP');
    const asNode20 = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      const found = real(...all);
      if (found === undefined) throw systemError('ENOTDIR');
      return found;
    };
    const path = join(root, 'new', 'folder');
    await expect(withCall(fs, 'statSync', asNode20, () => makeFolders(path))).resolves.toBeUndefined();
    expect(statSync(path).isDirectory()).toBe(true);
  });

  it.runIf(process.platform === 'linux')('fail at once when nothing can be created', () => {
    expect(() => makeFolders('/proc/dfinery/below')).toThrow(/ENOENT|EPERM|EACCES/);
  });
});
