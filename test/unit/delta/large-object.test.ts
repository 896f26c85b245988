import { randomBytes, randomInt } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { envOf } from '../../support/env.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { purgeDelta } from '../../support/targets/files.ts';

const ROWS = 40_000;
/** 9999-12-31, ms. */
const LAST_MS = 253_402_214_400_000;

/** `yyyy-MM-dd HH:mm:ss.SSS`. */
function anyTime(): string {
  const ms = randomBytes(6).readUIntBE(0, 6) % LAST_MS;
  return new Date(ms).toISOString().slice(0, -1).replace('T', ' ');
}

describe('a large file of a bucket', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('is read for the dates of its rows too, however far from the ids they are', async () => {
    const fixture = new DeltaFixture();
    const s3 = await FakeS3.start();
    for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
    const place = { ...fixture.lakeOptions, place: 's3://bucket/lake', env: envOf(s3.env) };
    const on = (day: string, server: string) => ({
      df_server_datetime: server,
      df_correction_datetime: `${day} 10:00:00.000`,
    });
    try {
      // So many times, none near another, are a column of more bytes than are read along with their neighbours.
      const others = Array.from({ length: ROWS }, (_, i) => ({
        id: `x${i}`,
        df_text: randomBytes(45).toString('hex'),
        df_server_datetime: '2026-01-02 10:00:00.000',
        df_correction_datetime: `${anyTime()}${randomInt(100, 999)}`,
      }));
      const rows = ['same', 'moved'].map((id) => ({ id, n: '1', ...on('2026-01-02', '') }));
      const again = [
        { id: 'same', n: '2', ...on('2026-01-02', '') },
        { id: 'moved', n: '2', ...on('2026-01-03', '') },
      ];
      await fixture.store([fixture.window('2026-01-01', csvOf([...rows, ...others]), undefined, 2)], place);
      const [stored] = [...s3.objects.values()].map(({ bytes }) => bytes).sort((a, b) => b.length - a.length);
      expect(stored.length).toBeGreaterThan(2 * 1024 * 1024);
      await fixture.store([fixture.window('2026-01-02', csvOf(again), undefined, 2)], place);
      s3.dump('lake/', fixture.root);
      expect(await fixture.read('SELECT _key, n FROM events WHERE n IS NOT NULL ORDER BY 1')).toEqual([
        { _key: 'moved', n: '1' },
        { _key: 'moved#2', n: '2' },
        { _key: 'same', n: '2' },
      ]);
    } finally {
      fixture.close();
      await s3.close();
    }
  });

  it('is read for the events of people after it was read for the people', async () => {
    const fixture = new DeltaFixture();
    const s3 = await FakeS3.start();
    for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
    const place = { ...fixture.lakeOptions, place: 's3://bucket/lake', env: envOf(s3.env) };
    const at = (df_server_datetime: string) => ({ df_server_datetime, df_correction_datetime: df_server_datetime });
    try {
      const others = Array.from({ length: ROWS }, (_, i) => ({
        id: `x${i}:1`,
        df_text: randomBytes(60).toString('hex'),
        ...at('2026-01-02 10:00:00.000'),
      }));
      const person = { id: 'x7:0', df_unified_id: 'erna-4711', ...at('2026-01-01 10:00:00.000') };
      const windows = [fixture.window('2026-01-02', csvOf(others)), fixture.window('2026-01-01', csvOf([person]))];
      await fixture.store(windows, { ...place, tables: ['event_logs'] });
      const sizes = [...s3.objects.values()].map(({ bytes }) => bytes.length);
      expect(Math.max(...sizes)).toBeGreaterThan(2 * 1024 * 1024);
      const logs = async () => {
        s3.dump('lake/', fixture.root);
        return fixture.read(
          'SELECT event_date::VARCHAR AS d, count(*)::INT AS n FROM event_logs GROUP BY 1 ORDER BY 1',
        );
      };
      expect(await logs()).toEqual([
        { d: '2026-01-01', n: 1 },
        { d: '2026-01-02', n: ROWS - 1 },
      ]);
      await purgeDelta(place, { column: 'df_unified_id', ids: ['erna-4711'] });
      expect(await logs()).toEqual([{ d: '2026-01-02', n: ROWS }]);
    } finally {
      fixture.close();
      await s3.close();
    }
  });
});
