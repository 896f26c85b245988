import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openStorage } from '../../../src/storage/open.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { envOf } from '../../support/env.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';

let s3: FakeS3;
let dir: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-stopped-'));
  s3 = await FakeS3.start();
  // The SDK's own chain reads the environment of the process.
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await s3.close();
  rmSync(dir, { recursive: true });
});

const file = (bytes: number) => {
  const path = join(dir, 'file');
  writeFileSync(path, Buffer.alloc(bytes));
  return path;
};
const LARGE = 16 * 1024 * 1024 + 1;
const first = (objects: AsyncGenerator<unknown>) => objects.next();

describe('a request to a bucket', () => {
  it.each<[string, (storage: Storage) => Promise<unknown>]>([
    ['ListObjectsV2', (storage) => first(storage.list('events'))],
    ['GetObject', (storage) => storage.localFile('x', join(dir, 'copy'))],
    ['PutObject', (storage) => storage.create('x', '')],
    ['PutObject', (storage) => storage.write('x', '')],
    ['PutObject', (storage) => storage.putFile(file(1), 'x')],
    ['CreateMultipartUpload', (storage) => storage.putFile(file(LARGE), 'x')],
    ['CompleteMultipartUpload', (storage) => storage.putFile(file(LARGE), 'x')],
    ['DeleteObjects', (storage) => storage.remove(['x'])],
    ['ListMultipartUploads', (storage) => storage.eraseAllBut('events', () => false, 1)],
    ['ListObjectVersions', (storage) => storage.eraseAllBut('events', () => false, 1)],
  ])('is not made again after a stop: %s', async (kind, work) => {
    const stop = new AbortController();
    const storage = await openStorage('s3://bucket', { env: envOf(s3.env), signal: stop.signal });
    s3.reset();
    s3.outcomeOf = ({ what }) => {
      if (what !== kind) return 'normal';
      stop.abort(new Error('stopped'));
      return 'answer lost';
    };
    await expect(work(storage)).rejects.toThrow('stopped');
    storage.close();
    expect(s3.requests.filter(({ what }) => what === kind)).toHaveLength(1);
  });

  it('makes Node warn of no leak, however many are attempted again', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    const storage = await openStorage('s3://bucket', { env: envOf(s3.env), signal: new AbortController().signal });
    s3.outcomeOf = ({ attempt }) => (attempt === 1 ? 'cut' : 'normal');
    await Promise.all(Array.from({ length: 16 }, (_, i) => storage.write(`x${i}`, '')));
    storage.close();
    // A warning is emitted in a later turn.
    await new Promise(setImmediate);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  it('for the bucket itself is not sent after a stop', async () => {
    const stopped = AbortSignal.abort(new Error('stopped'));
    await expect(openStorage('s3://bucket', { env: envOf(s3.env), signal: stopped })).rejects.toThrow('stopped');
    expect(s3.requests).toEqual([]);
  });

  it('for a part is not retried after a stop, and the upload is aborted', async () => {
    const stop = new AbortController();
    const storage = await openStorage('s3://bucket', { env: envOf(s3.env), signal: stop.signal });
    s3.outcomeOf = ({ what }) => {
      if (what === 'UploadPart') stop.abort(new Error('stopped'));
      return what === 'UploadPart' ? 'answer lost' : 'normal';
    };
    await expect(storage.putFile(file(LARGE), 'x')).rejects.toThrow('stopped');
    storage.close();
    expect(s3.requests.filter(({ attempt }) => attempt > 1)).toEqual([]);
    expect([s3.objects.size, s3.uploads.size]).toEqual([0, 0]);
  });
});
