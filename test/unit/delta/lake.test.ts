import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { priorLoadsOf } from '../../../src/table/state.ts';
import { envOf } from '../../support/env.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { FaultyStorage } from '../../support/targets/faulty-storage.ts';
import { readDeltaState, reportDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';

/** Counts what is not given back. */
class CountedStorage extends DiskStorage {
  open = 1;

  override close(): void {
    this.open--;
  }
}

describe('opening Delta tables', () => {
  it('is undone with its temporary folder, also after a refusal', async () => {
    const theirs = join(fixture.root, 'events/theirs');
    for (const how of ['refused', 'normal']) {
      const storage = new CountedStorage(fixture.root);
      if (how === 'refused') {
        mkdirSync(dirname(theirs), { recursive: true });
        writeFileSync(theirs, 'x');
        await expect(fixture.openLake({ storage })).rejects.toMatchObject({ kind: 'config' });
        rmSync(theirs);
      } else await (await fixture.openLake({ storage })).close();
      expect(storage.open).toBe(0);
      expect(readdirSync(join(fixture.root, '_dfinery/tmp'))).toEqual([]);
    }
  });

  it('is undone when the zone differs from that of the first load', async () => {
    await fixture.store([fixture.windowOf(first, { id: 'a' })]);
    const storage = new CountedStorage(fixture.root);
    await expect(fixture.openLake({ storage, timezone: 'Asia/Seoul' })).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('timezone'),
    });
    expect(storage.open).toBe(0);
    expect(readdirSync(join(fixture.root, '_dfinery/tmp'))).toEqual([]);
  });

  it('for reading changes nothing', async () => {
    await fixture.store([fixture.windowOf(first, { id: 'a' })]);
    const before = [fixture.files(), readdirSync(join(fixture.root, '_dfinery'))];
    rmSync(join(fixture.root, '_dfinery'), { recursive: true });
    const storage = new FaultyStorage(fixture.root);
    expect(await verifyDelta({ ...fixture.lakeOptions, storage })).toEqual([]);
    expect((await reportDelta({ ...fixture.lakeOptions, storage })).rows).toBe(1);
    expect(storage.changes).toEqual([]);
    expect(fixture.files()).toEqual(before[0]);
    expect(readdirSync(fixture.root)).not.toContain('_dfinery');
  });
});

describe('opened Delta tables', () => {
  it('report their state, none for an empty location, and are refused when damaged', async () => {
    const stateOf = (more = {}) => readDeltaState({ ...fixture.lakeOptions, ...more });
    expect(await stateOf()).toBeUndefined();
    await fixture.store([fixture.windowOf(first, { id: 'a' })]);
    const storage = new CountedStorage(fixture.root);
    const { state, covered, eventNames } = priorLoadsOf(await stateOf({ storage }));
    expect([state, [...covered], eventNames]).toEqual([{ version: 1, from_date: second }, [first], []]);
    expect(storage.open).toBe(0);
    fixture.append('events', 1, 'no object');
    await expect(stateOf()).rejects.toMatchObject({ kind: 'config' });
    await expect(stateOf({ signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped');
  });

  it('order the receipts of their windows by number, in any order of the log', async () => {
    await fixture.store([fixture.windowOf(first, { id: 'a' })]);
    const [{ configuration, ...domain }] = fixture
      .actions('events', 0, 'domainMetadata')
      .filter(({ domain: name }) => name === 'dfinery.window.1');
    for (const [version, window] of [
      [1, 12],
      [2, 3],
    ]) {
      const day = { from: `2026-01-${10 + window}`, to: `2026-01-${10 + window}` };
      const receipt = { ...JSON.parse(String(configuration)), ...day, window, rows: window };
      const name = `dfinery.window.${window}`;
      fixture.append('events', version, {
        domainMetadata: { ...domain, domain: name, configuration: JSON.stringify(receipt) },
      });
    }
    const { state } = await reportDelta(fixture.lakeOptions);
    expect(state.receipts.map(({ rows }) => rows)).toEqual([1, 3, 12]);
  });
});

describe('the local copies of objects', () => {
  it('are downloaded once for files that stay, and removed with files that leave the table', async () => {
    const s3 = await FakeS3.start();
    for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
    const place = {
      ...fixture.lakeOptions,
      place: 's3://bucket/lake',
      env: envOf(s3.env),
      tables: ['event_items' as const],
    };
    try {
      await fixture.store([fixture.windowOf(first, { id: 'a', n: '1' }), fixture.windowOf(second, { id: 'b' })], place);
      s3.reset();
      const sink = await fixture.openLake(place);
      await sink.commit([fixture.windowOf(second, { id: 'b', n: '2' })], fixture.signal);
      await sink.commit([fixture.windowOf(second, { id: 'b', n: '3' })], fixture.signal);
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
      s3.dump('lake/', fixture.root);
      expect(await fixture.read('SELECT _key, n FROM events ORDER BY 1')).toEqual([
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
