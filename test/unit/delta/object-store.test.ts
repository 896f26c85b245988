import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HOUR_MS } from '../../../src/base/durations.ts';
import { openStorage } from '../../../src/storage/open.ts';
import { envOf } from '../../support/env.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FakeS3, type S3Request } from '../../support/targets/fake-s3.ts';
import { compactDelta, purgeDelta, reportDelta, tryPurgeDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
let s3: FakeS3;
beforeEach(async () => {
  fixture = new DeltaFixture();
  s3 = await FakeS3.start();
  // The SDK's own chain reads the environment of the process.
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  fixture.close();
  await s3.close();
});

const URL = 's3://bucket/lake';
const TABLES = ['events', 'event_items'] as const;
const day = '2026-01-01';
const older = () =>
  fixture.window(
    day,
    csvOf([
      { id: 'a', n: '1', df_items_x: '1', ...on(day) },
      { id: 'b', n: '2', df_unified_id: 'u-2', ...on(day) },
    ]),
  );
const newer = () => fixture.window(day, csvOf([{ id: 'a', n: 'text', df_items_x: 'y', ...on(day) }]));
const ONE = [
  { _key: 'a', n: '1' },
  { _key: 'b', n: '2' },
];
const TWO = [
  { _key: 'a', n: 'text' },
  { _key: 'b', n: '2' },
];

const place = () => ({ ...fixture.lakeOptions, place: URL, env: envOf(s3.env) });
const store = (windows = [older()], more = {}) => fixture.store(windows, { ...place(), tables: TABLES, ...more });
const verify = () => verifyDelta(place());
const open = (signal?: AbortSignal) => openStorage(URL, { env: envOf(s3.env), signal });

/** What a reader of the protocol finds in the bucket at this moment. */
function shown() {
  s3.dump('lake/', fixture.root);
  return fixture.read('SELECT _key, n::VARCHAR AS n FROM events ORDER BY 1');
}

const isChange = ({ what }: S3Request) => !/^(Head|Get|List)/.test(what);

describe('a bucket that fails', () => {
  it.each([
    ['500', { status: 500, code: 'InternalError' }],
    ['503, slow down', { status: 503, code: 'SlowDown' }],
    ['a cut connection', 'cut'],
  ] as const)(
    'for a while is retried: %s',
    async (_, outcome) => {
      await store();
      s3.reset();
      // The first try of every fifth request, whatever they are.
      s3.outcomeOf = ({ attempt }) => (attempt === 1 && s3.requests.length % 5 === 0 ? outcome : 'normal');
      await store([newer()]);
      expect(s3.requests.some(({ attempt }) => attempt > 1)).toBe(true);
      s3.outcomeOf = () => 'normal';
      expect(await shown()).toEqual(TWO);
      expect(await verify()).toEqual([]);
    },
    60_000,
  );

  it('causes no lost race and no refusal when each request is executed and its answer lost', async () => {
    s3.outcomeOf = (request) => (request.attempt === 1 && isChange(request) ? 'answer lost' : 'normal');
    await store();
    s3.reset();
    s3.outcomeOf = (request) => (request.attempt === 1 && isChange(request) ? 'answer lost' : 'normal');
    await store([newer()]);
    expect(s3.requests.filter(({ what, attempt }) => what === 'PutObject' && attempt > 1).length).toBeGreaterThan(4);
    s3.outcomeOf = () => 'normal';
    expect(await shown()).toEqual(TWO);
    expect(await fixture.read('SELECT count(*)::INT AS n FROM event_items')).toEqual([{ n: 1 }]);
    expect(await verify()).toEqual([]);
  }, 60_000);

  it('for good ends the run with exit 3, one message, and nothing half-visible', async () => {
    await store();
    s3.outcomeOf = ({ what, key }) =>
      what === 'PutObject' && key.endsWith('.parquet') ? { status: 500, code: 'InternalError' } : 'normal';
    await expect(store([newer()])).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(
        /^s3:\/\/bucket\/lake does not answer as it should \(500 InternalError\): try again later\.$/,
      ),
    });
    expect(await shown()).toEqual(ONE);
  }, 60_000);
});

describe('two writers into one bucket', () => {
  it('race: one wins, the other changes nothing, removes what it had stored, and exits with 3', async () => {
    await store();
    const sinks = [
      await fixture.openLake({ ...place(), tables: TABLES }),
      await fixture.openLake({ ...place(), tables: TABLES }),
    ];
    const done = await Promise.allSettled(sinks.map((sink) => sink.commit([newer()], fixture.signal)));
    for (const sink of sinks) await sink.close();
    const lost = done.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
    expect(lost).toEqual([
      expect.objectContaining({ exitCode: 3, message: expect.stringContaining('another writer') }),
    ]);
    expect(await shown()).toEqual(TWO);
    await store([newer()]);
    expect(await verify()).toEqual([]);
  });

  it('keep each other’s files that wait for their commit, also where the clock of one is a day ahead', async () => {
    await store();
    const path = `events/event_date=${day}/part-00000000-0000-4000-8000-000000000000.parquet`;
    const storage = await open();
    await storage.write(path, 'of the other writer');
    const { clock } = fixture.lakeOptions;
    const ahead = () => Date.now() + 25 * HOUR_MS;
    const reopen = async () =>
      (await fixture.openLake({ ...place(), tables: TABLES, clock: { ...clock, now: ahead } })).close();
    await reopen();
    expect(await storage.read(path)).toEqual(Buffer.from('of the other writer'));
    // Once it is old by the clock of the store, too, its run is dead.
    s3.now = () => new Date(ahead());
    await reopen();
    expect(await storage.read(path)).toBeUndefined();
    storage.close();
    expect(await verify()).toEqual([]);
  });
});

describe('a large upload', () => {
  const BYTES = 34 * 1024 * 1024;
  const file = () => {
    mkdirSync(fixture.dir, { recursive: true });
    const path = join(fixture.dir, 'large');
    const bytes = randomBytes(BYTES);
    writeFileSync(path, bytes);
    return { path, bytes };
  };

  it.each([
    ['a part that is cut', 'UploadPart', 'cut'],
    ['a part whose answer is lost', 'UploadPart', 'answer lost'],
    ['an end whose answer is lost', 'CompleteMultipartUpload', 'answer lost'],
  ] as const)(
    'completes in spite of %s',
    async (_, what, outcome) => {
      const { path, bytes } = file();
      s3.outcomeOf = (request) => (request.what === what && request.attempt === 1 ? outcome : 'normal');
      const storage = await open();
      await storage.putFile(path, 'events/x.parquet');
      storage.close();
      expect(s3.objects.get('lake/events/x.parquet')?.bytes.equals(bytes)).toBe(true);
      expect(s3.uploads.size).toBe(0);
    },
    60_000,
  );

  it('is aborted if a part never succeeds', async () => {
    const { path } = file();
    s3.outcomeOf = ({ what }) => (what === 'UploadPart' ? { status: 500, code: 'InternalError' } : 'normal');
    const storage = await open();
    await expect(storage.putFile(path, 'events/x.parquet')).rejects.toMatchObject({ exitCode: 3 });
    storage.close();
    expect(s3.objects.size).toBe(0);
    expect(s3.uploads.size).toBe(0);
  }, 60_000);
});

describe('a run on a bucket that is killed', () => {
  it('between any two requests leaves the old table or the new one to readers, and the next run repairs it', async () => {
    const events = { tables: ['events' as const] };
    await store([older()], events);
    const good = new Map(s3.objects);
    s3.reset();
    await store([newer()], events);
    const changes = s3.requests.filter(isChange).length;
    expect(changes).toBeGreaterThan(4);
    const seen = new Set<string>();
    for (let at = 1; at <= changes; at++) {
      s3.objects.clear();
      for (const [key, held] of good) s3.objects.set(key, held);
      s3.reset();
      const killed = new AbortController();
      // Carried out, unanswered, and nothing gets through any more.
      s3.outcomeOf = (request) => {
        if (killed.signal.aborted) return 'cut';
        if (!isChange(request) || s3.requests.filter(isChange).length < at) return 'normal';
        killed.abort();
        return 'answer lost';
      };
      await expect(store([newer()], { ...events, signal: killed.signal })).rejects.toThrow();
      const rows = await shown();
      expect([ONE, TWO], `request ${at}`).toContainEqual(rows);
      seen.add(JSON.stringify(rows));
      s3.reset();
      await store([newer()], { ...events, retentionMs: 0 });
      expect(await shown()).toEqual(TWO);
      expect(await verify(), `request ${at}`).toEqual([]);
    }
    expect(seen.size).toBe(2);
  }, 120_000);
});

describe('a bucket that is not usable', () => {
  const refused = (more: object = {}) =>
    store([older()], more).then(
      () => undefined,
      (error: Error) => error,
    );

  const withoutRight = (): void => {
    s3.outcomeOf = ({ what }) => (what === 'PutObject' ? { status: 403, code: 'AccessDenied' } : 'normal');
  };
  const withoutConditions = (): void => {
    s3.isConditional = false;
  };
  const withEnv = (name: string, value: string | undefined) => (): void => void vi.stubEnv(name, value);

  it.each([
    ['wrong credentials', /credentials were refused/, withEnv('AWS_ACCESS_KEY_ID', 'somebody')],
    ['no region', /AWS_REGION/, withEnv('AWS_REGION', undefined)],
    ['an empty region', /AWS_REGION/, withEnv('AWS_REGION', '')],
    ['no conditional writes', /If-None-Match/, withoutConditions],
    ['a right that is missing', /credentials were refused/, withoutRight],
  ] as const)('is reported in one message: %s', async (_, message, prepare) => {
    prepare();
    const error = await refused();
    expect(error).toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
    expect(error?.message).not.toContain('\n');
  });

  it('because it does not exist or no host answers exits with 2 or 3', async () => {
    expect(await refused({ place: 's3://nothing/lake' })).toMatchObject({
      exitCode: 2,
      message: 's3://nothing/lake: there is no such bucket.',
    });
    await s3.close();
    expect(await refused()).toMatchObject({ exitCode: 3, message: expect.stringContaining('ECONNREFUSED') });
    s3 = await FakeS3.start();
  }, 60_000);
});

describe('the spool folder of a bucket', () => {
  it('is the only disk space that verify, report, compact and a purge use', async () => {
    await store();
    await store([newer()]);
    const empty = join(fixture.dir, 'system');
    mkdirSync(empty);
    vi.stubEnv('TMPDIR', join(empty, 'none'));
    const spoolDir = join(fixture.dir, 'own');
    expect(await verifyDelta({ ...place(), spoolDir })).toEqual([]);
    expect(await reportDelta({ ...place(), spoolDir })).toMatchObject({ rows: 2, lastEventAt: `${day} 10:00:00` });
    await compactDelta({ ...place(), spoolDir });
    await purgeDelta({ ...place(), spoolDir }, { column: 'n', ids: ['text'] });
    expect(readdirSync(spoolDir)).toEqual([]);
    expect(readdirSync(empty)).toEqual([]);
    const file = join(fixture.dir, 'a-file');
    writeFileSync(file, '');
    await expect(verifyDelta({ ...place(), spoolDir: file })).rejects.toMatchObject({
      message: expect.stringContaining(file),
    });
    expect(await verifyDelta({ ...place(), spoolDir })).toEqual([]);
  });
});

describe('a purge of a bucket', () => {
  const removal = { column: 'n', ids: ['2'] };
  const withoutRight = (what: string): void => {
    s3.outcomeOf = (request) => (request.what === what ? { status: 403, code: 'AccessDenied' } : 'normal');
  };

  it.each([
    ['ListObjectVersions', 's3:ListBucketVersions'],
    ['ListMultipartUploads', 's3:ListBucketMultipartUploads'],
  ])('is refused beforehand without the permission to %s, and nothing is changed', async (what, right) => {
    await store();
    const before = new Map(s3.objects);
    withoutRight(what);
    const message = expect.stringContaining(right);
    await expect(tryPurgeDelta(place(), removal)).rejects.toMatchObject({ exitCode: 2, message });
    expect(s3.objects).toEqual(before);
    await expect(purgeDelta(place(), removal)).rejects.toMatchObject({ exitCode: 2, message });
    expect(s3.objects).toEqual(before);
    s3.reset();
    expect(await tryPurgeDelta(place(), removal)).toMatchObject({ found: { rows: 1 }, foreignTables: [] });
    await purgeDelta(place(), removal);
    expect(await shown()).toEqual([{ _key: 'a', n: '1' }]);
  });
});
