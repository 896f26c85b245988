import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { envOf } from '../../../src/base/env.ts';
import { DiskStorage } from '../../../src/sinks/storage/disk.ts';
import { DeltaBench } from '../../support/targets/delta.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { FaultyStorage } from '../../support/targets/faulty-storage.ts';
import { readDeltaPriorLoads, reportDelta, verifyDelta } from '../../support/targets/files.ts';

let bench: DeltaBench;
beforeEach(() => {
  bench = new DeltaBench();
});
afterEach(() => bench.close());

const first = '2026-01-01';
const second = '2026-01-02';
const third = '2026-01-03';
const verify = () => verifyDelta(bench.lakeOptions);

/** Counts what is not given back. */
class CountedStorage extends DiskStorage {
  open = 1;

  override close(): void {
    this.open--;
  }
}

describe('the place of Delta tables', () => {
  it('is given back with its temporary folder, after a refusal too', async () => {
    const theirs = join(bench.root, 'events/theirs');
    for (const how of ['refused', 'as it should']) {
      const storage = new CountedStorage(bench.root);
      if (how === 'refused') {
        mkdirSync(dirname(theirs), { recursive: true });
        writeFileSync(theirs, 'x');
        await expect(bench.openLake({ storage })).rejects.toMatchObject({ kind: 'config' });
        rmSync(theirs);
      } else await (await bench.openLake({ storage })).close();
      expect(storage.open).toBe(0);
      expect(readdirSync(join(bench.root, '_dfinery/tmp'))).toEqual([]);
    }
  });

  it('is given back where the zone is not that of the first load', async () => {
    await bench.store([bench.windowOf(first, { id: 'a' })]);
    const storage = new CountedStorage(bench.root);
    await expect(bench.openLake({ storage, timezone: 'Asia/Seoul' })).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('timezone'),
    });
    expect(storage.open).toBe(0);
    expect(readdirSync(join(bench.root, '_dfinery/tmp'))).toEqual([]);
  });

  it('is not changed by those who only read', async () => {
    await bench.store([bench.windowOf(first, { id: 'a' })]);
    const before = [bench.files(), readdirSync(join(bench.root, '_dfinery'))];
    rmSync(join(bench.root, '_dfinery'), { recursive: true });
    const storage = new FaultyStorage(bench.root);
    expect(await verifyDelta({ ...bench.lakeOptions, storage })).toEqual([]);
    expect((await reportDelta({ ...bench.lakeOptions, storage })).rows).toBe(1);
    expect(storage.changes).toEqual([]);
    expect(bench.files()).toEqual(before[0]);
    expect(readdirSync(bench.root)).not.toContain('_dfinery');
  });
});

describe('the tables of a place', () => {
  it('tell what was loaded before, nothing where nothing was, and are refused where they are damaged', async () => {
    const loads = (more = {}) => readDeltaPriorLoads({ ...bench.lakeOptions, ...more });
    const nothing = await loads();
    expect(nothing).toMatchObject({ state: undefined, eventNames: [] });
    expect([...nothing.covered]).toEqual([]);
    await bench.store([bench.windowOf(first, { id: 'a' })]);
    const storage = new CountedStorage(bench.root);
    const { state, covered, eventNames } = await loads({ storage });
    expect([state, [...covered], eventNames]).toEqual([{ version: 1, from_date: second }, [first], []]);
    expect(storage.open).toBe(0);
    bench.append('events', 1, 'no object');
    await expect(loads()).rejects.toMatchObject({ kind: 'config' });
    await expect(loads({ signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped');
  });

  it('that were asked for once stay, whatever is asked for later', async () => {
    await bench.store([bench.windowOf(first, { id: 'a', df_items_x: '1' })], { tables: ['event_items'] });
    await bench.store([bench.windowOf(second, { id: 'b', df_items_x: '2' })], { tables: ['event_logs'] });
    await bench.store([bench.windowOf(third, { id: 'c', df_items_x: '3' })], { tables: [] });
    for (const table of ['event_items', 'event_logs']) {
      expect(await bench.read(`SELECT count(*)::INT AS n FROM ${table}`)).toEqual([{ n: 3 }]);
    }
    expect(await verify()).toEqual([]);
  });

  it('hold the receipts of their windows by number, in whatever order the log has them', async () => {
    await bench.store([bench.windowOf(first, { id: 'a' })]);
    const [{ configuration, ...domain }] = bench
      .actions('events', 0, 'domainMetadata')
      .filter(({ domain: name }) => name === 'dfinery.window.1');
    for (const [version, window] of [
      [1, 12],
      [2, 3],
    ]) {
      const day = { from: `2026-01-${10 + window}`, to: `2026-01-${10 + window}` };
      const receipt = { ...JSON.parse(String(configuration)), ...day, window, rows: window };
      const name = `dfinery.window.${window}`;
      bench.append('events', version, {
        domainMetadata: { ...domain, domain: name, configuration: JSON.stringify(receipt) },
      });
    }
    const { windows } = await reportDelta(bench.lakeOptions);
    expect(windows.map(({ rows }) => rows)).toEqual([1, 3, 12]);
  });
});

describe('the copies of a bucket', () => {
  it('are made once of what stays, and go with what leaves the table', async () => {
    const s3 = await FakeS3.start();
    for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
    const place = {
      ...bench.lakeOptions,
      place: 's3://bucket/lake',
      env: envOf(s3.env),
      tables: ['event_items' as const],
    };
    try {
      await bench.store([bench.windowOf(first, { id: 'a', n: '1' }), bench.windowOf(second, { id: 'b' })], place);
      s3.reset();
      const sink = await bench.openLake(place);
      await sink.commit([bench.windowOf(second, { id: 'b', n: '2' })], bench.signal);
      await sink.commit([bench.windowOf(second, { id: 'b', n: '3' })], bench.signal);
      const read = (day: Day) =>
        s3.requests.filter(({ what, key }) => what === 'GetObject' && key.startsWith(`lake/events/event_date=${day}`));
      // Its keys are read for each of the windows.
      expect(read(first)).toHaveLength(1);
      expect(new Set(read(second).map(({ key }) => key)).size).toBe(2);
      const [run] = readdirSync(place.spoolDir);
      // The one of the first day is all that a third window could use.
      const copies = readdirSync(join(place.spoolDir, run)).filter((name) => name.startsWith('copy-'));
      expect(copies).toHaveLength(1);
      await sink.close();
      expect(readdirSync(place.spoolDir)).toEqual([]);
      s3.dump('lake/', bench.root);
      expect(await bench.read('SELECT _key, n FROM events ORDER BY 1')).toEqual([
        { _key: 'a', n: '1' },
        { _key: 'b', n: '3' },
      ]);
      expect(await verifyDelta(place)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      await s3.close();
    }
  });
});
