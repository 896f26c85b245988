import { existsSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { transientError } from '../../../src/base/errors.ts';
import { literal } from '../../../src/cells/types/sql.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { compactLake, DuckLakeFixture, verifyLake } from '../../support/targets/ducklake.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckLakeFixture;
beforeEach(() => {
  fixture = new DuckLakeFixture();
});
afterEach(() => fixture.close());

const TABLES = ['events', 'event_items', 'event_logs'] as const;
const ROWS = [
  { id: 'a', level: '7', tags: '["x","y"]', secret: 'mine', df_items_x: '1' },
  { id: 'b', level: '', tags: '', secret: 'yours' },
];

describe('the data folder of a catalog', () => {
  it('belongs to this catalog alone, when two are loaded in any order or one is moved', async () => {
    const shared = { data: fixture.data };
    const other = join(fixture.root, 'other.ducklake');
    await fixture.store([fixture.windowOf('2026-01-01', ...ROWS)]);
    const refused = { kind: 'config', message: expect.stringContaining('holds the data of another catalog than') };
    await expect(fixture.openLake({ ...shared, place: other })).rejects.toMatchObject(refused);
    renameSync(fixture.place, other);
    await expect(fixture.openLake()).rejects.toMatchObject(refused);
    await (await fixture.openLake({ place: other })).close();
  });

  it('is noted by the next run where the disk was full after the first commit, whose rows count', async () => {
    const storage = new DiskStorage(join(fixture.data, 'main'));
    storage.create = async () => {
      throw transientError('The disk is full.');
    };
    const commits = await fixture.store([fixture.windowOf('2026-01-01', ...ROWS)], { storage });
    expect(commits).toMatchObject([{ windows: 1, rows: 2 }]);
    const note = join(fixture.data, 'main/_dfinery/catalog');
    expect(existsSync(note)).toBe(false);
    await (await fixture.openLake()).close();
    expect(existsSync(note)).toBe(true);
  });
});

describe('a catalog after the first load', () => {
  it('has the 28 tables of format 1.0, in small blocks, and names its data by an absolute path', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', ...ROWS)]);
    const tables = await fixture.catalog(
      "SELECT table_name AS name FROM duckdb_tables() WHERE table_name LIKE 'ducklake%'",
    );
    expect(tables).toHaveLength(28);
    expect(
      await fixture.catalog("SELECT key, value FROM ducklake_metadata WHERE key <> 'created_by' ORDER BY 1"),
    ).toEqual([
      { key: 'data_path', value: `${fixture.data}/` },
      { key: 'encrypted', value: 'false' },
      { key: 'version', value: '1.0' },
    ]);
    expect(statSync(fixture.place).size).toBeLessThan(3_000_000);
    expect(fixture.files()).not.toContain('catalog.ducklake.wal');
  });

  it('has a snapshot per commit with its changes, and a schema version per change of the schema', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', ...ROWS)]);
    await fixture.store([fixture.windowOf('2026-01-01', ...ROWS)]);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'c', late: '1' })]);
    expect(
      await fixture.catalog('SELECT snapshot_id AS id, changes_made AS made FROM ducklake_snapshot_changes'),
    ).toEqual([
      { id: '0', made: 'created_schema:"main"' },
      { id: '1', made: 'created_table:"main"."events",inserted_into_table:1' },
      { id: '2', made: 'inserted_into_table:1,deleted_from_table:1' },
      { id: '3', made: 'altered_table:1,inserted_into_table:1' },
    ]);
    expect(await fixture.catalog('FROM ducklake_schema_versions')).toEqual([
      { begin_snapshot: '1', schema_version: '1', table_id: '1' },
      { begin_snapshot: '3', schema_version: '2', table_id: '1' },
    ]);
    expect(await fixture.catalog('SELECT next_catalog_id AS c, next_file_id AS f FROM ducklake_snapshot')).toEqual([
      { c: '1', f: '0' },
      { c: '3', f: '1' },
      { c: '3', f: '2' },
      { c: '3', f: '3' },
    ]);
  });

  it('gives each column of a file its id in the catalog, and a list a column for its elements', async () => {
    await fixture.store(
      [fixture.windowOf('2026-01-01', ...ROWS), fixture.windowOf('2026-01-02', { id: 'c', late: '["z"]' })],
      {
        tables: TABLES,
      },
    );
    for (const table of TABLES) {
      const columns = await fixture.catalog(
        `SELECT column_id AS id, column_name AS name FROM ducklake_column c JOIN ducklake_table t USING (table_id) WHERE table_name = '${table}'`,
      );
      const ids = new Set(columns.map(({ id, name }) => `${id} ${name}`));
      for (const path of fixture.dataFiles().filter((name) => name.startsWith(`${table}/`))) {
        const fields = await query(
          ':memory:',
          `SELECT field_id AS id, name FROM parquet_schema(${literal(join(fixture.data, 'main', path))}) WHERE name NOT IN ('duckdb_schema', 'list')`,
        );
        for (const { id, name } of fields) expect(ids, path).toContain(`${id} ${name}`);
        expect(fields.map(({ name }) => name)).toContain('event_date');
      }
    }
    const [list] = await fixture.catalog(
      "SELECT column_id AS id FROM ducklake_column WHERE column_name = 'tags' AND table_id = 1",
    );
    expect(
      await fixture.catalog(
        `SELECT column_name AS name, column_type AS type FROM ducklake_column WHERE table_id = 1 AND parent_column = ${list?.id}`,
      ),
    ).toEqual([{ name: 'element', type: 'varchar' }]);
  });

  it('holds rows and nulls of every column, and ranges of dates, datetimes and our own numbers alone', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', ...ROWS)]);
    const statistics = await fixture.catalog(
      `SELECT column_name AS name, value_count AS n, null_count AS absent, min_value AS least FROM ducklake_file_column_stats s
      JOIN ducklake_column c USING (table_id, column_id) ORDER BY column_order`,
    );
    const named = new Map(statistics.map(({ name, ...rest }) => [name, rest]));
    expect(named.get('secret')).toEqual({ n: '2', absent: '0', least: null });
    expect(named.get('level')).toEqual({ n: '1', absent: '1', least: null });
    expect(named.get('df_server_datetime')).toMatchObject({ least: '2026-01-01 10:00:00' });
    const ranged = statistics.flatMap(({ name, least }) => (least === null ? [] : [name]));
    expect(ranged.sort()).toEqual(['_dfinery_window', 'df_correction_datetime', 'df_server_datetime', 'event_date']);
    const whole = await fixture.catalog(
      'SELECT column_name AS name FROM ducklake_table_column_stats JOIN ducklake_column USING (table_id, column_id) ORDER BY 1',
    );
    expect(whole.map(({ name }) => name)).toEqual(ranged);
  });
});

describe('tables read at a snapshot', () => {
  it('are those of its commit, whatever followed: re-read rows, a wider type, a compaction', async () => {
    const states = [
      [{ k: 'a', n: '1' }],
      [
        { k: 'a', n: '2' },
        { k: 'b', n: '3' },
      ],
      [
        { k: 'a', n: '2' },
        { k: 'b', n: '3' },
        { k: 'c', n: 'x' },
      ],
    ];
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', n: '1' })]);
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', n: '2' }, { id: 'b', n: '3' })]);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'c', n: 'x' })]);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'c', n: 'x' }, { id: 'd', n: 'y' })]);
    await compactLake(fixture.lakeOptions);
    for (const [i, rows] of states.entries()) {
      const found = await fixture.read('SELECT _key AS k, n FROM events ORDER BY 1', i + 1);
      expect(found, `snapshot ${i + 1}`).toEqual(rows);
    }
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });

  it('expire with their files after the retention', async () => {
    let now = Date.UTC(2026, 0, 10);
    const clock = { ...fixture.targetOptions.clock, now: () => now };
    const stored = (id: string) => fixture.store([fixture.windowOf('2026-01-01', { id: 'x', n: id })], { clock });
    await stored('1');
    now += 3_600_000;
    await stored('2');
    now += 3_600_000;
    await stored('3');
    expect(fixture.dataFiles()).toHaveLength(3);
    now += 23.5 * 3_600_000;
    await stored('4');
    // The first was followed more than a day ago by the second, which is kept.
    const ids = () => fixture.catalog('SELECT snapshot_id AS id FROM ducklake_snapshot ORDER BY 1');
    expect((await ids()).map(({ id }) => id)).toEqual(['2', '3', '4']);
    expect(fixture.dataFiles()).toHaveLength(3);
    expect(await fixture.read('SELECT n FROM events', 2)).toEqual([{ n: '2' }]);
    expect(await fixture.read('SELECT n FROM events')).toEqual([{ n: '4' }]);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });
});
