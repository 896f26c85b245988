import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { envOf } from '../../support/env.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { purgeDelta, tryPurgeDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
let s3: FakeS3;
beforeEach(async () => {
  fixture = new DeltaFixture();
  s3 = await FakeS3.start();
  s3.versions = [];
  // The SDK's own chain reads the environment of the process.
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  fixture.close();
  await s3.close();
});

const TABLES = ['events', 'event_items'] as const;
const day = '2026-01-01';
const erna = { id: 'p', df_unified_id: 'erna-4711', df_items_x: '1', ...on(day) };
const removal = { column: 'df_unified_id', ids: ['erna-4711'] };
const place = () => ({ ...fixture.lakeOptions, place: 's3://bucket/lake', env: envOf(s3.env) });
const store = () => {
  const windows = [fixture.window(day, csvOf([erna, { id: 'b', ...on(day) }])), fixture.window(day, csvOf([erna]))];
  return fixture.store(windows, { ...place(), tables: TABLES });
};

describe('a purge of a versioned bucket', () => {
  it('leaves no byte of a person in any version of any object, on any page of the list', async () => {
    s3.pageSize = 2;
    // A store may tell times in seconds: all of this happens in one.
    const now = s3.now();
    s3.now = () => now;
    await store();
    const holding = () => s3.versions?.filter(({ bytes }) => bytes?.includes('erna')).map(({ key }) => key);
    expect(new Set(holding()?.map((key) => key.split('/')[1]))).toEqual(new Set(TABLES));
    expect(await tryPurgeDelta(place(), removal)).toMatchObject({ found: { rows: 1 }, foreignTables: [] });
    expect(await purgeDelta(place(), removal)).toMatchObject({ rows: 1, rowsRemoved: 1 });
    expect(holding()).toEqual([]);
    expect(await verifyDelta(place())).toEqual([]);
  });

  it('is not done while the store refuses, within a successful answer, to remove a version', async () => {
    await store();
    s3.isLocked = (key) => key.startsWith('lake/event_items/');
    const message = expect.stringMatching(/may still be in the bucket.*s3:DeleteObjectVersion/);
    for (const _ of ['at first', 'again']) {
      await expect(purgeDelta(place(), removal)).rejects.toMatchObject({ exitCode: 3, message });
    }
  });
});
