import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openStorage } from '../../../src/storage/open.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { envOf } from '../../support/env.ts';
import { FakeS3, type S3Outcome, type S3Request } from '../../support/targets/fake-s3.ts';

let s3: FakeS3;
let dir: string;
const opened: Storage[] = [];
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-bucket-'));
  s3 = await FakeS3.start();
  // The SDK's own chain reads the environment of the process.
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  for (const storage of opened.splice(0)) storage.close();
  vi.unstubAllEnvs();
  await s3.close();
  rmSync(dir, { recursive: true });
});

async function open(address = 's3://bucket/lake', signal?: AbortSignal): Promise<Storage> {
  const storage = await openStorage(address, { env: envOf(s3.env), signal });
  opened.push(storage);
  s3.reset();
  return storage;
}

const put = (key: string, text: string) => s3.objects.set(key, { bytes: Buffer.from(text), modified: new Date(7_000) });
const asked = (what: string) => s3.requests.filter((request) => request.what === what).length;
/** Requests of one kind end so, the first `times` of them. */
const outcome = (kind: string, of: S3Outcome, times = Number.POSITIVE_INFINITY) => {
  s3.outcomeOf = ({ what }: S3Request) => (what === kind && asked(kind) <= times ? of : 'normal');
};
const PARALLEL = { status: 409, code: 'ConditionalRequestConflict' };

async function listed(storage: Storage, folder: string, after?: string) {
  const found = [];
  for await (const object of storage.list(folder, after)) found.push(object);
  return found;
}

describe('an object of a bucket', () => {
  it('is created once, and by no other writer afterwards', async () => {
    const storage = await open();
    expect([await storage.create('x', 'one'), await storage.create('x', 'two')]).toEqual([true, false]);
    expect((await storage.read('x'))?.toString()).toBe('one');
    expect([...s3.objects.keys()]).toEqual(['lake/x']);
    await storage.write('x', 'two');
    expect((await storage.read('x'))?.toString()).toBe('two');
    expect(await storage.read('y')).toBeUndefined();
  });

  it('is requested again, up to three times, after a conflict of two conditional requests', async () => {
    const storage = await open();
    outcome('PutObject', PARALLEL, 2);
    expect(await storage.create('x', 'one')).toBe(true);
    s3.reset();
    outcome('PutObject', PARALLEL);
    await expect(storage.create('y', 'one')).rejects.toMatchObject({ kind: 'transient' });
    expect(asked('PutObject')).toBe(3);
  });

  it('is not created in a store without conditional writes', async () => {
    const storage = await open();
    outcome('PutObject', { status: 501, code: 'NotImplemented' });
    await expect(storage.create('x', 'one')).rejects.toMatchObject({
      kind: 'config',
      message: 's3://bucket/lake does not know conditional writes (If-None-Match): use a store that does.',
    });
    outcome('PutObject', { status: 400, code: 'InvalidRequest' });
    await expect(storage.create('y', 'one')).rejects.toMatchObject({ kind: 'config' });
    expect(asked('PutObject')).toBe(2);
  });

  it('is read again, up to three times, when its body breaks off', async () => {
    const storage = await open();
    const copy = join(dir, 'copy');
    put('lake/x', 'content');
    for (const read of [
      async () => (await storage.read('x'))?.toString(),
      async () => readFileSync(await storage.localFile('x', copy), 'utf8'),
    ]) {
      s3.reset();
      outcome('GetObject', 'cut', 2);
      expect(await read()).toBe('content');
      s3.reset();
      outcome('GetObject', 'cut');
      await expect(read()).rejects.toMatchObject({ kind: 'transient' });
      expect(asked('GetObject')).toBe(3);
    }
  }, 60_000);

  it('is not read again after a stop', async () => {
    const stop = new AbortController();
    const storage = await open(undefined, stop.signal);
    s3.outcomeOf = () => {
      stop.abort(new Error('stopped'));
      return 'cut';
    };
    await expect(storage.read('x')).rejects.toThrow('stopped');
    expect(asked('GetObject')).toBe(1);
  });

  it('is downloaded for its owner alone, replacing what was there', async () => {
    const storage = await open();
    put('lake/x', 'content');
    const copy = join(dir, 'copy');
    writeFileSync(copy, 'something longer than the content');
    expect(await storage.localFile('x', copy)).toBe(copy);
    expect(readFileSync(copy, 'utf8')).toBe('content');
    expect(statSync(copy).mode & 0o777).toBe(0o600);
  });

  it('is copied whole if it is small, else in parts, but not when it is shorter than the log says', async () => {
    const storage = await open();
    put('lake/x', 'content');
    const small = 2 * 1024 * 1024;
    const part = (bytes: number) => ({ bytes, columns: new Set(['a']) });
    const copy = join(dir, 'copy');
    expect(readFileSync(await storage.localFile('x', copy, part(small)), 'utf8')).toBe('content');
    rmSync(copy);
    await expect(storage.localFile('x', copy, part(small + 1))).rejects.toMatchObject({
      kind: 'transient',
      message: 's3://bucket/lake/x is not as long as the log says: try again, then verify.',
    });
  });

  it('is named by its address if it does not exist', async () => {
    const storage = await open();
    const gone = { kind: 'transient', message: 's3://bucket/lake/x is gone: another run removed it. Try again.' };
    await expect(storage.localFile('x', join(dir, 'copy'))).rejects.toMatchObject(gone);
    const large = { bytes: 3 * 1024 * 1024, columns: new Set(['a']) };
    await expect(storage.localFile('x', join(dir, 'part'), large)).rejects.toMatchObject(gone);
    expect(asked('GetObject')).toBe(2);
  });

  it('is refused if it is too large for an entry of a log', async () => {
    const closed: Promise<void>[] = [];
    const server = createServer((request, response) => {
      response.writeHead(200, { 'content-length': 512 * 1024 * 1024 + 1 });
      if (request.method === 'HEAD') return void response.end();
      closed.push(new Promise((resolve) => response.on('close', resolve)));
      response.write('x');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const storage = await openStorage('s3://bucket', { env: envOf({ ...s3.env, AWS_ENDPOINT_URL_S3: url }) });
      await expect(storage.read('x')).rejects.toMatchObject({
        kind: 'config',
        message: 's3://bucket/x is no file of a table: 536870913 bytes.',
      });
      expect(closed).toHaveLength(1);
      // Its connection is given up, not kept until the store is tired of it.
      await Promise.all(closed);
      storage.close();
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

describe('the objects below a folder of a bucket', () => {
  it('are listed in order over all pages, without those of other folders', async () => {
    const storage = await open();
    s3.pageSize = 2;
    for (const name of ['c', 'a', 'd/e', 'b', 'd/']) put(`lake/events/${name}`, name);
    for (const key of ['lake/events2/x', 'lake2/events/x', 'events/x', 'lake/events']) put(key, 'x');
    const names = (objects: { path: string }[]) => objects.map(({ path }) => path);
    expect(names(await listed(storage, 'events'))).toEqual(['a', 'b', 'c', 'd/e'].map((name) => `events/${name}`));
    expect(names(await listed(storage, 'events', 'events/b'))).toEqual(['events/c', 'events/d/e']);
    expect((await listed(storage, 'events'))[3]).toEqual({ path: 'events/d/e', bytes: 3, modified: 7_000 });
    const root = await open('s3://bucket');
    expect(names(await listed(root, 'lake/events', 'lake/events/c'))).toEqual(['lake/events/d/e']);
    expect(await listed(root, 'nothing')).toEqual([]);
  });

  it('are removed a thousand per request, without a request for none', async () => {
    const storage = await open();
    const names = Array.from({ length: 1_001 }, (_, i) => `${i}`);
    for (const name of names) put(`lake/${name}`, 'x');
    put('lake/other', 'x');
    await storage.remove(names);
    expect([...s3.objects.keys()]).toEqual(['lake/other']);
    expect(asked('DeleteObjects')).toBe(2);
    await storage.remove([]);
    await storage.remove(['missing']);
    expect(asked('DeleteObjects')).toBe(3);
  });

  it('are reported if the store refuses their removal within a successful answer', async () => {
    const storage = await open();
    put('lake/x', 'x');
    s3.isLocked = () => true;
    await expect(storage.remove(['x'])).rejects.toMatchObject({
      kind: 'config',
      message: 's3://bucket/lake: an object could not be deleted (AccessDenied): the key needs s3:DeleteObject.',
    });
  });
});

describe('the completion of a large upload', () => {
  const BYTES = 16 * 1024 * 1024;
  const file = (bytes: number) => {
    const path = join(dir, 'large');
    writeFileSync(path, Buffer.alloc(bytes, 'x'));
    return path;
  };
  const GONE = { status: 404, code: 'NoSuchUpload' };

  it('is not requested when one request takes the file', async () => {
    const storage = await open();
    await storage.putFile(file(BYTES), 'x');
    expect(s3.requests.map(({ what }) => what)).toEqual(['PutObject']);
    expect(s3.objects.get('lake/x')?.bytes.length).toBe(BYTES);
    s3.reset();
    await storage.putFile(file(BYTES + 1), 'x');
    expect(asked('UploadPart')).toBe(2);
    expect(s3.objects.get('lake/x')?.bytes.equals(readFileSync(join(dir, 'large')))).toBe(true);
  });

  it.each([
    ['nothing is there', 'normal'],
    ['it is not known what is there', { status: 403, code: 'AccessDenied' }],
  ] as const)('of an upload that the store does not know is no success when %s', async (_, head) => {
    const storage = await open();
    s3.outcomeOf = ({ what }) => (what === 'CompleteMultipartUpload' ? GONE : what === 'HeadObject' ? head : 'normal');
    await expect(storage.putFile(file(BYTES + 1), 'x')).rejects.toMatchObject({
      message: expect.stringContaining('(404 NoSuchUpload)'),
    });
    expect([s3.objects.size, s3.uploads.size]).toEqual([0, 0]);
  });

  it('fails for an upload that the store does not know, if another object exists', async () => {
    const storage = await open();
    put('lake/x', 'shorter');
    outcome('CompleteMultipartUpload', GONE);
    await expect(storage.putFile(file(BYTES + 1), 'x')).rejects.toMatchObject({ kind: 'config' });
    outcome('CompleteMultipartUpload', { status: 400, code: 'InvalidPart' });
    s3.objects.set('lake/x', { bytes: Buffer.alloc(BYTES + 1), modified: new Date() });
    await expect(storage.putFile(file(BYTES + 1), 'x')).rejects.toMatchObject({ kind: 'config' });
  });
});

describe('the address of a Delta target', () => {
  it.each([
    ['gs://bucket/lake', /^gs:\/\/ is not a place that sync can write to/],
    ['s3://', /names no bucket/],
    ['s3://b', /names no bucket/],
    ['s3://-bucket/lake', /names no bucket/],
    ['s3:///lake', /names no bucket/],
    ['s3://bucket//lake', /empty or dotted part/],
    ['s3://bucket/a//b', /empty or dotted part/],
    ['s3://bucket/a//', /empty or dotted part/],
    ['s3://bucket/./a', /empty or dotted part/],
    ['s3://bucket/a/..', /empty or dotted part/],
  ])('is refused: %s', async (address, message) => {
    await expect(open(address)).rejects.toMatchObject({ kind: 'config', message: expect.stringMatching(message) });
  });

  it.each([
    ['s3://bucket', 'x'],
    ['s3://bucket/', 'x'],
    ['S3://bucket/a/b', 'a/b/x'],
    ['s3://bucket/a/b/', 'a/b/x'],
  ])('is a location in the bucket, with or without a final slash: %s', async (address, key) => {
    const storage = await open(address);
    await storage.write('x', '');
    expect([...s3.objects.keys()]).toEqual([key]);
    expect(storage.address).toBe(address.replace(/\/$/, ''));
    expect(storage.workFolder).toBeUndefined();
  });
});

describe('the environment of a bucket', () => {
  it('may name the endpoint for all services; the one for S3 takes precedence', async () => {
    const { AWS_ENDPOINT_URL_S3: url, ...env } = s3.env;
    vi.stubEnv('AWS_ENDPOINT_URL_S3', undefined);
    const named = String(url).replace('127.0.0.1', 'localhost');
    const of = (more: Record<string, string>) => openStorage('s3://bucket', { env: envOf({ ...env, ...more }) });
    opened.push(await of({ AWS_ENDPOINT_URL: named }));
    opened.push(await of({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1', AWS_ENDPOINT_URL_S3: url }));
    opened.push(await of({ AWS_ENDPOINT_URL: url, AWS_ENDPOINT_URL_S3: '', AWS_CA_BUNDLE: '' }));
  });

  it('may name a readable file of certificates', async () => {
    const bundle = join(dir, 'none.pem');
    await expect(
      openStorage('s3://bucket', { env: envOf({ ...s3.env, AWS_CA_BUNDLE: bundle }) }),
    ).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/^the file that AWS_CA_BUNDLE names cannot be read: .*none\.pem/),
    });
  });
});
