import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { FaultyStorage } from '../../support/targets/faulty-storage.ts';
import { compactDelta, peopleInDelta, purgeDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const verify = () => verifyDelta(fixture.lakeOptions);
const TABLES = ['events', 'event_items', 'event_logs'] as const;
const PERSON = 'erna-4711';
const person = { df_unified_id: PERSON, mail: 'erna@example.com' };

const load = () =>
  fixture.store(
    [
      fixture.window(
        first,
        csvOf([
          { id: 'a:1', df_items_x: '1', ...person, ...on(first) },
          { id: 'b', ...on(first) },
        ]),
      ),
      fixture.window(second, csvOf([{ id: 'c', ...person, ...on(second) }])),
      fixture.window(
        second,
        csvOf([
          { id: 'd', n: '1', ...on(first) },
          { id: 'c', ...person, ...on(second) },
        ]),
      ),
    ],
    { tables: TABLES },
  );

describe('purge', () => {
  it('leaves no byte of a person in any object, not even one of an older version [R306]', async () => {
    await load();
    const found = await peopleInDelta(fixture.lakeOptions, { column: 'mail', ids: ['erna@example.com', 'nobody'] });
    expect(found).toMatchObject({ unifiedIds: [{ text: PERSON }], ids: ['erna@example.com'], rows: 2, shared: 0 });
    const done = await purgeDelta(fixture.lakeOptions, { column: 'mail', ids: ['erna@example.com'] });
    expect(done).toMatchObject({ rows: 2, rowsRemoved: 2 });
    for (const path of fixture.files()) {
      expect(readFileSync(join(fixture.root, path)).includes('erna'), path).toBe(false);
      expect(path).not.toContain('erna');
    }
    for (const [table, keys] of [
      ['events', 2],
      ['event_logs', 2],
      ['event_items', 0],
    ] as const) {
      expect(await fixture.read(`SELECT count(*)::INT AS n FROM ${table}`)).toEqual([{ n: keys }]);
    }
    expect(await verify()).toEqual([]);
    await fixture.store([fixture.window('2026-01-03', csvOf([{ id: 'e', ...on('2026-01-03') }]))]);
    expect(await verify()).toEqual([]);
  });

  it('takes from a run that began before it the means to commit, and its files too [R306]', async () => {
    await load();
    const sink = await fixture.openLake();
    try {
      await purgeDelta(fixture.lakeOptions, { column: 'df_unified_id', ids: ['nobody'] });
      const late = fixture.window('2026-01-03', csvOf([{ id: 'z', ...on('2026-01-03') }]));
      await expect(sink.commit([late], fixture.signal)).rejects.toMatchObject({ exitCode: 3 });
    } finally {
      await sink.close();
    }
    expect(await verify()).toEqual([]);
  });

  it('by a column that only some of the files have leaves the others alone [R548]', async () => {
    await load();
    await fixture.store([fixture.window('2026-01-03', csvOf([{ id: 'e', ...on('2026-01-03') }]))]);
    const removal = { column: 'mail', ids: ['erna@example.com'] };
    expect(await purgeDelta(fixture.lakeOptions, removal)).toMatchObject({ rows: 3, rowsRemoved: 2 });
    expect(await verify()).toEqual([]);
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual(['b', 'd', 'e'].map((_key) => ({ _key })));
  });

  it('of somebody who is in no row removes old files all the same, and of an unknown column nothing', async () => {
    await load();
    const purge = (column: string) => purgeDelta(fixture.lakeOptions, { column, ids: ['x'] });
    await expect(purge('nothing')).rejects.toMatchObject({ kind: 'config' });
    const versions = fixture.versions();
    expect((await purge('df_unified_id')).rowsRemoved).toBe(0);
    expect(fixture.versions()).toBe(versions + 1);
    const stored = fixture.files('events').filter((path) => path.endsWith('.parquet') && !path.startsWith('_'));
    expect(stored).toEqual([...(await fixture.current('events')).files.keys()].sort());
    const log = fixture.files('events/_delta_log').map((name) => Number.parseInt(name, 10));
    expect(log).toEqual([versions, versions, Number.NaN]);
  });
});

describe('compact', () => {
  it('makes the files of a date one, in a commit that changes no rows [R306]', async () => {
    await load();
    const rows = await fixture.read('SELECT * FROM events ORDER BY _key');
    expect(fixture.replay('events').files.size).toBeGreaterThan(2);
    const version = fixture.versions();
    await compactDelta(fixture.lakeOptions);
    expect(fixture.versions()).toBe(version + 1);
    expect(fixture.actions('events', version, 'add').map(({ dataChange }) => dataChange)).toEqual([false]);
    expect(fixture.replay('events').files.size).toBe(2);
    expect(await fixture.read('SELECT * FROM events ORDER BY _key')).toEqual(rows);
    expect(await verify()).toEqual([]);
    await compactDelta(fixture.lakeOptions);
    expect(fixture.versions()).toBe(version + 1);
  });
});

describe('a checkpoint', () => {
  it('stands for all entries before it: their loss is not noticed [R304]', async () => {
    await load();
    for (const table of TABLES) await fixture.checkpoint(0, table);
    const state = async () => {
      const sink = await fixture.openLake();
      const { state: cursor, covered } = await sink.readPriorLoads();
      await sink.close();
      return { cursor, covered };
    };
    const before = await state();
    const last = fixture.versions() - 1;
    for (let version = 0; version <= last; version++) {
      for (const table of TABLES) {
        rmSync(join(fixture.root, table, '_delta_log', `${String(version).padStart(20, '0')}.json`), { force: true });
      }
    }
    expect(await state()).toEqual(before);
    expect(await verify()).toEqual([]);
    await fixture.store([fixture.window('2026-01-03', csvOf([{ id: 'z', ...on('2026-01-03') }]))]);
    expect(await verify()).toEqual([]);
  });

  it('is made every hundred commits, so that a long log opens with few requests [R304]', async () => {
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...on(first) }]))]);
    for (let version = 1; version < 199; version++) fixture.append('events', version, { commitInfo: { version } });
    const day = (n: number) => fixture.window(`2026-01-0${n}`, csvOf([{ id: `k${n}`, ...on(`2026-01-0${n}`) }]));
    await fixture.store([day(2), day(3), day(4)]);
    expect(fixture.files('events/_delta_log')).toEqual(
      expect.arrayContaining(['00000000000000000200.checkpoint.parquet', '_last_checkpoint']),
    );
    const storage = new FaultyStorage(fixture.root);
    const sink = await fixture.openLake({ storage });
    expect((await sink.readPriorLoads()).covered.size).toBe(4);
    await sink.close();
    expect(storage.reads.filter((path) => path.startsWith('events/')).length).toBeLessThan(4);
    expect(await verify()).toEqual([]);
  });
});
