import fs, {
  chmodSync,
  lchownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createFile, removeTemporaries, replaceFile, temporaryPathOf } from '../../../src/fs/atomic-file.ts';
import { writeNamedFile } from '../../../src/fs/named-file.ts';
import { expectMode, HAS_MODES } from '../../support/modes.ts';
import { newFolder } from '../../support/new-folder.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = newFolder();
  path = join(dir, 'state.json');
});

const OLD_PAGE = '<!doctype html>old';
const text = () => readFileSync(path, 'utf8');

describe('replacing a file', () => {
  it('gives it the new text for its owner alone, and leaves no temporary file', async () => {
    writeFileSync(path, 'old', { mode: 0o666 });
    await replaceFile(path, { text: 'new' });
    expect([text(), readdirSync(dir)]).toEqual(['new', ['state.json']]);
    expectMode(path, 0o600);
    writeFileSync(join(dir, 'finished'), 'newer');
    await replaceFile(path, { finishedPath: join(dir, 'finished') });
    expect([text(), readdirSync(dir)]).toEqual(['newer', ['state.json']]);
  });
});

describe('a small file that a user has named', () => {
  it('of a link replaces the file that it leads to, with its mode', async () => {
    writeFileSync(path, OLD_PAGE);
    chmodSync(path, 0o640);
    const link = join(dir, 'link');
    symlinkSync(path, link);
    await writeNamedFile(link, 'new', 'the page', 'page');
    expect([lstatSync(link).isSymbolicLink(), text()]).toEqual([true, 'new']);
    expectMode(path, 0o640);
  });

  it.runIf(process.getuid?.() === 0)('is not the file to which another user planted a link', async () => {
    writeFileSync(path, OLD_PAGE);
    const link = join(dir, 'page.html');
    symlinkSync(path, link);
    lchownSync(link, 4_711, 4_711);
    await expect(writeNamedFile(link, 'new', 'the page', 'page')).rejects.toThrow(
      /page\.html is a link that another user made/,
    );
    expect(text()).toBe(OLD_PAGE);
  });

  it.runIf(HAS_MODES)('may be a device', async () => {
    await writeNamedFile('/dev/null', 'new', 'the page', 'page');
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  it('keeps the old text where the disk has no room for the new one', async () => {
    writeFileSync(path, OLD_PAGE);
    const full = () => {
      throw systemError('ENOSPC');
    };
    const work = () => writeNamedFile(path, 'new', 'the page', 'page');
    await expect(withCall(fs.promises, 'writeFile', full, work)).rejects.toMatchObject({ exitCode: 3 });
    expect([text(), readdirSync(dir)]).toEqual([OLD_PAGE, ['state.json']]);
  });
});

describe('creating a file', () => {
  it('succeeds once: the second caller gets false and changes nothing', async () => {
    expect(await createFile(path, { text: 'first' })).toBe(true);
    expect(await createFile(path, { text: 'second' })).toBe(false);
    expect([text(), readdirSync(dir)]).toEqual(['first', ['state.json']]);
    expectMode(path, 0o600);
  });

  it('works without hard links too, where that is allowed', async () => {
    const noLinks = () => {
      throw systemError('EPERM', 'link');
    };
    const create = (content: string, mayRename: boolean) =>
      withCall(fs.promises, 'link', noLinks, () => createFile(path, { text: content }, { mayRename }));
    await expect(create('none', false)).rejects.toThrow('EPERM');
    const broken = () => Promise.reject(systemError('EIO'));
    const createOnBrokenDisk = () => createFile(path, { text: 'none' }, { mayRename: true });
    await expect(withCall(fs.promises, 'link', broken, createOnBrokenDisk)).rejects.toThrow('EIO');
    expect([await create('first', true), await create('second', true)]).toEqual([true, false]);
    expect([text(), readdirSync(dir)]).toEqual(['first', ['state.json']]);
  });
});

it('temporary files of killed writers are removed once they are old, and no other file is', async () => {
  const now = Date.now();
  const [old, young] = [temporaryPathOf(path), temporaryPathOf(path)];
  const others = ['.state.json.0123456789ab.tmp2', '.state.json.x0123456789ab.tmp', 'state.json'];
  others.push(basename(temporaryPathOf(join(dir, 'other.json'))), basename(temporaryPathOf(`${path}.old`)));
  for (const file of [old, young, ...others.map((name) => join(dir, name))]) {
    writeFileSync(file, '');
    if (file !== young) utimesSync(file, now / 1_000 - 100, now / 1_000 - 100);
  }
  await removeTemporaries(path, now - 50_000);
  expect(readdirSync(dir).sort()).toEqual([basename(young), ...others].sort());
  await removeTemporaries(path);
  expect(readdirSync(dir).sort()).toEqual(others.sort());
  await removeTemporaries(join(dir, 'none', 'x'));
  const mayNotList = () => Promise.reject(systemError('EACCES'));
  await expect(withCall(fs.promises, 'readdir', mayNotList, () => removeTemporaries(path))).rejects.toThrow('EACCES');
});
