import fs, { chownSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { makeFolders } from '../../../src/fs/folders.ts';
import { holdPrivateUmask } from '../../../src/fs/permissions.ts';
import { expectMode, HAS_MODES } from '../../support/modes.ts';
import { newFolder } from '../../support/new-folder.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = newFolder();
  path = join(dir, 'a', 'b');
});

describe('folders', () => {
  it('are made with their parents for this user alone, once', async () => {
    await makeFolders(path);
    await makeFolders(path);
    for (const folder of [path, join(dir, 'a')]) expectMode(folder, 0o700);
  });

  it('are not made below a file, for an address, or behind a link to nothing', async () => {
    writeFileSync(join(dir, 'file'), '');
    await expect(makeFolders(join(dir, 'file', 'below'))).rejects.toThrow(/EEXIST|ENOTDIR/);
    await expect(makeFolders('s3://bucket/prefix')).rejects.toThrow(/is an address/);
    symlinkSync(join(dir, 'disk'), join(dir, 'link'));
    await expect(makeFolders(join(dir, 'link', 'below'))).rejects.toThrow(/is a link to a folder that is/);
  });

  it('are not taken for made where the disk does not keep their names', async () => {
    const fail = () => {
      throw systemError('EIO');
    };
    await expect(withCall(fs.promises, 'open', fail, () => makeFolders(path))).rejects.toThrow('EIO');
  });

  it.runIf(process.getuid?.() === 0)('are made also where a file system keeps no owners', async () => {
    chownSync(dir, 1234, 1235);
    const refuse = () => {
      throw systemError('EPERM');
    };
    await withCall(fs, 'lchownSync', refuse, () => makeFolders(path));
    expectMode(path, 0o700);
  });
});

it.runIf(HAS_MODES)('the umask is private while anybody holds it', () => {
  const before = process.umask(0o022);
  try {
    const [first, second] = [holdPrivateUmask(), holdPrivateUmask()];
    first();
    expect(process.umask()).toBe(0o077);
    second();
    expect(process.umask()).toBe(0o022);
  } finally {
    process.umask(before);
  }
});
