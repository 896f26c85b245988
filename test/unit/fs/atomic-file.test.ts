import fs, {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createFile,
  moveFile,
  nameTemporary,
  removeTemporaries,
  replaceFile,
  replaceSmallFile,
  syncFolder,
  temporaryPathOf,
  writeNamedFile,
} from '../../../src/fs/atomic-file.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atomic-'));
  path = join(dir, 'state.json');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const text = (file = path) => readFileSync(file, 'utf8');
const mode = () => statSync(path).mode & 0o777;

describe('replacing a file', () => {
  it('creates it with the given mode for its owner, and leaves no temporary file', async () => {
    for (const [wanted, replace] of [
      [0o600, () => replaceFile(path, 'new')],
      [0o600, () => replaceSmallFile(path, 'new')],
      [0o644, () => replaceSmallFile(path, 'new', 0o644)],
    ] as const) {
      writeFileSync(path, 'old', { mode: 0o666 });
      await replace();
      expect([text(), mode(), readdirSync(dir)]).toEqual(['new', wanted, ['state.json']]);
    }
  });

  it('of a link replaces the file that it leads to, with its mode, and writes a device as it is', () => {
    const link = join(dir, 'link');
    writeFileSync(path, 'old');
    // Other tests of this process may hold its umask.
    chmodSync(path, 0o640);
    symlinkSync(path, link);
    writeNamedFile(link, 'new', 'the page');
    expect([lstatSync(link).isSymbolicLink(), text(), mode()]).toEqual([true, 'new', 0o640]);
    const device = join(dir, 'device');
    symlinkSync('/dev/null', device);
    writeNamedFile(device, 'new', 'the page');
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
    expect(() => writeNamedFile(dir, 'new', 'the page')).toThrow(/The page .*EISDIR/);
  });

  it('of a name that a user gave keeps the old text where the disk has no room for the new one', async () => {
    writeFileSync(path, 'old');
    const full = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      real(all[0], 'n', all[2]);
      throw systemError('ENOSPC');
    };
    const work = async () => writeNamedFile(path, 'new', 'the page');
    await expect(withCall(fs, 'writeFileSync', full, work)).rejects.toMatchObject({ exitCode: 3 });
    expect([text(), readdirSync(dir)]).toEqual(['old', ['state.json']]);
  });

  it('of a name that a user gave does not need the right to read the old one', async () => {
    writeFileSync(path, 'old');
    const refused = (open: (...all: unknown[]) => unknown, file: unknown, ...more: unknown[]) => {
      if (file === path) throw systemError('EACCES');
      return open(file, ...more);
    };
    await withCall(fs, 'openSync', refused, () => writeNamedFile(path, 'new', 'the page'));
    expect([text(), readdirSync(dir)]).toEqual(['new', ['state.json']]);
  });

  it('keeps the previous file, and no temporary one, if it fails', async () => {
    mkdirSync(path);
    await expect(replaceFile(path, 'new')).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(() => replaceSmallFile(path, 'new')).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readdirSync(dir)).toEqual(['state.json']);
    await expect(replaceFile(join(dir, 'none', 'x'), 'new')).rejects.toThrow(/ENOENT/);
  });
});

describe('creating a file', () => {
  it('succeeds once: the second caller gets false and changes nothing', async () => {
    expect(await createFile(path, 'first')).toBe(true);
    expect(await createFile(path, 'second')).toBe(false);
    expect([text(), mode(), readdirSync(dir)]).toEqual(['first', 0o600, ['state.json']]);
  });

  it('names a temporary file unless the name is taken, and removes it in either case', async () => {
    const temporary = temporaryPathOf(path);
    for (const [content, isFirst] of [
      ['first', true],
      ['second', false],
    ] as const) {
      writeFileSync(temporary, content);
      expect(await nameTemporary(temporary, path)).toBe(isFirst);
      expect(existsSync(temporary)).toBe(false);
    }
    expect(text()).toBe('first');
    await expect(nameTemporary(temporary, join(dir, 'other'), { mayRename: true })).rejects.toThrow(/ENOENT/);
  });

  it('replaces the previous file by moving a finished one', async () => {
    writeFileSync(path, 'old');
    writeFileSync(join(dir, 'finished'), 'new');
    await moveFile(join(dir, 'finished'), path);
    expect([text(), readdirSync(dir)]).toEqual(['new', ['state.json']]);
    await expect(moveFile(join(dir, 'finished'), path)).rejects.toThrow(/ENOENT/);
    expect(text()).toBe('new');
  });
});

describe('temporary files', () => {
  it('are hidden, beside their file, and have unique names', () => {
    const [one, other] = [temporaryPathOf(path), temporaryPathOf(path)];
    expect(one).not.toBe(other);
    expect(one.startsWith(`${dir}/.state.json.`)).toBe(true);
    expect(basename(one)).toMatch(/^\.state\.json\.[0-9a-f]{12}\.tmp$/);
  });

  it('of a killed writer are removed when they are old, and no other file is', async () => {
    const now = Date.now();
    const temporaries = { old: temporaryPathOf(path), young: temporaryPathOf(path) };
    const others = ['.state.json.0123456789ab.tmp2', '.state.json.short.tmp', '.state.jsonx', 'state.json'];
    others.push(basename(temporaryPathOf(join(dir, 'other.json'))));
    for (const file of [...Object.values(temporaries), ...others.map((name) => join(dir, name))]) {
      writeFileSync(file, '');
      if (file !== temporaries.young) utimesSync(file, now / 1_000 - 100, now / 1_000 - 100);
    }
    await removeTemporaries(path, now, 100_001);
    expect(existsSync(temporaries.old)).toBe(true);
    await removeTemporaries(path, now, 50_000);
    expect([existsSync(temporaries.old), existsSync(temporaries.young)]).toEqual([false, true]);
    utimesSync(temporaries.young, now / 1_000 + 100, now / 1_000 + 100);
    await removeTemporaries(path, now, 50_000);
    expect(existsSync(temporaries.young)).toBe(true);
    await removeTemporaries(path, now, 0);
    expect(readdirSync(dir).sort()).toEqual([...others].sort());
    await expect(removeTemporaries(join(dir, 'none', 'x'), now, 0)).resolves.toBeUndefined();
  });
});

it('in a removed folder need no sync; a folder that may not be read is an error', async () => {
  await expect(syncFolder(join(dir, 'none'))).resolves.toBeUndefined();
  await expect(syncFolder(join(dir, `${'x'.repeat(300)}`))).rejects.toThrow(/ENAMETOOLONG/);
});
