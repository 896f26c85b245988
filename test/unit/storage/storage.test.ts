import { randomBytes } from 'node:crypto';
import fs, { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openStorage } from '../../../src/storage/open.ts';
import { s3ClientOf } from '../../../src/storage/s3-client.ts';
import { checkConditionalWrites, listAll, type Storage, type StoredObject } from '../../../src/storage/storage.ts';
import { startProxy } from '../../support/service/proxy.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { FakeS3, type S3Outcome, type S3Request } from '../../support/targets/fake-s3.ts';

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

const { signal } = new AbortController();
const failure = (exitCode: number, said: string) => ({ exitCode, message: expect.stringContaining(said) });
const pathsIn = async (storage: Storage, folder: string, after?: string): Promise<string[]> =>
  (await listAll(storage, folder, after)).map(({ path }) => path);

const local = (text: string) => {
  const path = join(dir, 'local');
  writeFileSync(path, text);
  return path;
};

const STORES = {
  'a folder': () => openStorage(join(dir, 'place'), { env: {}, signal }),
  'a bucket': () => openStorage('s3://bucket/lake', { env: s3.env, signal }),
};

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('%s', (name) => {
  let storage: Storage;
  beforeEach(async () => {
    storage = await STORES[name]();
  });
  afterEach(() => storage.close());

  const text = async (path: string) => (await storage.read(path))?.toString();
  const paths = (folder: string, after?: string) => pathsIn(storage, folder, after);

  it('creates an object once, and replaces one by write and by moveIn', async () => {
    expect(await storage.create('a/x', 'one')).toBe(true);
    expect(await storage.create('a/x', 'two')).toBe(false);
    expect(await text('a/x')).toBe('one');
    await storage.write('a/x', 'three');
    expect(await text('a/x')).toBe('three');
    // Only the owner of a file may set its time.
    const refuse = () => Promise.reject(systemError('EPERM', 'utimes'));
    await withCall(fs.promises, 'utimes', refuse, () => storage.moveIn(local('four'), 'a/x'));
    expect(await text('a/x')).toBe('four');
    expect(await storage.read('a/none')).toBeUndefined();
    await checkConditionalWrites(storage);
    expect(await paths('_dfinery')).toEqual([]);
  });

  it('lists below a folder in the order of bytes, from a path on', async () => {
    for (const path of ['a/c/1', 'a/b', 'a-b/1', 'b/1']) await storage.write(path, path);
    expect(await paths('a')).toEqual(['a/b', 'a/c/1']);
    expect(await paths('a', 'a/b')).toEqual(['a/c/1']);
    expect(await paths('none')).toEqual([]);
    const written = local('written long before it came');
    utimesSync(written, 0, 0);
    await storage.moveIn(written, 'b/2');
    for (const { modified } of await listAll(storage, 'b'))
      expect(Math.abs(modified - Date.now())).toBeLessThan(60_000);
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

  it('erases objects below a folder, and keeps the others', async () => {
    for (const path of ['a/keep', 'a/b/gone', 'b/stays']) await storage.write(path, path);
    await storage.checkErasable(['a/b/gone']);
    await storage.erase('a', ({ path }) => path !== 'a/keep');
    expect([await paths('a'), await paths('b')]).toEqual([['a/keep'], ['b/stays']]);
  });
});

it('a path that cannot be read is told from one that cannot be written or linked', async () => {
  const storage = await STORES['a folder']();
  await storage.write('a/x', '');
  await expect(storage.read('a')).rejects.toMatchObject(failure(2, 'cannot be used (EISDIR)'));
  await expect(storage.write('a', '')).rejects.toMatchObject(failure(2, 'cannot be written'));
  const refuse = (syscall: string) => () => {
    throw systemError('EPERM', syscall);
  };
  const whileRefused = (system: object, syscall: string, work: () => Promise<unknown>) =>
    expect(withCall(system, syscall, refuse(syscall), work)).rejects;
  const create = () => storage.create('a/y', '');
  await whileRefused(fs, 'lstatSync', () => pathsIn(storage, 'a')).toMatchObject(failure(2, 'cannot be used'));
  await whileRefused(fs.promises, 'writeFile', create).toMatchObject(failure(2, 'cannot be written'));
  await whileRefused(fs.promises, 'link', create).toMatchObject(failure(2, 'without hard links'));
});

it('a list of a folder has all files but those of a folder below it that vanishes meanwhile', async () => {
  const storage = await STORES['a folder']();
  for (const path of ['a/gone/1', 'a/stays/1']) await storage.write(path, '');
  const list = () => pathsIn(storage, 'a');
  const vanish = (real: (...all: unknown[]) => unknown, folder: unknown, ...more: unknown[]) => {
    if (String(folder).endsWith('gone')) rmSync(String(folder), { recursive: true });
    return real(folder, ...more);
  };
  expect(await withCall(fs.promises, 'readdir', vanish, list)).toEqual(['a/stays/1']);
});

it.each([
  ['gs://bucket/x', /is an address/],
  ['s3:/bucket/x', /is an address/],
  ['md:events', /is an address/],
  [':memory:', /is an address/],
  ['s3://', /names no bucket/],
  ['s3://bucket/a//b', /empty or dotted part/],
  ['s3://bucket/../b', /empty or dotted part/],
])('the address %s is refused', async (address, message) => {
  await expect(openStorage(address, { env: s3.env, signal })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(message),
  });
  expect(existsSync('gs:')).toBe(false);
});

async function using<T>(
  work: (storage: Storage) => Promise<T>,
  stop = signal,
  { address = 's3://bucket/lake', env = s3.env as Readonly<Record<string, string>> } = {},
): Promise<T> {
  const storage = await openStorage(address, { env, signal: stop });
  try {
    return await work(storage);
  } finally {
    storage.close();
  }
}
/** Lets every request for one operation come to this. */
const fail = (operation: string, outcome: S3Outcome) => {
  s3.outcomeOf = ({ what }) => (what === operation ? outcome : 'normal');
};

describe('the time of a request to a bucket', () => {
  const get = async (outcome: 'slow' | 'stalled') => {
    s3.objects.set('x', { bytes: Buffer.alloc(12, 'x'), modified: new Date() });
    fail('GetObject', outcome);
    const client = await s3ClientOf(s3.env, 400);
    onTestFinished(() => client.destroy());
    const { Body } = await client.getObject({ Bucket: 'bucket', Key: 'x' });
    return Body?.transformToString();
  };

  it('does not end a request whose bytes still come, however slowly', async () => {
    expect(await get('slow')).toBe('x'.repeat(12));
  });

  it('ends a request whose body stalls', async () => {
    await expect(get('stalled')).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

describe('a store of another vendor', () => {
  it('gets no checksums that it does not ask for', async () => {
    await using(async (storage) => {
      await storage.write('x', 'text');
      await storage.remove(['x', 'y']);
    });
    expect(s3.objects.size).toBe(0);
    expect(s3.headers.flat().filter((name) => name.startsWith('x-amz-checksum'))).toEqual([]);
  });

  it('that is a web page is refused, whatever is asked', async () => {
    for (const page of ['PutObject', 'ListObjectsV2']) {
      fail(page, 'page');
      const use = using(async (storage) => {
        await storage.write('x', 'text');
        await pathsIn(storage, 'events');
      });
      await expect(use).rejects.toMatchObject(failure(2, 'HTML page'));
    }
  });

  it('that ignores or refuses conditional writes is refused, with its own reason', async () => {
    s3.isConditional = false;
    const check = () => using((storage) => checkConditionalWrites(storage));
    await expect(check()).rejects.toMatchObject(failure(2, 'If-None-Match'));
    fail('PutObject', { status: 412, code: 'PreconditionFailed' });
    await expect(check()).rejects.toMatchObject(failure(2, 'If-None-Match'));
    fail('PutObject', { status: 501, code: 'NotImplemented' });
    await expect(check()).rejects.toMatchObject(failure(2, '501 NotImplemented: as the test wants it'));
    // A key that may only read.
    s3.outcomeOf = ({ what }) => (/^(Put|Delete)/.test(what) ? { status: 403, code: 'AccessDenied' } : 'normal');
    await expect(check()).rejects.toMatchObject(failure(2, 'refused a request (403 AccessDenied'));
  });
});

describe('failures of a bucket', () => {
  it.each([
    [3, 500, 'InternalError', '', '', '500 InternalError): try again later.'],
    [3, 409, 'ConditionalRequestConflict', '', '', '409 ConditionalRequestConflict): try again later.'],
    [3, 400, 'RequestTimeout', '', '', '400 RequestTimeout): try again later.'],
    [2, 400, 'InvalidArgument', 'It is wrong.', '', '400 InvalidArgument: It is wrong.'],
    [2, 403, 'AccessDenied', 'No permission for kms:X', '', '403 AccessDenied: No permission for kms:X'],
    [
      2,
      400,
      'ExpiredToken',
      'The provided token has expired.',
      '',
      '400 ExpiredToken: The provided token has expired.',
    ],
    [2, 403, 'RequestTimeTooSkewed', 'Too late.', '', 'Too late.): set the clock of this machine right.'],
    [2, 400, 'AuthorizationHeaderMalformed', 'x', '<Region>eu-west-1</Region>', ': set AWS_REGION=eu-west-1.'],
  ])(
    'end with %i and say so: %i %s',
    async (exitCode, status, code, message, more, said) => {
      fail('PutObject', { status, code, message, more });
      await expect(using((storage) => storage.write('x', ''))).rejects.toMatchObject(failure(exitCode, said));
    },
    60_000,
  );

  it('are those of the user for an unknown key and an unknown bucket', async () => {
    const listing = using((storage) => pathsIn(storage, 'events'), signal, { address: 's3://nothing/x' });
    await expect(listing).rejects.toMatchObject({ exitCode: 2 });
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'somebody');
    await expect(using((storage) => storage.write('x', ''))).rejects.toMatchObject({ exitCode: 2 });
  });

  it('a key that may use its prefix alone suffices', async () => {
    const isAllowed = ({ key, prefix }: S3Request) => (key === '' ? (prefix ?? '') : key).startsWith('lake/');
    s3.outcomeOf = (request) => (isAllowed(request) ? 'normal' : { status: 403, code: 'AccessDenied' });
    await using(async (storage) => {
      await checkConditionalWrites(storage);
      await storage.write('events/x', 'text');
      expect(String(await storage.read('events/x'))).toBe('text');
      expect(await pathsIn(storage, 'events')).toEqual(['events/x']);
    });
  });

  it('are told from those of a local file', async () => {
    const path = join(dir, 'none');
    const put = using((storage) => storage.moveIn(path, 'events/x'));
    await expect(put).rejects.toMatchObject(failure(2, `${path} cannot be written (ENOENT)`));
    const failRead: Parameters<typeof withCall>[2] = (_read, ...all) => {
      (all.at(-1) as (error: Error) => void)(systemError('EIO', 'read'));
    };
    const send = () => using((storage) => storage.moveIn(local('a'), 'events/x'));
    await expect(withCall(fs, 'read', failRead, send)).rejects.toMatchObject(
      failure(3, 'A file in spool_dir failed (EIO)'),
    );
  });

  it('do not come after an upload: a file that one request cannot send is refused before', async () => {
    const path = local('');
    truncateSync(path, 5 * 2 ** 30 + 1);
    const put = using((storage) => storage.moveIn(path, 'events/x'));
    await expect(put).rejects.toMatchObject(failure(2, 'at most 5 GiB: drop columns'));
    expect(s3.requests.filter(({ what }) => what === 'PutObject')).toEqual([]);
  });

  it('that pass are retried, and a lost answer is not a lost object', async () => {
    s3.outcomeOf = ({ attempt }) => (attempt === 1 ? 'cut' : 'normal');
    await using((storage) => storage.write('x', 'one'));
    expect(readFileSync(await using((storage) => storage.localFile('x', join(dir, 'copy'))), 'utf8')).toBe('one');
    s3.outcomeOf = ({ what, attempt }) => (what === 'PutObject' && attempt === 1 ? 'answer lost' : 'normal');
    await using((storage) => storage.write('y', 'two'));
    expect(await using((storage) => storage.create('z', 'three'))).toBe(true);
    expect([...s3.objects.keys()].sort()).toEqual(['lake/x', 'lake/y', 'lake/z']);
  });

  it.each([
    ['cut', 1],
    ['answer lost', 1],
    [{ status: 503, code: 'SlowDown' }, 3],
  ] as const)('that pass leave a file of 34 MB whole, which is sent again: %s, %i times', async (outcome, failures) => {
    const warn = vi.spyOn(console, 'warn');
    const [path, bytes] = [join(dir, 'large'), randomBytes(34 * 1024 * 1024)];
    writeFileSync(path, bytes);
    s3.outcomeOf = ({ attempt }) => (attempt <= failures ? outcome : 'normal');
    await using((storage) => storage.moveIn(path, 'x'));
    expect([s3.objects.get('lake/x')?.bytes.equals(bytes), existsSync(path)]).toEqual([true, false]);
    expect(warn).not.toHaveBeenCalled();
  });

  it('a request is not made again after a stop', async () => {
    const stop = new AbortController();
    s3.outcomeOf = ({ what }) => {
      if (what !== 'PutObject' || stop.signal.aborted) return 'normal';
      stop.abort(new Error('stopped'));
      return 'answer lost';
    };
    await using(async (storage) => {
      await expect(storage.write('x', '')).rejects.toThrow('stopped');
      await storage.write('how-it-ended', '');
    }, stop.signal);
    expect(s3.requests.filter(({ what }) => what === 'PutObject').map(({ key }) => key)).toEqual([
      'lake/x',
      'lake/how-it-ended',
    ]);
  });

  it('plain http to another machine is refused, also if the SDK finds the endpoint by itself', async () => {
    writeFileSync(join(dir, 'config'), '[default]\nendpoint_url = http://store.example\nregion = us-east-1\n');
    vi.stubEnv('AWS_CONFIG_FILE', join(dir, 'config'));
    vi.stubEnv('AWS_ENDPOINT_URL_S3', undefined);
    const listing = using((storage) => pathsIn(storage, 'events'), signal, { env: {} });
    await expect(listing).rejects.toMatchObject(failure(2, 'https'));
    for (const name of ['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3']) {
      const opening = openStorage('s3://bucket', { env: { [name]: 'http://store.example:9000' }, signal });
      await expect(opening).rejects.toMatchObject(failure(2, `${name} is not https`));
    }
  });
});

describe('a bucket behind a proxy', () => {
  const endpoint = { AWS_ENDPOINT_URL_S3: 'https://loopback' };
  const openThrough = (proxy: string, more: Readonly<Record<string, string>> = {}) => {
    const env = { ...s3.env, ...endpoint, HTTPS_PROXY: proxy, ...more };
    return using((storage) => pathsIn(storage, 'events'), signal, { env });
  };

  it('reaches a bucket whose certificate is trusted', async () => {
    const { key, cert } = selfSigned();
    const sockets: Duplex[] = [];
    const store = createTlsServer({ key, cert }, (socket) => {
      const inner = connect(Number(new URL(s3.url).port), '127.0.0.1');
      sockets.push(socket, inner);
      socket.pipe(inner).pipe(socket);
    });
    await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
    const proxy = await startProxy(200, (store.address() as AddressInfo).port);
    try {
      writeFileSync(join(dir, 'ca.pem'), cert);
      const trusted = { AWS_CA_BUNDLE: join(dir, 'ca.pem') };
      await openThrough(proxy.url, trusted);
      expect(proxy.requests.map((head) => head.split('\r\n')[0])).toEqual(['CONNECT loopback:443 HTTP/1.1']);
      await expect(openThrough(proxy.url)).rejects.toMatchObject(
        failure(2, 'cannot be trusted (DEPTH_ZERO_SELF_SIGNED_CERT)'),
      );
    } finally {
      for (const socket of sockets) socket.destroy();
      store.close();
    }
  });

  it('that fails names the proxy, not the bucket', async () => {
    const proxy = await startProxy(407, 1);
    await expect(openThrough(proxy.url)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^The proxy 127\.0\.0\.1:\d+ of HTTPS_PROXY refused to connect \(HTTP 407\)/),
    });
    await expect(openThrough('http://127.0.0.1:1')).rejects.toMatchObject(
      failure(3, 'because the proxy 127.0.0.1:1 of HTTPS_PROXY refused the connection'),
    );
  }, 60_000);
});

describe('what a purge erases in a bucket', () => {
  it('is also every older version', async () => {
    s3.versions = [];
    s3.pageSize = 2;
    await using(async (storage) => {
      for (const text of ['one', 'two', 'three']) await storage.write('events/keep', text);
      for (const text of ['one', 'two']) await storage.write('events/gone', text);
      const shouldErase = ({ path, modified }: StoredObject) => path !== 'events/keep' && modified !== 2_000;
      // Whatever is younger stays, but for the marks of what goes.
      await storage.write('events/old', 'x');
      s3.now = () => new Date(2_000);
      await storage.erase('events', shouldErase);
    });
    expect(s3.versions?.map(({ key, bytes }) => `${key} ${bytes}`)).toEqual(['lake/events/keep three']);
  });

  it('shows no removed object again, whenever it is stopped', async () => {
    s3.versions = [];
    s3.pageSize = 2;
    const seenAfter: boolean[] = [];
    await using(async (storage) => {
      for (const text of ['one', 'two', 'three']) await storage.write('events/gone', text);
      await storage.remove(['events/gone']);
      s3.onExecuted = () => seenAfter.push(s3.objects.has('lake/events/gone'));
      await storage.erase('events', () => true);
    });
    expect(s3.versions).toEqual([]);
    expect(seenAfter).not.toContain(true);
  });

  it('is nothing beside the folder, also in a store whose lists ignore the prefix', async () => {
    s3.versions = [];
    await using(async (storage) => {
      await storage.write('events/gone', '');
      await storage.write('other/stays', '');
      s3.knowsPrefixes = false;
      expect(await pathsIn(storage, 'events')).toEqual(['events/gone']);
      await storage.erase('events', () => true);
    });
    expect(s3.versions?.map(({ key }) => key)).toEqual(['lake/other/stays']);
  });

  it('is refused in a store that gives half a list of versions', async () => {
    s3.versions = [];
    [s3.pageSize, s3.hasMarkers] = [1, false];
    await expect(using((storage) => storage.checkErasable([]))).rejects.toMatchObject(failure(2, 'half a list'));
  });

  it('can be all of it in a store that does not know versions', async () => {
    fail('ListObjectVersions', { status: 501, code: 'NotImplemented' });
    await using((storage) => storage.checkErasable([]));
  });

  it('is at rest once it has failed for one object', async () => {
    await using(async (storage) => {
      for (const path of ['x/refused', 'x/late']) await storage.write(path, '');
      s3.outcomeOf = ({ what, key, attempt }) => {
        if (what !== 'DeleteObject') return 'normal';
        return key === 'lake/x/refused' ? { status: 403, code: 'AccessDenied' } : attempt === 1 ? 'cut' : 'normal';
      };
      await expect(storage.remove(['x/refused', 'x/late'])).rejects.toMatchObject(failure(2, 's3:DeleteObject'));
    });
    expect([...s3.objects.keys()]).toEqual(['lake/x/refused']);
  });

  it.each([
    ['ListObjectVersions', 's3:ListBucketVersions'],
    ['DeleteObject', 's3:DeleteObject'],
  ])('needs the permission for %s, which is tried before', async (what, permission) => {
    fail(what, { status: 403, code: 'AccessDenied' });
    await expect(using((storage) => storage.checkErasable([]))).rejects.toMatchObject(failure(2, permission));
  });
});
