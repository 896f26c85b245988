import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import { checkSuppression, loadSuppression, suppress, suppressionHmac } from '../../../src/erasure/suppression/list.ts';
import { persons } from '../../support/suppressed.ts';

const KEY = new Secret('k'.repeat(32));
const io = { clock: systemClock };
let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
  path = join(folder, 'list');
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const hmacOf = (id: string, key = KEY) => suppressionHmac(key, Buffer.from(id));
const entry = (id: string) => JSON.stringify({ hmac: hmacOf(id) });
const write = (...lines: string[]) => writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
const linesOf = () => readFileSync(path, 'utf8').split('\n').slice(0, -1);
const has = (id: string, hashKey?: HashKey) =>
  loadSuppression(path, KEY, hashKey).isSuppressed(Buffer.from(id), 0, Buffer.byteLength(id));

describe('a suppression list', () => {
  it('may have blank lines and line ends of either kind', () => {
    writeFileSync(path, `\n${entry('a')}\r\n  \n${entry('b')}`);
    expect(['a', 'b', 'c'].map((id) => has(id))).toEqual([true, true, false]);
  });

  it.each([
    ['a text', '"a"'],
    ['a number', '5'],
    ['null', 'null'],
    ['no JSON', '{"hmac":'],
    ['an object without a hash', '{}'],
    ['a header of another kind', '{"v":1,"kind":"proof"}'],
    ['a hash that is no text', '{"hmac":5}'],
    ['a hash in capitals', `{"hmac":"${'A'.repeat(64)}"}`],
    ['a hash that is too short', `{"hmac":"${'a'.repeat(63)}"}`],
    ['a hash that is too long', `{"hmac":"${'a'.repeat(65)}"}`],
  ])('is refused as a whole for a line with %s, by its number', (_name, line) => {
    write(entry('a'), line);
    expect(() => loadSuppression(path, KEY)).toThrow(
      expect.objectContaining({
        kind: 'config',
        message: expect.stringContaining('Line 2'),
        where: { file: path, row: 2 },
      }),
    );
  });

  it('does not match under another key', () => {
    write(entry('a'));
    const other = new Secret('o'.repeat(32));
    expect(loadSuppression(path, other).digest).not.toBe(loadSuppression(path, KEY).digest);
    expect(loadSuppression(path, KEY).digest).toBe(loadSuppression(path, KEY).digest);
    expect(loadSuppression(path, other).isSuppressed(Buffer.from('a'), 0, 1)).toBe(false);
  });

  it('gives the same answer for repeated questions, and for a part of a buffer', () => {
    write(entry('ab'));
    const { isSuppressed } = loadSuppression(path, KEY);
    const bytes = Buffer.from('xxabab').subarray(1);
    for (let time = 0; time < 3; time++) {
      expect([isSuppressed(bytes, 1, 3), isSuppressed(bytes, 3, 5), isSuppressed(bytes, 0, 2)]).toEqual([
        true,
        true,
        false,
      ]);
    }
  });

  it('finds a person by the id and by its hash, when ids are hashed', () => {
    const key = new HashKey(new Secret('h'.repeat(32)));
    write(entry('a'), JSON.stringify({ hmac: hmacOf(key.hashOf('b')), hash_key: key.check }));
    expect(['a', 'b', 'c'].map((id) => has(id, key))).toEqual([true, true, false]);
  });

  it('requires a key of at least 32 characters', () => {
    write(entry('a'));
    expect(() => loadSuppression(path, new Secret('k'.repeat(31)))).toThrow(/suppression_key .* 32/);
    expect(has('a')).toBe(true);
  });
});

describe('appending to a suppression list', () => {
  it('records with a hashed person the check value of the key', async () => {
    expect(await suppress(path, [{ text: 'a', hashKey: 'check' }], KEY, io)).toBe(1);
    expect(JSON.parse(linesOf()[1])).toEqual({ hmac: hmacOf('a'), hash_key: 'check' });
  });

  it('creates an empty list, in a folder with mode 0700', async () => {
    path = join(folder, 'new', 'list');
    expect(await suppress(path, persons(), KEY, io)).toBe(0);
    expect(linesOf()).toHaveLength(1);
    expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700);
    expect(has('a')).toBe(false);
  });

  it('changes nothing when everybody is on it already', async () => {
    writeFileSync(path, `${entry('a')}\n{"hm`);
    expect(await suppress(path, persons('a'), KEY, io)).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(`${entry('a')}\n{"hm`);
  });

  it.each([
    ['sync', async () => {}],
    ['writeFile', async (file: FileHandle, text: unknown) => void (await file.write(String(text).slice(0, 20)))],
  ] as const)('leaves no partial line when the disk fills: %s', async (method, before) => {
    write(entry('a'));
    const handle = await open(path);
    const prototype: FileHandle = Object.getPrototypeOf(handle);
    await handle.close();
    vi.spyOn(prototype, method).mockImplementationOnce(async function (this: FileHandle, ...given: unknown[]) {
      await before(this, given[0]);
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    });
    await expect(suppress(path, persons('b'), KEY, io)).rejects.toMatchObject({ name: 'UserError' });
    expect(linesOf()).toEqual([entry('a')]);
    expect(await suppress(path, persons('b'), KEY, io)).toBe(1);
    expect(['a', 'b'].map((id) => has(id))).toEqual([true, true]);
  });

  it('fails when its folder cannot be created', async () => {
    writeFileSync(join(folder, 'file'), '');
    await expect(suppress(join(folder, 'file', 'list'), persons('a'), KEY, io)).rejects.toThrow('file');
  });
});

describe('the path of a suppression list', () => {
  it('may be new, empty, or a list of any length', () => {
    expect(() => checkSuppression(path, KEY)).not.toThrow();
    writeFileSync(path, '');
    expect(() => checkSuppression(path, KEY)).not.toThrow();
    write(entry('a'));
    expect(() => checkSuppression(path, KEY)).not.toThrow();
    write('{"v":1,"kind":"suppression"}');
    for (let n = 0; n < 100; n++) appendFileSync(path, `${entry(`u${n}`)}\n`);
    expect(() => checkSuppression(path, KEY)).not.toThrow();
    expect(() => checkSuppression(path, new Secret('short'))).toThrow('suppression_key');
  });

  it.each([
    ['a later version of a list', '{"v":2,"kind":"suppression"}\n'],
    ['a line of another file', 'external_id\n'],
    ['a long line', `${' '.repeat(2_000)}\n`],
  ])('may not be %s', (_name, text) => {
    writeFileSync(path, text);
    expect(() => checkSuppression(path, KEY)).toThrow('is no suppression file');
  });

  it('may not be a folder', () => {
    mkdirSync(path);
    expect(() => checkSuppression(path, KEY)).toThrow('is no suppression file');
  });
});

describe('a very long suppression list', () => {
  it('gains each person once, and recognises everybody', async () => {
    const people = Array.from({ length: 50_001 }, (_, n) => `u${n}`);
    expect(await suppress(path, persons(...people, 'u0', 'u50000'), KEY, io)).toBe(50_001);
    expect(linesOf()).toHaveLength(50_002);
    expect(await suppress(path, persons(...people.slice(49_000), 'new'), KEY, io)).toBe(1);
    expect(linesOf()).toHaveLength(50_003);
    expect(linesOf().at(-1)).toBe(entry('new'));
  });
});
