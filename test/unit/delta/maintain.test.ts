import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { priorLoadsOf } from '../../../src/table/state.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FaultyStorage } from '../../support/targets/faulty-storage.ts';
import { purgeDelta, verifyDelta } from '../../support/targets/files.ts';

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
  it('prevents a run that began before it from committing, and removes its files', async () => {
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

  it('removes old files even if it finds no row, and nothing if the column is unknown', async () => {
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

describe('a checkpoint', () => {
  it('replaces all entries before it: their loss is not noticed', async () => {
    await load();
    for (const table of TABLES) await fixture.checkpoint(0, table);
    const state = async () => {
      const sink = await fixture.openLake();
      const { state: cursor, covered } = priorLoadsOf(sink.state);
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

  it('is written every hundred commits, so that a long log opens with few requests', async () => {
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...on(first) }]))]);
    for (let version = 1; version < 199; version++) fixture.append('events', version, { commitInfo: { version } });
    const day = (n: number) => fixture.window(`2026-01-0${n}`, csvOf([{ id: `k${n}`, ...on(`2026-01-0${n}`) }]));
    await fixture.store([day(2), day(3), day(4)]);
    expect(fixture.files('events/_delta_log')).toEqual(
      expect.arrayContaining(['00000000000000000200.checkpoint.parquet', '_last_checkpoint']),
    );
    const storage = new FaultyStorage(fixture.root);
    const sink = await fixture.openLake({ storage });
    expect(priorLoadsOf(sink.state).covered.size).toBe(4);
    await sink.close();
    expect(storage.reads.filter((path) => path.startsWith('events/')).length).toBeLessThan(4);
    expect(await verify()).toEqual([]);
  });
});
