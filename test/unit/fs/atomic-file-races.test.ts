import fs, { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createFile,
  moveFile,
  nameTemporary,
  removeTemporaries,
  replaceFile,
  syncFile,
  temporaryPathOf,
} from '../../../src/fs/atomic-file.ts';
import { openBelow, systemError, withCall } from '../../support/system-calls.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atomic-'));
  path = join(dir, 'state.json');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const text = () => readFileSync(path, 'utf8');
const nameOf = (of: string) => (of === dir ? 'folder' : of === path ? 'file' : 'temporary');

describe.runIf(process.platform === 'linux')('the order of disk operations', () => {
  /** What was synced, renamed and linked, in order. */
  async function orderOf(work: () => Promise<unknown>): Promise<string[]> {
    const order: string[] = [];
    const probe = await open(dir, 'r');
    const handle = Object.getPrototypeOf(probe) as object;
    await probe.close();
    function sync(this: FileHandle, real: () => unknown) {
      order.push(`sync ${nameOf(fs.readlinkSync(`/proc/self/fd/${this.fd}`))}`);
      return real();
    }
    const named = (how: string) => (real: (...all: unknown[]) => unknown, from: unknown, to: unknown) => {
      order.push(`${how} ${nameOf(String(to))}`);
      return real(from, to);
    };
    await withCall(handle, 'sync', sync, () =>
      withCall(fs.promises, 'rename', named('rename'), () => withCall(fs.promises, 'link', named('link'), work)),
    );
    return order;
  }

  it('a file is synced before it is renamed, and its name before the call returns', async () => {
    expect(await orderOf(() => createFile(path, 'made'))).toEqual(['sync temporary', 'link file', 'sync folder']);
    expect(await orderOf(() => replaceFile(path, 'new'))).toEqual(['sync temporary', 'rename file', 'sync folder']);
    const finished = join(dir, 'finished');
    writeFileSync(finished, 'moved');
    expect(await orderOf(() => moveFile(finished, path))).toEqual(['sync temporary', 'rename file', 'sync folder']);
    expect(await orderOf(() => syncFile(path))).toEqual(['sync file']);
    expect(openBelow(dir)).toEqual([]);
  });
});

describe('a temporary file', () => {
  it('of another file with the same beginning of its name is left alone', async () => {
    const others = [basename(temporaryPathOf(`${path}.old`)), '.state.json.x0123456789ab.tmp'];
    for (const name of others) writeFileSync(join(dir, name), '');
    await removeTemporaries(path, Date.now(), 0);
    expect(readdirSync(dir).sort()).toEqual(others.sort());
  });

  it('is old once more than the age has passed, and is removed at any age when all are', async () => {
    const temporary = temporaryPathOf(path);
    writeFileSync(temporary, '');
    utimesSync(temporary, 1_000, 1_000);
    await removeTemporaries(path, 1_060_000, 60_000);
    expect(readdirSync(dir)).toHaveLength(1);
    await removeTemporaries(path, 1_060_001, 60_000);
    expect(readdirSync(dir)).toEqual([]);
    // A clock that was set back: it was written in the future.
    writeFileSync(temporary, '');
    await removeTemporaries(path, 0, 0);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is removed at any age when it is a hard link to the file, as after a kill', async () => {
    const [named, young] = [temporaryPathOf(path), temporaryPathOf(path)];
    writeFileSync(named, 'whole');
    fs.linkSync(named, path);
    writeFileSync(young, '');
    await removeTemporaries(path, Date.now(), 60_000);
    expect(readdirSync(dir).sort()).toEqual([basename(young), basename(path)].sort());
    expect(text()).toBe('whole');
  });

  it.each(['EPERM', 'EACCES'])('of another user stays, unless all must go (%s)', async (code) => {
    const [own, other] = [temporaryPathOf(path), temporaryPathOf(path)];
    for (const file of [own, other]) {
      writeFileSync(file, '');
      utimesSync(file, 1_000, 1_000);
    }
    const unlink = async (real: (of: unknown) => unknown, of: unknown) => {
      if (of === other) throw systemError(code);
      return real(of);
    };
    await withCall(fs.promises, 'unlink', unlink, () => removeTemporaries(path, Date.now(), 60_000));
    expect(readdirSync(dir)).toEqual([basename(other)]);
    const all = withCall(fs.promises, 'unlink', unlink, () => removeTemporaries(path, 0, 0));
    await expect(all).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(other) });
  });

  it.each(['before', 'after'])('that its writer renames %s one reads its age is not an error', async (when) => {
    const temporary = temporaryPathOf(path);
    writeFileSync(temporary, '');
    utimesSync(temporary, 1_000, 1_000);
    const lstat = async (real: (of: unknown) => unknown, of: unknown) => {
      if (when === 'before') rmSync(temporary);
      const found = await real(of);
      rmSync(temporary, { force: true });
      return found;
    };
    await withCall(fs.promises, 'lstat', lstat, () => removeTemporaries(path, Date.now(), 60_000));
    expect(readdirSync(dir)).toEqual([]);
  });

  it('that cannot be written fails with the error of the write', async () => {
    await expect(createFile(join(dir, 'none', 'x'), 'new')).rejects.toMatchObject({ code: 'ENOENT', syscall: 'open' });
  });

  it('that somebody removes after the file was created is not an error', async () => {
    const link = async (real: (...all: unknown[]) => unknown, temporary: unknown, to: unknown) => {
      await real(temporary, to);
      rmSync(String(temporary));
    };
    expect(await withCall(fs.promises, 'link', link, () => createFile(path, 'made'))).toBe(true);
    expect(text()).toBe('made');
  });
});

describe('renaming a temporary file', () => {
  const noLinks = () => {
    throw systemError('EPERM');
  };

  it('does not replace a dangling symbolic link', async () => {
    symlinkSync('nowhere', path);
    const temporary = temporaryPathOf(path);
    writeFileSync(temporary, 'mine');
    expect(await nameTemporary(temporary, path)).toBe(false);
    expect(readdirSync(dir)).toEqual(['state.json']);
    expect(fs.readlinkSync(path)).toBe('nowhere');
  });

  it('creates a file once on a file system without hard links too where that is allowed, and leaves no temporary file', async () => {
    const name = (content: string) =>
      withCall(fs.promises, 'link', noLinks, () => createFile(path, content, { mayRename: true }));
    expect([await name('first'), await name('second')]).toEqual([true, false]);
    expect([text(), readdirSync(dir)]).toEqual(['first', ['state.json']]);
  });

  it('fails with the error of the system when the file cannot be created', async () => {
    await expect(withCall(fs.promises, 'link', noLinks, () => createFile(path, 'made'))).rejects.toThrow('EPERM');
    expect(readdirSync(dir)).toEqual([]);
  });
});
