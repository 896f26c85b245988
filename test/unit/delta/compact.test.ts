import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { literal } from '../../../src/cells/types/sql.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import type { Cells } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { compactDelta, purgeDelta, verifyDelta } from '../../support/targets/files.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const ALL = ['events', 'event_items', 'event_logs'] as const;
const MIB = 1024 * 1024;
const compact = () => compactDelta(fixture.lakeOptions);
const verify = () => verifyDelta(fixture.lakeOptions);
const adds = (table = 'events') => [...fixture.replay(table).files.values()];
const noteOf = ({ tags }: Readonly<Record<string, unknown>>) => JSON.parse((tags as { dfinery: string }).dfinery);

/** Changes the log's entries of its files, as if they had always been so. */
function reported(more: (add: { stats: string; size: number }) => object): void {
  const version = fixture.versions();
  const lines = adds().map((add) => ({ add: { ...add, ...more(add as never) } }));
  const name = `${String(version).padStart(20, '0')}.json`;
  writeFileSync(join(fixture.root, 'events/_delta_log', name), lines.map((line) => JSON.stringify(line)).join('\n'));
}
/** A folder as if it were a bucket: what is read of it is copied into the spool folder. */
function bucketAt(root: string): Storage {
  return new Proxy<Storage>(new DiskStorage(root), {
    get: (target, name) => {
      if (name === 'workFolder') return undefined;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
const withRows = (rows: number) =>
  reported(({ stats }) => ({ stats: JSON.stringify({ ...JSON.parse(stats), numRecords: rows }) }));

describe('compact', () => {
  it('joins files of different columns within a date, and reports its work for all tables', async () => {
    await fixture.store(
      [
        fixture.windowOf(
          first,
          { id: 'a:1', n: '1', df_items_x: '1' },
          { id: 'z', df_server_datetime: '', df_correction_datetime: '' },
        ),
        fixture.windowOf(first, { id: 'b', m: '2' }),
        fixture.windowOf(first, { id: 'y', df_server_datetime: '', df_correction_datetime: '' }),
        fixture.windowOf(second, { id: 'c', n: '3' }),
      ],
      { tables: ALL },
    );
    const before = await fixture.read('SELECT * FROM events ORDER BY _key');
    const [paths, bytes] = [
      [...fixture.replay('events').files.keys()],
      () => ALL.flatMap((table) => adds(table)).reduce((sum, { size }) => sum + Number(size), 0),
    ];
    const lone = paths.filter((path) => path.includes(second));
    const size = bytes();
    const done = await compact();
    expect(done).toEqual({ rows: 5, rowsRemoved: 0, files: expect.any(Array), bytesBefore: size, bytesAfter: bytes() });
    expect([...done.files].sort()).toEqual(
      paths
        .filter((path) => !lone.includes(path))
        .map((path) => `events/${path}`)
        .sort(),
    );
    expect(await fixture.read('SELECT * FROM events ORDER BY _key')).toEqual(before);
    const dates = adds().map(({ partitionValues }) => (partitionValues as Cells).event_date);
    expect(dates.sort()).toEqual([first, second, null].sort());
    for (const add of adds().filter(({ path }) => !lone.includes(String(path)))) {
      expect(noteOf(add)).toMatchObject({ is_sorted: true });
    }
    expect(
      adds()
        .map((add) => JSON.stringify(noteOf(add).windows))
        .sort(),
    ).toEqual(['{"1":1,"2":1}', '{"1":1,"3":1}', '{"4":1}']);
    const [{ operation }] = fixture.actions('events', fixture.versions() - 1, 'commitInfo');
    expect(operation).toBe('OPTIMIZE');
    for (const table of ALL) {
      const last = fixture.versions(table) - 1;
      const kinds = ['add', 'remove'].flatMap((kind) => fixture.actions(table, last, kind));
      expect(kinds.map(({ dataChange }) => dataChange)).toEqual(kinds.map(() => false));
      expect(adds(table)).toHaveLength(3);
    }
    expect(await verify()).toEqual([]);
  });

  it('makes one commit of a gibibyte of objects, and another of what is more', async () => {
    for (const [extra, commits] of [
      [0, 1],
      [1, 2],
    ] as const) {
      fixture.close();
      fixture = new DeltaFixture();
      await fixture.store([
        fixture.windowOf(first, { id: 'a' }),
        fixture.windowOf(first, { id: 'b' }),
        fixture.windowOf(second, { id: 'c' }),
        fixture.windowOf(second, { id: 'd' }),
      ]);
      reported(() => ({ size: 256 * MIB + extra }));
      const version = fixture.versions();
      await compactDelta({ ...fixture.lakeOptions, storage: bucketAt(fixture.root) });
      expect(fixture.versions()).toBe(version + commits);
      expect(adds()).toHaveLength(2);
      expect(await verify()).toEqual([]);
    }
  });

  it('sorts a single file of more than a row group once, and leaves a smaller one', async () => {
    await fixture.store([fixture.windowOf(first, { id: 'a' })]);
    withRows(61_440);
    const version = fixture.versions();
    await compact();
    expect(fixture.versions()).toBe(version);
    withRows(61_441);
    expect((await compact()).files).toHaveLength(1);
    expect(fixture.versions()).toBe(version + 2);
    withRows(61_441);
    await compact();
    expect(fixture.versions()).toBe(version + 3);
  });

  it('drops a file without rows', async () => {
    await fixture.store([fixture.windowOf(first, { id: 'a' }), fixture.windowOf(second, { id: 'b' })]);
    const [path] = fixture.replay('events').files.keys();
    const [file, copy] = [join(fixture.root, 'events', path), join(fixture.dir, 'copy')];
    const rows = `SELECT * FROM read_parquet(${literal(file)}, hive_partitioning = false) WHERE false`;
    await query(':memory:', `COPY (${rows}) TO ${literal(copy)} (FORMAT parquet)`);
    writeFileSync(file, readFileSync(copy));
    const [add] = adds();
    const stats = JSON.stringify({ ...JSON.parse(String(add.stats)), numRecords: 0 });
    fixture.append('events', 2, {
      add: { ...add, size: statSync(file).size, stats, tags: { dfinery: '{"id":"none","windows":{}}' } },
    });
    const message = 'window 1 (2026-01-01 to 2026-01-01) should have 1 row of its 1, and has 0';
    expect(await verify()).toEqual([{ check: 'rows', message }]);
    expect((await compact()).files).toEqual([`events/${path}`]);
    expect(adds()).toHaveLength(1);
    expect(await verify()).toEqual([]);
  });
});

describe('purge', () => {
  const purge = (column: string, ...ids: string[]) => purgeDelta(fixture.lakeOptions, { column, ids });

  it('finds rescued cells, also in files without the column, and keeps sorted files sorted', async () => {
    await fixture.store(
      [
        fixture.windowOf(first, { id: 'a', df_unified_id: 'a', m: '1' }),
        fixture.windowOf(first, { id: 'b', df_unified_id: 'b', m: '2', n: '5' }),
      ],
      {
        timezone: undefined,
      },
    );
    await compact();
    await fixture.store(
      [
        fixture.windowOf(second, { id: 'c', df_unified_id: 'c', n: 'x' }, { id: 'd', df_unified_id: 'd', n: '6' }),
        fixture.windowOf('2026-01-03', { id: 'e', df_unified_id: 'e', n: 'x', when: '7' }, { id: 'f' }),
      ],
      { schemaMode: 'freeze' },
    );
    expect(await purge('n', 'x', '5')).toMatchObject({ rows: 3, rowsRemoved: 3 });
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual(['a', 'd', 'f'].map((_key) => ({ _key })));
    const current = async () => [...(await fixture.current('events')).files.values()];
    const sorted = (await current()).map((add) => [(add.partitionValues as Cells).event_date, noteOf(add).is_sorted]);
    expect(Object.fromEntries(sorted)).toEqual({ [first]: true, [second]: undefined, '2026-01-03': undefined });
    expect(await verify()).toEqual([]);
    expect(await purge('n', '6')).toMatchObject({ rows: 2, rowsRemoved: 1 });
    expect(await current()).toHaveLength(2);
    expect(await verify()).toEqual([]);
  });
});
