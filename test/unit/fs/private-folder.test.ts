import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { folderOwner, isPrivateFolder, isTrustedOwner, makePrivateFolder } from '../../../src/fs/private-folder.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'private-'));
  path = join(dir, 'spool');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));
const { getuid } = process;
afterEach(() => void Object.assign(process, { getuid }));

const make = () => makePrivateFolder(path, 'The spool folder');

describe('a private folder', () => {
  it('is created with mode 0700, and may exist already', () => {
    expect(folderOwner(path)).toBe('nobody');
    make();
    expect(statSync(path).mode & 0o777).toBe(0o700);
    make();
    expect([folderOwner(path), isPrivateFolder(path)]).toEqual(['us', true]);
  });

  it.each([0o701, 0o710, 0o704, 0o777])('is refused with mode %o, which others may use', (mode) => {
    mkdirSync(path);
    chmodSync(path, mode);
    expect([folderOwner(path), isPrivateFolder(path)]).toEqual(['others', false]);
    const sentence = `The spool folder ${path} is a link, belongs to another user or is open to others: remove it or set spool_dir to another folder.`;
    expect(make).toThrow(sentence);
    expect(make).toThrow(expect.objectContaining({ kind: 'config', where: { file: path } }));
  });

  it('is refused when it is a symbolic link or a file', () => {
    mkdirSync(join(dir, 'target'), { mode: 0o700 });
    symlinkSync('target', path);
    expect(folderOwner(path)).toBe('others');
    rmSync(path);
    writeFileSync(path, '', { mode: 0o600 });
    expect(folderOwner(path)).toBe('others');
    expect(folderOwner(join(path, 'below'))).toBe('others');
  });

  it.runIf(process.getuid?.() === 0)('is refused when it belongs to another user', () => {
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, 12_345, 12_345);
    expect(folderOwner(path)).toBe('others');
  });
});

describe('a folder of a user', () => {
  it.each([
    [1000, [true, true, false]],
    [0, [true, true, true]],
    [undefined, [true, true, true]],
  ])('is trusted by user %o: own, root’s, another’s', (own, trusted) => {
    Object.assign(process, { getuid: own === undefined ? undefined : () => own });
    expect([own ?? 1000, 0, 1001].map(isTrustedOwner)).toEqual(trusted);
  });

  it('is that of this user on a system without users', () => {
    mkdirSync(path);
    chmodSync(path, 0o777);
    Object.assign(process, { getuid: undefined });
    expect(folderOwner(path)).toBe('us');
  });
});
