import fs, { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { checkSuppression, loadSuppression, suppress, suppressionHmac } from '../../../src/erasure/suppression/list.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';
import { persons } from '../../support/suppressed.ts';
import { openBelow, withCall } from '../../support/system-calls.ts';

const KEY = new Secret('k'.repeat(32));
/** How much of a file is read at a time. */
const CHUNK = 65_536;
let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
  path = join(folder, 'list');
});
afterEach(() => rmSync(folder, { recursive: true }));

const add = (id: string) => suppress(path, persons(id), KEY, { clock: systemClock });
const entry = (id: string) => JSON.stringify({ hmac: suppressionHmac(KEY, Buffer.from(id)) });

describe('a long list whose last line is incomplete', () => {
  it('keeps every complete line before it, in any chunks', async () => {
    // The line that was cut begins in the first chunk, and the second has no line end at all.
    const lines = `${entry('a')}\n`.repeat(Math.floor(CHUNK / (entry('a').length + 1)));
    const begun = entry('half').slice(0, -5);
    expect(lines.length).toBeLessThan(CHUNK);
    expect(lines.length + begun.length).toBeGreaterThan(CHUNK);
    writeFileSync(path, lines + begun);
    expect(await add('b')).toBe(1);
    expect(readFileSync(path, 'utf8')).toBe(`${lines}${entry('b')}\n`);
  });
});

describe('a file that is not a suppression list', () => {
  it.each([
    ['a part of a header above other lines', `{"v":1,"kind":"supp\n${entry('a')}\n`],
    ['an empty line above those of another file', '\nexternal_id\n'],
  ])('with %s is left unchanged', async (_name, text) => {
    writeFileSync(path, text);
    await expect(add('b')).rejects.toMatchObject({ kind: 'config' });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it.runIf(existsSync('/dev/null'))('is a device, which stores nothing', () => {
    expect(() => checkSuppression('/dev/null', KEY)).toThrow('is no suppression file');
  });
});

it('a list whose lock another run has taken over meanwhile is left unchanged', async () => {
  await add('a');
  const before = readFileSync(path, 'utf8');
  const adding = add('b');
  writeFileSync(`${path}.lock`, ownerText());
  await expect(adding).rejects.toMatchObject({ exitCode: 3 });
  expect(readFileSync(path, 'utf8')).toBe(before);
});

describe('a list that cannot be read', () => {
  it('is named, as is one under another key', async () => {
    const reported = { kind: 'config', where: { file: path } };
    expect(() => loadSuppression(path, KEY)).toThrow(
      expect.objectContaining({ ...reported, cause: expect.any(Error) }),
    );
    await add('a');
    expect(() => loadSuppression(path, new Secret('o'.repeat(32)))).toThrow(expect.objectContaining(reported));
  });
});

describe.runIf(process.platform === 'linux')('after people were added to a list', () => {
  it('its lines are on disk, and the name of a new list', async () => {
    const synced: string[] = [];
    const probe = await open(folder);
    const handle = Object.getPrototypeOf(probe) as object;
    await probe.close();
    function sync(this: FileHandle, real: () => unknown) {
      synced.push(basename(fs.readlinkSync(`/proc/self/fd/${this.fd}`)));
      return real();
    }
    await withCall(handle, 'sync', sync, () => add('a'));
    expect(synced).toEqual(['list', basename(folder)]);
  });

  it('no file descriptor is left open', async () => {
    await add('a');
    await add('a');
    checkSuppression(path, KEY);
    expect(openBelow(folder)).toEqual([]);
  });
});
