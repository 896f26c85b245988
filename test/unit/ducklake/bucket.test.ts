import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { envOf } from '../../support/env.ts';
import { compactLake, DuckLakeFixture, purgeLake, verifyLake } from '../../support/targets/ducklake.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';

let fixture: DuckLakeFixture;
let s3: FakeS3;
beforeEach(async () => {
  fixture = new DuckLakeFixture();
  s3 = await FakeS3.start();
  s3.versions = [];
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await s3.close();
  fixture.close();
});

describe('a catalog whose data are in a bucket', () => {
  it('names the data by address, is compacted and verified, and a purge leaves no version of an object', async () => {
    const place = { ...fixture.lakeOptions, env: envOf(s3.env) };
    const data = 's3://bucket/lake';
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', df_unified_id: 'erna' }, { id: 'b' })], {
      ...place,
      data,
    });
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'b' }, { id: 'c' })], place);
    expect(await fixture.catalog("SELECT value FROM ducklake_metadata WHERE key = 'data_path'")).toEqual([
      { value: `${data}/` },
    ]);
    await compactLake(place);
    expect(await verifyLake(place)).toEqual([]);
    const before = (s3.versions ?? []).length;
    expect(before).toBeGreaterThan(3);
    await purgeLake(place, { column: 'df_unified_id', ids: ['erna'] });
    const left = (s3.versions ?? []).filter(({ key }) => key.endsWith('.parquet'));
    const live = await fixture.catalog('SELECT path FROM ducklake_data_file');
    expect(left.map(({ key }) => key)).toEqual(live.map(({ path }) => `lake/main/events/${path}`));
    expect(await verifyLake(place)).toEqual([]);
    expect(fixture.files()).toEqual(['catalog.ducklake']);
  });
});
