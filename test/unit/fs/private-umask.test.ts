import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { holdPrivateUmask } from '../../../src/fs/private-umask.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let before = 0;
beforeEach(() => {
  before = process.umask(0o022);
});
afterEach(() => void process.umask(before));

describe('the modes of files of the library', () => {
  it('are 0600 under any umask, also of the write-ahead log; the umask of the caller is restored', async () => {
    const fixture = new DuckDbFixture();
    try {
      const sink = await fixture.open();
      await sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))], fixture.signal);
      const made = readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'));
      expect(made).toContain('events.duckdb.wal');
      for (const name of made) expect([name, statSync(join(fixture.dir, name)).mode & 0o077]).toEqual([name, 0]);
      await sink.close();
      expect(process.umask()).toBe(0o022);
    } finally {
      fixture.close();
    }
  });

  it('are released by the last user, once each', () => {
    const [first, second] = [holdPrivateUmask(), holdPrivateUmask()];
    first();
    first();
    expect(process.umask()).toBe(0o077);
    second();
    expect(process.umask()).toBe(0o022);
  });
});
