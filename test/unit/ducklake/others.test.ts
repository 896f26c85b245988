import { copyFileSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  compactLake,
  DuckLakeFixture,
  peopleInLake,
  purgeLake,
  reportLake,
  tryPurgeLake,
  verifyLake,
} from '../../support/targets/ducklake.ts';
import { inDatabase } from '../../support/targets/query.ts';

let fixture: DuckLakeFixture;
beforeEach(() => {
  fixture = new DuckLakeFixture();
});
afterEach(() => fixture.close());

const TABLES = ['events', 'event_items', 'event_logs'] as const;
const keys = async () => (await fixture.read('SELECT _key AS k FROM events ORDER BY 1')).map(({ k }) => k);
const next = () => fixture.store([fixture.windowOf('2026-01-02', { id: 'late' })]);
const refused = (text: string) => ({ exitCode: 2, message: expect.stringContaining(text) });

describe('a catalog that another program changed', () => {
  beforeEach(() =>
    fixture.store(
      [fixture.windowOf('2026-01-01', { id: 'a', df_items_x: '1' }, { id: 'b', df_items_x: '2' }, { id: 'c' })],
      {
        tables: TABLES,
      },
    ),
  );

  it('is read when rows were deleted, and the next sync applies the deletion to all tables', async () => {
    const [file] = await fixture.catalog(
      "SELECT data_file_id AS id FROM ducklake_data_file JOIN ducklake_table USING (table_id) WHERE table_name = 'events'",
    );
    const table = "(SELECT table_id FROM ducklake_table WHERE table_name = 'events')";
    const [{ id }] = await fixture.catalog(`SELECT ${table} AS id`);
    await fixture.change(
      `CREATE TABLE ducklake_inlined_delete_${id}(file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)`,
      `INSERT INTO ducklake_inlined_delete_${id} VALUES (${file?.id}, 1, 2)`,
    );
    const content = () => fixture.files().map((path) => [path, readFileSync(join(fixture.root, path)).toString('hex')]);
    const before = content();
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
    expect((await reportLake(fixture.lakeOptions)).rows).toBe(2);
    expect((await peopleInLake(fixture.lakeOptions, { column: 'df_unified_id', ids: ['x'] })).people).toBe(0);
    expect(content()).toEqual(before);
    await compactLake(fixture.lakeOptions);
    expect(await keys()).toHaveLength(2);
    expect(await fixture.read('SELECT count(*) AS n FROM event_logs')).toEqual([{ n: '2' }]);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
    await next();
    expect(await keys()).toContain('late');
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });

  it('is continued after another program removed whole files, added a column, a table or a snapshot', async () => {
    await fixture.change(
      'INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, snapshot_time, schema_version + 1, next_catalog_id + 1, next_file_id FROM ducklake_snapshot ORDER BY 1 DESC LIMIT 1',
      "INSERT INTO ducklake_column SELECT 900, 2, NULL, table_id, 900, 'note', 'varchar', NULL, 'NULL', true, NULL, 'literal', 'duckdb' FROM ducklake_table",
      "INSERT INTO ducklake_table SELECT 77, uuid(), 2, NULL, schema_id, 'others', 'others/', true FROM ducklake_schema",
    );
    await next();
    expect(await keys()).toEqual(['a', 'b', 'c', 'late']);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
    await fixture.change('UPDATE ducklake_data_file SET end_snapshot = 3 WHERE begin_snapshot = 1');
    await fixture.store([fixture.windowOf('2026-01-03', { id: 'last' })], { tables: TABLES });
    expect(await keys()).toEqual(['last', 'late']);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });

  it.each([
    [
      'renamed a column',
      ["UPDATE ducklake_column SET column_name = 'other' WHERE column_name = 'df_event_name'"],
      'dropped or renamed the column df_event_name',
    ],
    [
      'changed a type',
      ["UPDATE ducklake_column SET column_type = 'blob' WHERE column_name = 'df_event_name'"],
      'changed the type of the column df_event_name',
    ],
    [
      'dropped the table',
      ["UPDATE ducklake_table SET end_snapshot = 1 WHERE table_name = 'events'"],
      'no table events any more',
    ],
    [
      'partitioned it otherwise',
      ["UPDATE ducklake_partition_column SET transform = 'year'"],
      'not partitioned by event_date',
    ],
    ['encrypted it', ["UPDATE ducklake_metadata SET value = 'true' WHERE key = 'encrypted'"], 'encrypted files'],
    ['migrated it', ["UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version'"], 'this program knows 1.0'],
    [
      'inserted a row',
      [
        'CREATE TABLE ducklake_inlined_data_1_1(row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, _key VARCHAR)',
        "INSERT INTO ducklake_inlined_data_1_1 VALUES (9, 1, NULL, 'mine')",
        "INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 1)",
      ],
      'another program inserted 1 row into events',
    ],
    ['damaged our state', ["UPDATE _dfinery_state SET value = '{' WHERE name = 'columns'"], 'not JSON'],
    ['is a later version of this one', ['UPDATE _dfinery_state SET v = 2'], 'later version of this program'],
  ])('is refused with a message when another program %s, and nothing changes', async (_what, statements, sentence) => {
    await fixture.change(...statements);
    const before = fixture.files().filter((path) => path.endsWith('.parquet'));
    await expect(next()).rejects.toMatchObject(refused(sentence));
    await expect(verifyLake(fixture.lakeOptions)).rejects.toMatchObject(refused(sentence));
    expect(fixture.files().filter((path) => path.endsWith('.parquet'))).toEqual(before);
  });

  it('is refused with the file and its rows when another program wrote it without a date, until the rows are deleted', async () => {
    const events = "table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'events')";
    await fixture.change(
      `DELETE FROM ducklake_file_partition_value WHERE ${events}`,
      `DELETE FROM _dfinery_files WHERE data_file_id IN (SELECT data_file_id FROM ducklake_data_file WHERE ${events})`,
    );
    const [file] = await fixture.catalog(
      `SELECT data_file_id AS id, table_id AS "table", path FROM ducklake_data_file WHERE ${events}`,
    );
    const sentence = `wrote events/${file?.path} without a value of event_date, by which events is partitioned, so its 3 rows cannot be kept`;
    await expect(next()).rejects.toMatchObject(refused(sentence));
    await expect(verifyLake(fixture.lakeOptions)).rejects.toMatchObject(refused(sentence));
    expect(await keys()).toEqual(['a', 'b', 'c']);
    await fixture.change(
      `CREATE TABLE ducklake_inlined_delete_${file?.table}(file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)`,
      `INSERT INTO ducklake_inlined_delete_${file?.table} SELECT ${file?.id}, range, 2 FROM range(3)`,
    );
    await next();
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' }, { id: 'b' }, { id: 'c' })]);
    expect(await keys()).toEqual(['a', 'b', 'c', 'late']);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });

  it('gives the rows that the reference client keeps in the catalog a table of each version of the columns', async () => {
    const [{ id }] = await fixture.catalog("SELECT table_id AS id FROM ducklake_table WHERE table_name = 'events'");
    const columns = async () =>
      (
        await fixture.catalog(
          `SELECT column_name AS name FROM ducklake_column WHERE table_id = ${id} AND end_snapshot IS NULL AND parent_column IS NULL
          ORDER BY column_order`,
        )
      ).map(({ name }) => String(name));
    const own = ['row_id BIGINT', 'begin_snapshot BIGINT', 'end_snapshot BIGINT'];
    const all = [...own, ...(await columns()).map((name) => `"${name}" VARCHAR`)];
    await fixture.change(
      `CREATE TABLE ducklake_inlined_data_${id}_1(${all.join(', ')})`,
      `INSERT INTO ducklake_inlined_data_tables VALUES (${id}, 'ducklake_inlined_data_${id}_1', 1)`,
    );
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'd', fresh: '1.5', sizes: '[1,2]' })], {
      tables: TABLES,
    });
    const [latest] = await fixture.catalog(
      `SELECT table_name AS name, schema_version AS version FROM ducklake_inlined_data_tables WHERE table_id = ${id}
      ORDER BY schema_version DESC LIMIT 1`,
    );
    const [{ version }] = await fixture.catalog('SELECT max(schema_version) AS version FROM ducklake_snapshot');
    expect(latest).toEqual({ name: `ducklake_inlined_data_${id}_${version}`, version });
    const found = await fixture.catalog(
      `SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_name = '${latest?.name}' ORDER BY ordinal_position`,
    );
    expect(found.slice(own.length).map(({ name }) => name)).toEqual(await columns());
    expect(found).toContainEqual({ name: 'fresh', type: 'DOUBLE' });
    expect(found).toContainEqual({ name: 'sizes', type: 'BIGINT[]' });
  });

  it('is refused when another program took the name of a column that an export needs', async () => {
    await fixture.change(
      "INSERT INTO ducklake_column VALUES (900, 1, NULL, 1, 900, 'Fresh', 'varchar', NULL, 'NULL', true, NULL, 'literal', 'duckdb')",
    );
    const fresh = fixture.store([fixture.windowOf('2026-01-02', { id: 'late', fresh: '1' })]);
    await expect(fresh).rejects.toMatchObject(refused('added a column Fresh'));
    expect(await keys()).toEqual(['a', 'b', 'c']);
  });
});

describe('a foreign catalog', () => {
  it('is refused and unchanged: a database, a lake with a table of our name', async () => {
    mkdirSync(fixture.root);
    await inDatabase(fixture.place, (connection) => connection.run('CREATE TABLE mine(i INTEGER)'));
    await expect(next()).rejects.toMatchObject(refused('without a catalog of DuckLake'));
    const other = new DuckLakeFixture();
    try {
      await other.store([other.windowOf('2026-01-01', { id: 'a' })]);
      await other.change('DELETE FROM _dfinery_state');
      await expect(other.store([other.windowOf('2026-01-01', { id: 'a' })])).rejects.toMatchObject(
        refused('has a table events that this program did not make'),
      );
    } finally {
      other.close();
    }
  });

  it('is refused when a table of the format is missing or differs', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })]);
    await fixture.change('DROP TABLE ducklake_partition_column');
    await expect(next()).rejects.toMatchObject(refused('is no whole catalog of DuckLake 1.0'));
    await expect(verifyLake(fixture.lakeOptions)).rejects.toMatchObject(refused('is missing or of another type'));
  });

  it('that does not exist holds nothing', async () => {
    await expect(compactLake(fixture.lakeOptions)).rejects.toMatchObject(refused('holds no table of this program'));
    expect(existsSync(fixture.root)).toBe(false);
  });

  it('keeps its data where the first load put them', async () => {
    const data = join(fixture.dir, 'elsewhere');
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })], { data });
    expect(existsSync(join(data, 'main', 'events'))).toBe(true);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'b' })]);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
    const moved = fixture.store([fixture.windowOf('2026-01-03', { id: 'c' })], { data: join(fixture.dir, 'third') });
    await expect(moved).rejects.toMatchObject(refused('has its data in'));
  });
});

describe('a catalog that lost rows about data files', () => {
  it.each([
    ['one', " WHERE path LIKE '%2026-01-01%'"],
    ['every one', ''],
  ])('is refused before anything is removed, and verify names %s', async (_which, where) => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' }), fixture.windowOf('2026-01-02', { id: 'b' })]);
    const files = fixture.dataFiles();
    await fixture.change(`DELETE FROM ducklake_data_file${where}`);
    const found = await verifyLake(fixture.lakeOptions);
    expect(found.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(
        /^events\/event_date=2026-01-01\/part-.* was loaded, and the catalog does not list it any more/,
      ),
    );
    await expect(fixture.store([fixture.windowOf('2026-01-03', { id: 'c' })])).rejects.toMatchObject(
      refused('is damaged'),
    );
    await expect(compactLake(fixture.lakeOptions)).rejects.toMatchObject(
      refused('or load the days again into another'),
    );
    expect(fixture.dataFiles()).toEqual(files);
  });

  it('is refused when the note of a lost file is damaged, which then cannot be named', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })]);
    await fixture.change('DELETE FROM ducklake_data_file', "UPDATE _dfinery_files SET value = 'x'");
    await expect(verifyLake(fixture.lakeOptions)).rejects.toMatchObject(refused('a row of _dfinery_files'));
    await expect(next()).rejects.toMatchObject({ exitCode: 2 });
  });

  it.each([
    ['id', '7', 'id must be string'],
    ['windows', '{"1":"many"}', 'windows/1 must be integer'],
    ['nulls', '{"n":-1}', 'nulls/n must be >= 0'],
    ['nulls', null, 'it has no nulls'],
  ])('is refused when the note of a file has %s that this program does not write: %s', async (name, value, why) => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })]);
    const merged = `json_merge_patch(value, '{"${name}":${value}}')`;
    await fixture.change(`UPDATE _dfinery_files SET value = ${merged}`);
    const message = refused(`is damaged: ${why}`);
    await expect(verifyLake(fixture.lakeOptions)).rejects.toMatchObject(message);
    await expect(reportLake(fixture.lakeOptions)).rejects.toMatchObject(message);
    await expect(next()).rejects.toMatchObject(message);
  });

  it('is refused when a file has two notes', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })]);
    await fixture.change('INSERT INTO _dfinery_files FROM _dfinery_files');
    const message = refused('two notes');
    await expect(verifyLake(fixture.lakeOptions)).rejects.toMatchObject(message);
    await expect(next()).rejects.toMatchObject(message);
  });

  it('hides nobody where the note of a file lacks a column', async () => {
    const rows = ['a', 'b'].map((id) => ({ id, df_unified_id: '', member: `m-${id}`, x: id }));
    await fixture.store([fixture.windowOf('2026-01-01', ...rows)]);
    await fixture.change(
      `UPDATE _dfinery_files SET value = json_merge_patch(value, '{"nulls":{"member":null,"x":null}}')`,
    );
    const people = { column: 'member', ids: ['m-a'] };
    expect(await peopleInLake(fixture.lakeOptions, people)).toMatchObject({ rows: 1 });
    expect(await purgeLake(fixture.lakeOptions, people)).toMatchObject({ rowsRemoved: 1, rows: 1 });
    expect(await fixture.read('SELECT _key, member, x FROM events')).toEqual([{ _key: 'b', member: 'm-b', x: 'b' }]);
  });

  it('is distinguished from one whose snapshots another program expired', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' }), fixture.windowOf('2026-01-02', { id: 'b' })]);
    const [file] = await fixture.catalog(
      'SELECT data_file_id AS id, path FROM ducklake_data_file ORDER BY path LIMIT 1',
    );
    await fixture.change(
      `INSERT INTO ducklake_files_scheduled_for_deletion VALUES (${file?.id}, 'main/events/${file?.path}', true, now())`,
      `DELETE FROM ducklake_data_file WHERE data_file_id = ${file?.id}`,
    );
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
    await next();
    expect(await keys()).toHaveLength(2);
  });
});

describe('a damaged data file', () => {
  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['is empty', () => Buffer.alloc(0)],
    ['is cut', (bytes) => bytes.subarray(0, bytes.length / 2)],
    ['has no end', (bytes) => Buffer.concat([bytes, Buffer.from('more')])],
  ])('is named with who can mend it where it %s', async (_how, damage) => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })]);
    const [name = ''] = fixture.dataFiles();
    const path = join(fixture.root, 'catalog.ducklake.files/main', name);
    writeFileSync(path, damage(readFileSync(path)));
    expect(await verifyLake(fixture.lakeOptions)).toMatchObject([
      { message: expect.stringContaining('is not the file') },
    ]);
    const asked = peopleInLake(fixture.lakeOptions, { column: 'df_unified_id', ids: ['x'] });
    await expect(asked).rejects.toMatchObject(refused('is damaged and cannot be read'));
    await expect(fixture.store([fixture.windowOf('2026-01-01', { id: 'b' })])).rejects.toMatchObject(
      refused('is damaged'),
    );
    expect(fixture.dataFiles()).toEqual([name]);
  });
});

describe('two writers of one catalog', () => {
  it('commit one after the other: the loser leaves nothing, and continues from the other’s snapshot', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a' })]);
    const late = await fixture.openLake();
    try {
      await fixture.store([fixture.windowOf('2026-01-02', { id: 'quick' })]);
      const before = fixture.dataFiles();
      const commit = () => late.commit([fixture.windowOf('2026-01-03', { id: 'late' })], fixture.signal);
      await expect(commit()).rejects.toMatchObject({
        exitCode: 3,
        message: expect.stringContaining('another writer was first'),
      });
      expect(fixture.dataFiles()).toEqual(before);
    } finally {
      await late.close();
    }
    expect(await keys()).toEqual(['a', 'quick']);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });

  it('that both create it end with one winner', async () => {
    const [one, two] = [await fixture.openLake(), await fixture.openLake()];
    await one.commit([fixture.windowOf('2026-01-01', { id: 'a' })], fixture.signal);
    await expect(two.commit([fixture.windowOf('2026-01-01', { id: 'b' })], fixture.signal)).rejects.toMatchObject({
      exitCode: 3,
    });
    await one.close();
    await two.close();
    expect(await keys()).toEqual(['a']);
    expect(fixture.dataFiles()).toHaveLength(1);
  });
});

describe('a purge of a catalog', () => {
  const ERNA = { column: 'df_unified_id', ids: ['erna'] };

  it('leaves one snapshot, and no byte of the person in catalog or data, nor in older snapshots', async () => {
    const day = (time: string, secret: string) =>
      fixture.windowOf(
        '2026-01-01',
        {
          id: 'a',
          df_unified_id: 'erna',
          df_event_name: 'erna_only',
          secret,
          df_server_datetime: `2026-01-01 ${time}`,
        },
        { id: 'b', df_unified_id: 'hans' },
      );
    await fixture.store([day('03:04:05.678', 'older')], { tables: TABLES });
    await fixture.store([day('04:05:06.789', 'newer')], { tables: TABLES });
    await purgeLake(fixture.lakeOptions, ERNA);
    expect(await fixture.catalog('SELECT count(*) AS n FROM ducklake_snapshot')).toEqual([{ n: '1' }]);
    for (const path of fixture.files()) {
      const bytes = readFileSync(join(fixture.root, path));
      for (const text of ['erna', 'older', 'newer', '03:04:05', '04:05:06'])
        expect(bytes.includes(text), `${path}: ${text}`).toBe(false);
    }
    expect(await keys()).toEqual(['b']);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
    await next();
    expect(await keys()).toEqual(['b', 'late']);
  });

  it('removes what a dead run had stored, and keeps what a later run has stored', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', df_unified_id: 'erna' }, { id: 'b' })]);
    const dead = join(
      fixture.data,
      'main',
      'events',
      'event_date=2026-01-01',
      'part-00000000-0000-4000-8000-000000000000.parquet',
    );
    writeFileSync(dead, 'erna');
    await purgeLake(fixture.lakeOptions, ERNA);
    expect(existsSync(dead)).toBe(false);
    expect(fixture.dataFiles()).toHaveLength(1);
  });

  it('also removes people from a file of which another program deleted rows while they were looked up', async () => {
    const people = [{ id: 'a', df_unified_id: 'erna' }, { id: 'b', df_unified_id: 'otto' }, { id: 'c' }];
    await fixture.store([fixture.windowOf('2026-01-01', ...people)], { tables: TABLES });
    let lookUps = 0;
    await purgeLake(fixture.lakeOptions, ERNA, async ({ rows }) => {
      expect(rows).toBe(1);
      lookUps++;
      if (lookUps > 1) return;
      await fixture.change(
        'INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, snapshot_time, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot ORDER BY 1 DESC LIMIT 1',
        'CREATE TABLE ducklake_inlined_delete_1(file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)',
        'INSERT INTO ducklake_inlined_delete_1 SELECT data_file_id, 1, 2 FROM ducklake_data_file WHERE table_id = 1',
      );
    });
    expect(lookUps).toBe(2);
    expect(await keys()).toEqual(['c']);
    const all = fixture.files().map((path) => readFileSync(join(fixture.root, path)));
    expect(all.filter((bytes) => bytes.includes('erna'))).toEqual([]);
    expect(await verifyLake(fixture.lakeOptions)).toEqual([]);
  });

  it('is refused before anything changes when the catalog has a second hard link', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', df_unified_id: 'erna' })]);
    linkSync(fixture.place, join(fixture.dir, 'second'));
    await expect(purgeLake(fixture.lakeOptions, ERNA)).rejects.toMatchObject(refused('hard links'));
    expect(await keys()).toEqual(['a']);
  });

  it('refuses a plain copy while the original exists, whose newer files it would remove', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', df_unified_id: 'erna' })]);
    const backup = { ...fixture.lakeOptions, place: join(fixture.dir, 'backup.ducklake') };
    copyFileSync(fixture.place, backup.place);
    await fixture.store([fixture.windowOf('2026-01-02', { id: 'b' })]);
    const before = fixture.dataFiles();
    await expect(purgeLake(backup, ERNA)).rejects.toMatchObject(refused('is a plain copy of'));
    await expect(compactLake(backup)).rejects.toMatchObject(refused('is a plain copy of'));
    expect(fixture.dataFiles()).toEqual(before);
    expect(await peopleInLake(backup, ERNA)).toMatchObject({ rows: 1 });
    expect(await keys()).toEqual(['a', 'b']);
    rmSync(fixture.place);
    expect(await purgeLake(backup, ERNA)).toMatchObject({ rowsRemoved: 1 });
  });

  it('is told, in a trial of a purge, which texts in it quote one of the people', async () => {
    await fixture.store([fixture.windowOf('2026-01-01', { id: 'a', df_unified_id: 'erna' })]);
    await fixture.change(
      "CREATE TYPE who AS ENUM ('x')",
      "CREATE VIEW of_her AS SELECT 'erna' AS x",
      "CREATE VIEW of_hans AS SELECT 'hans' AS x",
      "COMMENT ON TABLE ducklake_snapshot IS 'erna asked'",
      "INSERT INTO ducklake_tag VALUES (1, 1, NULL, 'comment', 'of erna')",
      "INSERT INTO ducklake_view VALUES (9, uuid(), 1, NULL, 0, 'hers', 'duckdb', 'SELECT ''erna''', NULL)",
      "INSERT INTO ducklake_view VALUES (10, uuid(), 1, NULL, 0, 'theirs', 'duckdb', 'SELECT ''o''''hara''', NULL)",
      "INSERT INTO ducklake_view VALUES (11, uuid(), 1, NULL, 0, 'like', 'duckdb', 'FROM events WHERE x LIKE ''%erna%''', NULL)",
    );
    const foreignTables = [
      'table ducklake_snapshot',
      'tag comment',
      'type who',
      'view hers',
      'view like',
      'view of_her',
      'view theirs',
    ];
    const query = { column: 'df_unified_id', ids: ['erna', "o'hara"] };
    expect(await tryPurgeLake(fixture.lakeOptions, query)).toMatchObject({ foreignTables });
  });

  it('names foreign tables, and removes the files of one of ours that another program dropped', async () => {
    const rows = [
      { id: 'a', df_unified_id: 'erna', df_items_x: 'erna' },
      { id: 'b', df_unified_id: 'hans', df_items_x: 'hans' },
    ];
    await fixture.store([fixture.windowOf('2026-01-01', ...rows)], { tables: TABLES });
    const items = "table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'event_items')";
    const last = '(SELECT max(snapshot_id) FROM ducklake_snapshot)';
    await fixture.change(
      "CREATE TABLE notes AS SELECT 'erna' AS x",
      `INSERT INTO ducklake_snapshot SELECT * REPLACE (snapshot_id + 1 AS snapshot_id) FROM ducklake_snapshot WHERE snapshot_id = ${last}`,
      ...['ducklake_table', 'ducklake_data_file', 'ducklake_column'].map(
        (table) => `UPDATE ${table} SET end_snapshot = ${last} WHERE ${items}`,
      ),
    );
    expect(await tryPurgeLake(fixture.lakeOptions, ERNA)).toMatchObject({ foreignTables: ['notes'] });
    await purgeLake(fixture.lakeOptions, ERNA);
    for (const path of fixture.dataFiles()) {
      expect(readFileSync(join(fixture.data, 'main', path)).includes('erna'), path).toBe(false);
    }
  });
});
