import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkConditionalWrites, openStorage } from '../../../src/storage/open.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';

let dir: string;
let s3: FakeS3;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-storage-'));
  s3 = await FakeS3.start();
  // The SDK's own chain reads the environment of the process.
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await s3.close();
  rmSync(dir, { recursive: true });
});

const STORES = {
  'a folder': () => openStorage(join(dir, 'place'), { env: {} }),
  'a bucket': () => openStorage('s3://bucket/lake', { env: s3.env }),
};

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('%s', (name) => {
  let storage: Storage;
  beforeEach(async () => {
    storage = await STORES[name]();
  });
  afterEach(() => storage.close());

  const local = (text: string) => {
    const path = join(dir, 'local');
    writeFileSync(path, text);
    return path;
  };
  const text = async (path: string) => (await storage.read(path))?.toString();
  async function paths(folder: string, after?: string): Promise<string[]> {
    const found: string[] = [];
    for await (const { path } of storage.list(folder, after)) found.push(path);
    return found;
  }

  it('creates an object once, and replaces one by write and by putFile', async () => {
    expect(await storage.create('a/x', 'one')).toBe(true);
    expect(await storage.create('a/x', 'two')).toBe(false);
    expect(await text('a/x')).toBe('one');
    await storage.write('a/x', 'three');
    expect(await text('a/x')).toBe('three');
    await storage.putFile(local('four'), 'a/x');
    expect(await text('a/x')).toBe('four');
    expect(await storage.read('a/none')).toBeUndefined();
    await checkConditionalWrites(storage);
    expect(await paths('_dfinery')).toEqual([]);
  });

  it('lets one of two writers create an object', async () => {
    const done = await Promise.all(['one', 'two', 'three'].map((text) => storage.create('a/x', text)));
    expect(done.filter((isFirst) => isFirst)).toHaveLength(1);
  });

  it('lists below a folder in the order of bytes, from a path on', async () => {
    for (const path of ['a/c/1', 'a/b', 'a-b/1', 'b/1']) await storage.write(path, path);
    expect(await paths('a')).toEqual(['a/b', 'a/c/1']);
    expect(await paths('a', 'a/b')).toEqual(['a/c/1']);
    expect(await paths('none')).toEqual([]);
    for await (const { modified } of storage.list('b')) {
      expect(Math.abs(modified - Date.now())).toBeLessThan(60_000);
    }
  });

  it('gives a local file with an object, and says that one which is gone is gone', async () => {
    await storage.write('a/x', 'bytes');
    const path = await storage.localFile('a/x', join(dir, 'copies/copy'));
    expect(readFileSync(path, 'utf8')).toBe('bytes');
    await storage.remove(['a/x', 'a/none']);
    expect(await text('a/x')).toBeUndefined();
    if (name === 'a bucket') {
      await expect(storage.localFile('a/x', join(dir, 'copies/other'))).rejects.toMatchObject({ exitCode: 3 });
    }
  });

  it('erases everything below a folder but what is kept', async () => {
    for (const path of ['a/keep', 'a/b/gone', 'b/stays']) await storage.write(path, path);
    await storage.checkErasable(['a/b/gone']);
    await storage.eraseAllBut('a', ({ path }) => path === 'a/keep');
    expect([await paths('a'), await paths('b')]).toEqual([['a/keep'], ['b/stays']]);
  });
});

describe('an address', () => {
  it.each([
    ['gs://bucket/x', /is an address/],
    ['s3:/bucket/x', /is an address/],
    ['md:events', /is an address/],
    [':memory:', /is an address/],
    ['s3://', /names no bucket/],
    ['s3://bucket/a//b', /empty or dotted part/],
    ['s3://bucket/../b', /empty or dotted part/],
  ])('%s is refused', async (address, message) => {
    await expect(openStorage(address, { env: s3.env })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(message),
    });
    expect(existsSync('gs:')).toBe(false);
  });
});
