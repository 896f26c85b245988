import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { writeModels } from '../../../src/targets/duckdb/models/write.ts';
import { peopleInDuckDb, reportDuckDb, verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { rewriteDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { attachElsewhere, query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const fails = (exitCode: number, message: RegExp) => ({ exitCode, message: expect.stringMatching(message) });

describe('opening a DuckDB file', () => {
  it('creates it with mode 0600, in a pinned storage version, without any extension', async () => {
    await (await fixture.open()).close();
    expect(statSync(fixture.file).mode & 0o777).toBe(0o600);
    const [{ tags }] = await fixture.query(
      "SELECT tags['storage_version'] AS tags FROM duckdb_databases() WHERE NOT internal",
    );
    expect(tags).toBe('v1.2.0+');
    expect(existsSync(`${fixture.file}.wal`)).toBe(false);
  });

  it('waits for the sink of this process that has it open, which keeps its lock', async () => {
    const first = await fixture.open();
    const inUse = fails(3, /is in use: this process has it open/);
    await expect(fixture.open()).rejects.toMatchObject(inUse);
    linkSync(fixture.file, `${fixture.file}.link`);
    await expect(fixture.open({ file: `${fixture.file}.link` })).rejects.toMatchObject(inUse);
    await expect(verifyDuckDb({ ...fixture.targetOptions, file: fixture.file })).rejects.toMatchObject(inUse);
    expect(attachElsewhere(fixture.file)).toContain('Could not set lock on file');
    const second = fixture.open({ lockWaitMs: 10_000 });
    await fixture.commitAll(first, [fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    await fixture.commitAll(await second, [fixture.window('2026-01-02', csvOf([{ id: 'b' }]))]);
    expect(await verifyDuckDb({ ...fixture.targetOptions, file: fixture.file })).toEqual([]);
    expect(attachElsewhere(fixture.file)).toBe('');
  });

  it('refuses a file that is not a database, and leaves it unchanged', async () => {
    writeFileSync(fixture.file, 'hello '.repeat(10_000));
    await expect(fixture.open()).rejects.toMatchObject(fails(2, /is not a database/));
    expect(readFileSync(fixture.file, 'utf8')).toMatch(/^hello/);
  });

  it('refuses a file of data that DuckDB could read as a view, and leaves it unchanged', async () => {
    for (const [name, text] of [
      ['rows.csv', 'a,b\n1,2\n'],
      ['rows.json', '{"a": 1}\n'],
    ]) {
      const file = join(dirname(fixture.file), name);
      writeFileSync(file, text);
      await expect(fixture.open({ file })).rejects.toMatchObject(fails(2, /is not a database/));
      expect(readFileSync(file, 'utf8')).toBe(text);
    }
  });

  it('refuses a path whose log DuckDB would write elsewhere', async () => {
    const file = join(dirname(fixture.file), 'a?b.duckdb');
    await expect(fixture.open({ file })).rejects.toMatchObject(fails(2, /has a "\?" in its path/));
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, 'as it was');
    const rewritten = rewriteDuckDb({ file, lockWaitMs: 0, clock: systemClock });
    await expect(rewritten).rejects.toMatchObject(fails(2, /has a "\?" in its path/));
    expect(readFileSync(file, 'utf8')).toBe('as it was');
  });

  /** DuckDB's checksum of the first header of a file. */
  function checksumOf(header: Buffer): bigint {
    let sum = 5381n;
    for (let at = 8; at < 4_096; at += 8) sum ^= BigInt.asUintN(64, header.readBigUInt64LE(at) * 0xbf58476d1ce4e5b9n);
    return sum;
  }

  it('names a file of a newer DuckDB, and how to write one that can be read', async () => {
    await query(':memory:', `ATTACH '${fixture.file}' AS newest (STORAGE_VERSION 'latest'); DETACH newest`);
    const header = readFileSync(fixture.file);
    header.writeBigUInt64LE(header.readBigUInt64LE(12) + 1n, 12);
    header.writeBigUInt64LE(checksumOf(header), 0);
    writeFileSync(fixture.file, header);
    await expect(fixture.open()).rejects.toMatchObject(fails(2, /newer version of DuckDB.*STORAGE_VERSION/));
    expect(readFileSync(fixture.file).equals(header)).toBe(true);
  });

  it.each(['TABLE events AS SELECT 1 AS x', 'VIEW event_items AS SELECT 1 AS x'])(
    'refuses a foreign %s',
    async (what) => {
      await query(fixture.file, `CREATE ${what}`);
      const before = readFileSync(fixture.file);
      await expect(fixture.open()).rejects.toMatchObject(fails(2, /that is not ours/));
      expect(readFileSync(fixture.file).equals(before)).toBe(true);
    },
  );

  it('leaves other tables of the file unchanged', async () => {
    await query(fixture.file, 'CREATE TABLE mine AS SELECT 42 AS x');
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    expect(await fixture.query('SELECT * FROM mine')).toEqual([{ x: 42 }]);
  });

  it.each(['DROP TABLE _dfinery_windows', 'DROP TABLE _dfinery_columns', 'DELETE FROM _dfinery_state'])(
    'refuses a file after %s, and names what is missing',
    async (sql) => {
      await (await fixture.open()).close();
      await query(fixture.file, sql);
      await expect(fixture.open()).rejects.toMatchObject(fails(2, new RegExp(`lacks .*${sql.split(' ')[2]}`)));
    },
  );

  it.each(['DROP COLUMN c0', 'RENAME c0 TO mine'])(
    'names the columns that %s took from a table, to a load, models and report; verify goes on',
    async (change) => {
      await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', c0: '1' }]))]);
      await query(fixture.file, `ALTER TABLE events ${change}`);
      const options = { file: fixture.file, lockWaitMs: 0, clock: systemClock };
      const refused = fails(2, /lacks columns that were loaded \(c0\)/);
      await expect(fixture.open()).rejects.toMatchObject(refused);
      await expect(writeModels(options)).rejects.toMatchObject(refused);
      await expect(reportDuckDb(options)).rejects.toMatchObject(refused);
      expect((await verifyDuckDb(options)).length).toBeGreaterThan(0);
    },
  );

  it('names a column of its own, and one by which people are found, that somebody renamed', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_unified_id: 'erna', c0: '1' }]))]);
    const options = { ...fixture.targetOptions, file: fixture.file };
    const people = () => peopleInDuckDb(options, { column: 'df_unified_id', ids: ['erna'] });
    await query(fixture.file, 'ALTER TABLE events DROP COLUMN c0');
    expect(await people()).toMatchObject({ people: 1 });
    await query(fixture.file, 'ALTER TABLE events RENAME df_unified_id TO person');
    await expect(people()).rejects.toMatchObject(fails(2, /lacks columns that were loaded \(df_unified_id\)/));
    await query(fixture.file, 'ALTER TABLE events RENAME _rescued TO mine');
    await expect(reportDuckDb(options)).rejects.toMatchObject(fails(2, /\(_rescued, /));
  });

  it.each([
    ['a later', 3],
    ['an earlier', 1],
  ])('refuses %s version', async (which, version) => {
    await (await fixture.open()).close();
    await query(fixture.file, `UPDATE _dfinery_state SET v = ${version}`);
    await expect(fixture.open()).rejects.toMatchObject(fails(2, new RegExp(`${which} version \\(${version}\\)`)));
  });

  it('refuses a missing folder, and a folder in place of the file', async () => {
    await expect(fixture.open({ file: join(fixture.dir, 'no', 'x.duckdb') })).rejects.toMatchObject(
      fails(2, /cannot be opened/),
    );
    mkdirSync(fixture.file);
    await expect(fixture.open()).rejects.toMatchObject(fails(2, /cannot be/));
  });

  it('refuses an invalid memory limit', async () => {
    await expect(fixture.open({ memoryLimit: 'lots' })).rejects.toMatchObject(fails(2, /memory_limit/));
  });

  it('removes the leftovers of dead runs', async () => {
    await (await fixture.open()).close();
    mkdirSync(`${fixture.file}.tmp`);
    writeFileSync(`${fixture.file}.tmp/duckdb_temp_storage_DEFAULT-0.tmp`, 'secret');
    writeFileSync(`${fixture.file}.rewriting`, 'secret');
    await (await fixture.open()).close();
    expect(existsSync(`${fixture.file}.tmp`)).toBe(false);
    expect(existsSync(`${fixture.file}.rewriting`)).toBe(false);
  });

  it('creates event_logs and event_items before any window', async () => {
    await (await fixture.open()).close();
    expect(await fixture.query('SELECT count(*) AS n FROM event_logs')).toEqual([{ n: '0' }]);
    expect((await fixture.query('DESCRIBE event_items')).map(({ column_name }) => column_name)).toContain(
      'item_position',
    );
  });
});

describe('a locked file', () => {
  const HOLD = `
    const { DuckDBInstance } = require('@duckdb/node-api');
    DuckDBInstance.create(process.argv[1]).then((db) => { globalThis.db = db; process.stdout.write('held'); process.stdin.resume(); });
  `;
  const hold = async (file: string) => {
    const holder = spawn(process.execPath, ['-e', HOLD, file], { stdio: ['pipe', 'pipe', 'inherit'] });
    const exit = once(holder, 'exit');
    await Promise.race([once(holder.stdout, 'data'), exit]);
    const free = () => {
      holder.stdin.end();
      return exit;
    };
    return { pid: holder.pid, free };
  };

  it('is waited for, then reported with its owner', async () => {
    await (await fixture.open()).close();
    const holder = await hold(fixture.file);
    let now = 0;
    const waited: number[] = [];
    const sleep = async (ms: number) => {
      now += ms;
      waited.push(ms);
    };
    const clock = { now: () => now, sleep, after: () => () => {} };
    await expect(fixture.open({ clock, lockWaitMs: 30_000 })).rejects.toMatchObject(
      fails(3, new RegExp(`PID ${holder.pid}`)),
    );
    expect(now).toBe(30_000);
    const freeing = { ...clock, sleep: async () => void (await holder.free()) };
    await (await fixture.open({ clock: freeing, lockWaitMs: 60_000 })).close();
    expect(waited.slice(0, 7)).toEqual([50, 100, 200, 400, 800, 1_000, 1_000]);
    expect([Math.max(...waited), waited.at(-1)]).toEqual([1_000, 450]);
  });
});

describe('a user’s index', () => {
  it('that blocks a change is named', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', x: '1' }]))]);
    await query(fixture.file, 'CREATE INDEX mine ON events (x)');
    const widening = fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'b', x: 'text' }]))]);
    await expect(widening).rejects.toMatchObject(fails(2, /index.*mine/));
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'b', x: '2' }]))]);
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '2' }]);
  });
});
