import { linkSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Engine } from '../../../src/engine/session/engine.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { tryPurgeDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { openDuckDbSink } from '../../../src/targets/duckdb/sink.ts';
import { duckdb } from '../../../src/targets/duckdb/target.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const options = () => ({ ...fixture.targetOptions, file: fixture.file });
const day = (n: number, ...ids: string[]) =>
  fixture.window(`2026-01-0${n}`, csvOf(ids.map((id) => ({ id, df_unified_id: `u-${id}`, memo: `m ${id}` }))));
const keys = async (file = fixture.file) =>
  (await query(file, 'SELECT _key FROM events ORDER BY 1')).map(({ _key }) => _key);
const beside = () =>
  readdirSync(fixture.dir)
    .filter((name) => !name.startsWith('spool'))
    .sort();

/** Runs the work while a statement that begins like this calls `then` instead of running, the first time. */
async function instead<T>(begins: string, then: (sql: string) => Promise<number>, work: () => Promise<T>): Promise<T> {
  const run = Engine.prototype.run;
  let isDone = false;
  const spy = vi.spyOn(Engine.prototype, 'run').mockImplementation(function (this: Engine, sql, values) {
    if (isDone || !sql.startsWith(begins)) return run.call(this, sql, values);
    isDone = true;
    return then(sql).then((rows) => (rows < 0 ? run.call(this, sql, values) : rows));
  });
  try {
    return await work();
  } finally {
    spy.mockRestore();
    expect(isDone).toBe(true);
  }
}
const OOM = () => Promise.reject(new Error('Out of Memory Error: failed to allocate block'));

describe('a window that runs out of memory', () => {
  it('is stored by the second attempt, with one thread as the windows after it', async () => {
    const sink = await openDuckDbSink(options());
    try {
      await sink.commit([day(1, 'a')], fixture.signal);
      const statements: string[] = [];
      const commit = await instead('INSERT INTO events', OOM, async () => {
        const spy = vi.mocked(Engine.prototype.run);
        const done = await sink.commit([day(2, 'b', 'c')], fixture.signal);
        statements.push(...spy.mock.calls.map(([sql]) => sql).filter((sql) => /threads/.test(sql)));
        return done;
      });
      expect(commit).toMatchObject({ rows: 2, idRepeats: 0 });
      expect(statements).toEqual(['SET threads = 1']);
      await sink.commit([day(3, 'd')], fixture.signal);
    } finally {
      await sink.close();
    }
    expect(await keys()).toEqual(['a', 'b', 'c', 'd']);
    expect(await fixture.query('SELECT number, rows_live FROM _dfinery_windows ORDER BY 1')).toEqual(
      ['1', '2', '1'].map((rows_live, i) => ({ number: `${i + 1}`, rows_live })),
    );
    expect(await verifyDuckDb(options())).toEqual([]);
  });

  it('leaves nothing when the second attempt fails at its end', async () => {
    const sink = await fixture.open();
    await sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a', n: '1' }]))], fixture.signal);
    const run = Engine.prototype.run;
    let isShort = true;
    const failing = vi.spyOn(Engine.prototype, 'run').mockImplementation(function (this: Engine, sql, values) {
      if (isShort && sql.startsWith('INSERT INTO events')) {
        isShort = false;
        return Promise.reject(new Error('Out of Memory Error: could not allocate block'));
      }
      if (!isShort && sql.includes('SET state')) return Promise.reject(new Error('IO Error: no answer of the disk'));
      return run.call(this, sql, values);
    });
    try {
      await expect(
        sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a', n: '2' }, { id: 'b' }]))], fixture.signal),
      ).rejects.toThrow();
    } finally {
      failing.mockRestore();
    }
    expect(isShort).toBe(false);
    await sink.close();
    expect(await fixture.query('SELECT _key, n FROM events')).toEqual([{ _key: 'a', n: '1' }]);
    expect(await fixture.query('SELECT rows, rows_live FROM _dfinery_windows')).toEqual([
      { rows: '1', rows_live: '1' },
    ]);
  });
});

describe('a window that fails for another reason', () => {
  it('is not retried', async () => {
    const sink = await openDuckDbSink(options());
    try {
      const failing = () => Promise.reject(new Error('IO Error: no answer of the disk'));
      const commit = () => sink.commit([day(1, 'a')], fixture.signal);
      await expect(instead('INSERT INTO events', failing, commit)).rejects.toMatchObject({ exitCode: 2 });
    } finally {
      await sink.close();
    }
    expect(await keys()).toEqual([]);
  });
});

describe('a foreign constraint on the table of events', () => {
  it.each([
    ['an index', 'CREATE UNIQUE INDEX mine ON events (memo)', /the index mine on "events".*drop it and run again/],
    ['a constraint', 'ALTER TABLE events ALTER memo SET NOT NULL', /a constraint on "events".*Nothing was changed/],
  ])('is named when it refuses a row: %s', async (_, sql, message) => {
    await fixture.load([day(1, 'a')]);
    await query(fixture.file, sql);
    const rows = [{ id: 'b', memo: 'x' }, { id: 'c', memo: 'x' }, { id: 'd' }];
    await expect(fixture.load([fixture.window('2026-01-02', csvOf(rows))])).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(message),
    });
    expect(await keys()).toEqual(['a']);
  });
});

describe('a trial of a purge', () => {
  const removal = { column: 'df_unified_id', ids: ['u-a'] };

  it('names enum types, and the views and macros whose SQL names one of the people', async () => {
    await fixture.load([day(1, 'a', 'b')]);
    for (const sql of [
      'CREATE TYPE who AS ENUM (SELECT DISTINCT df_unified_id FROM events)',
      "CREATE VIEW of_a AS SELECT * FROM events WHERE df_unified_id = 'u-a'",
      "CREATE VIEW of_b AS SELECT * FROM events WHERE df_unified_id = 'u-b'",
      "CREATE MACRO best() AS 'u-a'",
    ])
      await query(fixture.file, sql);
    const foreignTables = ['macro best', 'type who', 'view of_a'];
    expect(await tryPurgeDuckDb(options(), removal)).toMatchObject({ foreignTables });
  });

  it('names what has a comment or a default that quotes one of the people', async () => {
    await fixture.load([day(1, 'a', 'b')]);
    for (const sql of [
      "COMMENT ON TABLE events IS 'see u-a'",
      "COMMENT ON COLUMN events.df_unified_id IS 'u-b'",
      'CREATE VIEW mine AS SELECT 1 AS x',
      "COMMENT ON VIEW mine IS 'of u-a'",
      'CREATE SEQUENCE numbers',
      "COMMENT ON SEQUENCE numbers IS 'u-a'",
      "ALTER TABLE events ALTER df_unified_id SET DEFAULT 'u-a'",
    ])
      await query(fixture.file, sql);
    const foreignTables = ['column events.df_unified_id', 'sequence numbers', 'table events', 'view mine'];
    expect(await tryPurgeDuckDb(options(), removal)).toMatchObject({ foreignTables });
  });

  it('names foreign tables in order, and leaves the file unchanged', async () => {
    await fixture.load([day(1, 'a', 'b')]);
    expect(await tryPurgeDuckDb(options(), removal)).toMatchObject({ found: { rows: 1 }, foreignTables: [] });
    for (const sql of [
      'CREATE SCHEMA theirs',
      'CREATE TABLE theirs.events (x INT)',
      'CREATE TABLE zoo (x INT)',
      'CREATE TABLE ants (x INT)',
    ])
      await query(fixture.file, sql);
    const before = readFileSync(fixture.file);
    const foreignTables = ['ants', 'theirs.events', 'zoo'];
    expect(await tryPurgeDuckDb(options(), removal)).toMatchObject({ foreignTables });
    const all = { ...options(), spoolDir: fixture.dir, env: () => undefined };
    expect(await (await duckdb.people()).tryPurge(fixture.file, removal, all)).toMatchObject({ foreignTables });
    expect(readFileSync(fixture.file).equals(before)).toBe(true);
    expect(beside()).toEqual(['events.duckdb']);
  });

  it('fails when the purge would, and leaves nothing', async () => {
    await expect(tryPurgeDuckDb(options(), removal)).rejects.toThrow(/holds no table of this program/);
    await fixture.load([day(1, 'a')]);
    await expect(tryPurgeDuckDb(options(), { column: 'no', ids: [] })).rejects.toMatchObject({
      message: expect.stringContaining('has no column no'),
    });
    linkSync(fixture.file, join(fixture.dir, 'link'));
    await expect(tryPurgeDuckDb(options(), removal)).rejects.toThrow(/1 more name \(hard links\)/);
    linkSync(fixture.file, join(fixture.dir, 'link2'));
    await expect(tryPurgeDuckDb(options(), removal)).rejects.toThrow(/2 more names \(hard links\)/);
    expect(beside()).toEqual(['events.duckdb', 'link', 'link2']);
  });

  it.each(['COPY FROM DATABASE main_file TO new_database', 'INSERT INTO new_database', 'DETACH new_database'])(
    'or the purge itself leaves the file unchanged when it is stopped at %s',
    async (begins) => {
      await fixture.load([day(1, 'a', 'b')]);
      const { ino } = statSync(fixture.file);
      const stop = new AbortController();
      const stopping = async () => {
        stop.abort(new Error('stop'));
        return -1;
      };
      const work = async () =>
        (await duckdb.people()).purge(fixture.file, removal, {
          ...options(),
          spoolDir: fixture.dir,
          env: () => undefined,
          signal: stop.signal,
          onFound: async () => undefined,
        });
      await expect(instead(begins, stopping, async () => work())).rejects.toThrow('stop');
      expect([statSync(fixture.file).ino, beside()]).toEqual([ino, ['events.duckdb']]);
      expect(await keys()).toEqual(['a', 'b']);
    },
  );

  it('is followed by a purge that replaces the copies for readers as well', async () => {
    const copy = join(fixture.dir, 'copy.duckdb');
    const sink = await openDuckDbSink(options());
    await sink.commit([day(1, 'a', 'b')], fixture.signal);
    await sink.publish(copy);
    await sink.close();
    const all = { ...options(), spoolDir: fixture.dir, env: () => undefined, onFound: async () => undefined };
    const people = await duckdb.people();
    expect(await people.tryPurge(fixture.file, removal, all)).toMatchObject({ foreignTables: [] });
    expect(await keys(copy)).toEqual(['a', 'b']);
    expect(await people.purge(fixture.file, removal, all)).toMatchObject({
      rows: 1,
      rowsRemoved: 1,
      files: [fixture.file],
    });
    for (const file of [fixture.file, copy]) {
      expect(await keys(file), file).toEqual(['b']);
      expect(readFileSync(file).includes('u-a'), file).toBe(false);
    }
  });
});
