import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Engine } from '../../../src/engine/session/engine.ts';
import { temporaryPathOf } from '../../../src/fs/atomic-file.ts';
import { LockFile } from '../../../src/fs/lock.ts';
import { republish } from '../../../src/targets/copies/republish.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { purgeDuckDb, rewriteDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { openDuckDbSink } from '../../../src/targets/duckdb/sink.ts';
import { COPIED } from '../../../src/targets/duckdb/store.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const options = () => ({ file: fixture.file, lockWaitMs: 0, clock: systemClock });

/** A text that does not compress. */
const textOf = (i: number) => createHash('sha256').update(`${i}`).digest('hex');

describe('compact', () => {
  it('frees space and changes no row', async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => ({ id: `e${i}`, memo: textOf(i) }));
    for (const day of ['1', '2', '3']) await fixture.load([fixture.window(`2026-01-0${day}`, csvOf(rows))]);
    await query(fixture.file, 'CREATE TABLE mine AS SELECT 42 AS x');
    // How much of the file the replaced rows leave unused differs from run to run.
    await query(fixture.file, 'CREATE TABLE dropped AS SELECT sha256(i::VARCHAR) AS x FROM range(100_000) AS r(i)');
    await fixture.load([fixture.window('2026-01-04', csvOf(rows))]);
    await query(fixture.file, 'DROP TABLE dropped');
    const sum =
      'SELECT count(*) AS n, sum(hash(_key, memo))::VARCHAR AS h, (SELECT count(*) FROM event_logs) AS l FROM events';
    const before = await fixture.query(sum);
    const done = await rewriteDuckDb(options());
    expect(done).toMatchObject({ rows: 20_000, rowsRemoved: 0 });
    expect(done.bytesAfter).toBeLessThan(done.bytesBefore);
    expect(await fixture.query(sum)).toEqual(before);
    expect(await fixture.query('SELECT x FROM mine')).toEqual([{ x: 42 }]);
    expect(await verifyDuckDb(options())).toEqual([]);
    expect(statSync(fixture.file).mode & 0o777).toBe(0o600);
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'))).toEqual(['events.duckdb']);
    const again = fixture.window('2026-01-03', csvOf(rows.slice(0, 10)));
    await fixture.load([again]);
    expect(await verifyDuckDb(options())).toEqual([]);
  });

  it('refuses a missing or foreign file', async () => {
    await expect(rewriteDuckDb(options())).rejects.toMatchObject({ exitCode: 2 });
    await query(fixture.file, 'CREATE TABLE t AS SELECT 1 AS x');
    await expect(rewriteDuckDb(options())).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe('a rewrite', () => {
  it('leaves out people, so that no byte of them remains', async () => {
    const rows = Array.from({ length: 3_000 }, (_, i) => ({
      id: `e${i}`,
      df_unified_id: `person-${i % 100}-unified`,
      memo: 'm',
    }));
    await fixture.load([
      fixture.window('2026-01-01', csvOf(rows)),
      fixture.window('2026-01-02', csvOf(rows.slice(0, 500))),
    ]);
    const removal = { column: 'df_unified_id', ids: ['person-7-unified', "o'hara", 'person-8-unified'] };
    const done = await purgeDuckDb(options(), removal);
    expect(done).toMatchObject({ rows: 2_940, rowsRemoved: 60 });
    expect(await verifyDuckDb(options())).toEqual([]);
    expect(await fixture.query('SELECT rows_live FROM _dfinery_windows ORDER BY number')).toEqual([
      { rows_live: '2450' },
      { rows_live: '490' },
    ]);
    for (const name of readdirSync(fixture.dir).filter((file) => file.startsWith('events.duckdb'))) {
      expect(readFileSync(join(fixture.dir, name)).includes('person-7-unified'), name).toBe(false);
    }
  });

  it('leaves out people that a killed writer left in the write-ahead log, and removes the log', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    const sink = await fixture.open();
    const rows = [{ id: 'b', df_unified_id: 'person-7-unified' }, { id: 'c' }];
    await sink.commit([fixture.window('2026-01-02', csvOf(rows))], fixture.signal);
    // What a kill at this moment would leave.
    const file = join(fixture.dir, 'left.duckdb');
    for (const end of ['', '.wal']) copyFileSync(`${fixture.file}${end}`, `${file}${end}`);
    await sink.close();
    expect(readFileSync(`${file}.wal`).includes('person-7-unified')).toBe(true);
    const removal = { column: 'df_unified_id', ids: ['person-7-unified'] };
    expect(await purgeDuckDb({ ...options(), file }, removal)).toMatchObject({ rows: 2, rowsRemoved: 1 });
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('left.duckdb'))).toEqual(['left.duckdb']);
    expect(readFileSync(file).includes('person-7-unified')).toBe(false);
    expect(await query(file, 'SELECT _key FROM events ORDER BY 1')).toEqual([{ _key: 'a' }, { _key: 'c' }]);
    expect(await verifyDuckDb({ ...options(), file })).toEqual([]);
  });

  it('removes the log of a transaction that a killed writer had only begun to write, which no opening replays', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    const file = join(fixture.dir, 'left.duckdb');
    copyFileSync(fixture.file, file);
    const sink = await fixture.open();
    const rows = [{ id: 'b', df_unified_id: 'person-7-unified' }];
    await sink.commit([fixture.window('2026-01-02', csvOf(rows))], fixture.signal);
    const log = readFileSync(`${fixture.file}.wal`);
    await sink.close();
    const cut = log.subarray(0, log.indexOf('person-7-unified') + 40);
    const names = () => readdirSync(fixture.dir).filter((name) => name.startsWith('left.duckdb'));
    writeFileSync(`${file}.wal`, cut);
    expect(await rewriteDuckDb({ ...options(), file })).toMatchObject({ rows: 1 });
    expect(names()).toEqual(['left.duckdb']);
    writeFileSync(`${file}.wal`, cut);
    const removal = { column: 'df_unified_id', ids: ['person-7-unified'] };
    expect(await purgeDuckDb({ ...options(), file }, removal)).toMatchObject({ rows: 1, rowsRemoved: 0 });
    expect(names()).toEqual(['left.duckdb']);
    expect(await verifyDuckDb({ ...options(), file })).toEqual([]);
  });

  it('is refused, and nothing changes, when another program writes to the file before it is locked', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    const before = readFileSync(fixture.file);
    const close = Engine.prototype.close;
    vi.spyOn(Engine.prototype, 'close').mockImplementationOnce(async function (this: Engine) {
      await close.call(this);
      writeFileSync(`${fixture.file}.wal`, '');
    });
    await expect(rewriteDuckDb(options())).rejects.toMatchObject({
      exitCode: 3,
      message: `Another program has just written to ${fixture.file}: run again.`,
    });
    expect(readFileSync(fixture.file).equals(before)).toBe(true);
    expect(await rewriteDuckDb(options())).toMatchObject({ rows: 1 });
  });

  it('changes nothing once another run has taken over its lock, as from a process that stood still', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_unified_id: 'person-7' }]))]);
    const before = readFileSync(fixture.file);
    const removal = { column: 'df_unified_id', ids: ['person-7'] };
    const takeLock = async () => {
      writeFileSync(`${fixture.file}.rewriting.lock`, ownerText());
      return undefined;
    };
    await expect(purgeDuckDb({ ...options(), onFound: takeLock }, removal)).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('Another run has taken over the file'),
    });
    expect(readFileSync(fixture.file).equals(before)).toBe(true);
    rmSync(`${fixture.file}.rewriting.lock`);
    expect(await purgeDuckDb(options(), removal)).toMatchObject({ rows: 0, rowsRemoved: 1 });
  });

  it('leaves out people after a writer was killed right after renaming the new file', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_unified_id: 'person-7' }]))]);
    linkSync(fixture.file, temporaryPathOf(fixture.file));
    const removal = { column: 'df_unified_id', ids: ['person-7'] };
    expect(await purgeDuckDb(options(), removal)).toMatchObject({ rows: 0, rowsRemoved: 1 });
    expect(readdirSync(fixture.dir).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('removes the complete copy of a run that died moments ago while changing the block size', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_unified_id: 'person-7' }]))]);
    copyFileSync(fixture.file, temporaryPathOf(fixture.file));
    await purgeDuckDb(options(), { column: 'df_unified_id', ids: ['person-7'] });
    expect(readdirSync(fixture.dir).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('beside others of the same file waits for them, and the copies for readers stay those of the database', async () => {
    const copy = join(fixture.dir, 'copy.duckdb');
    const sink = await openDuckDbSink({ ...fixture.targetOptions, file: fixture.file });
    const rows = Array.from({ length: 2_000 }, (_, i) => ({ id: `e${i}`, df_unified_id: `person-${i % 100}-unified` }));
    await sink.commit([fixture.window('2026-01-01', csvOf(rows))], fixture.signal);
    await sink.publish(copy);
    await sink.close();
    const patient = { ...options(), lockWaitMs: 60_000 };
    const removal = { column: 'df_unified_id', ids: ['person-7-unified'] };
    const all = [rewriteDuckDb(patient), purgeDuckDb(patient, removal), rewriteDuckDb(patient)] as const;
    expect((await Promise.all(all))[1]).toMatchObject({ rows: 1_980, rowsRemoved: 20 });
    expect(await verifyDuckDb(options())).toEqual([]);
    expect(await republish(COPIED, { ...fixture.targetOptions, file: fixture.file })).toEqual([]);
    for (const name of readdirSync(fixture.dir).filter((file) => file.endsWith('.duckdb'))) {
      expect(readFileSync(join(fixture.dir, name)).includes('person-7-unified'), name).toBe(false);
    }
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'))).toEqual(['events.duckdb']);
  });

  it('is refused while another process rewrites the file, and goes on where that died', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    const path = `${fixture.file}.rewriting.lock`;
    const other = LockFile.tryAcquire(path, { what: 'it', clock: systemClock });
    await expect(rewriteDuckDb(options())).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/^The file .*events\.duckdb is in use by process \d+/),
    });
    other?.release();
    writeFileSync(path, '');
    utimesSync(path, 0, 0);
    await rewriteDuckDb(options());
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'))).toEqual(['events.duckdb']);
  });

  it('leaves the file unchanged when it is stopped', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    await expect(rewriteDuckDb({ ...options(), signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow('stop');
    expect(await verifyDuckDb(options())).toEqual([]);
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'))).toEqual(['events.duckdb']);
  });
});

describe('a DuckDB file with other names', () => {
  const link = () => join(fixture.dir, 'link.duckdb');

  it('is rewritten at the target of a symbolic link, which stays a link', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', df_unified_id: 'somebody-1' }, { id: 'b' }]))]);
    chmodSync(fixture.file, 0o640);
    symlinkSync(fixture.file, link());
    const removal = { column: 'df_unified_id', ids: ['somebody-1'] };
    expect(await purgeDuckDb({ ...options(), file: link() }, removal)).toMatchObject({ rows: 1, rowsRemoved: 1 });
    expect(lstatSync(link()).isSymbolicLink()).toBe(true);
    expect(readFileSync(fixture.file).includes('somebody-1')).toBe(false);
    expect(statSync(fixture.file).mode & 0o777).toBe(0o640);
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('link'))).toEqual(['link.duckdb']);
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'c' }]))], { file: link() });
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '2' }]);
  });

  it('is refused while a second hard link would keep the old contents', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    linkSync(fixture.file, link());
    const before = readFileSync(fixture.file);
    await expect(rewriteDuckDb(options())).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/hard link/),
    });
    expect(readFileSync(fixture.file).equals(before)).toBe(true);
  });

  it.runIf(process.getuid?.() === 0)('keeps its owner and its group', async () => {
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    const { uid, gid } = statSync(fixture.file);
    for (const owner of [
      [12_345, gid],
      [uid, 12_345],
      [12_345, 12_346],
    ]) {
      chownSync(fixture.file, owner[0], owner[1]);
      await rewriteDuckDb(options());
      expect([statSync(fixture.file).uid, statSync(fixture.file).gid]).toEqual(owner);
    }
  });
});

describe('a copy for readers during a purge', () => {
  it('does not exist before the database knows it, so that a purge finds it', async () => {
    const copy = join(fixture.dir, 'copy.duckdb');
    const sink = await openDuckDbSink({ ...fixture.targetOptions, file: fixture.file });
    await sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))], fixture.signal);
    const { append } = Engine.prototype;
    const failing = vi.spyOn(Engine.prototype, 'append').mockImplementation(function (this: Engine, table, rows) {
      if (table === '_dfinery_copies') return Promise.reject(new Error('IO Error: no answer of the disk'));
      return append.call(this, table, rows);
    });
    try {
      await expect(sink.publish(copy)).rejects.toThrow();
    } finally {
      failing.mockRestore();
    }
    expect(existsSync(copy)).toBe(false);
    await sink.publish(copy);
    await sink.close();
    expect(await fixture.query('SELECT path FROM _dfinery_copies')).toEqual([{ path: copy }]);
    expect(await query(copy, 'SELECT _key FROM events')).toEqual([{ _key: 'a' }]);
  });

  it('that is missing is named, since it may hold the people elsewhere', async () => {
    const [copy, moved] = ['copy', 'moved'].map((name) => join(fixture.dir, `${name}.duckdb`));
    const sink = await openDuckDbSink({ ...fixture.targetOptions, file: fixture.file });
    await sink.commit([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))], fixture.signal);
    for (const path of [copy, moved]) await sink.publish(path);
    await sink.close();
    rmSync(moved);
    // What a run that was killed while it published has left.
    const left = join(fixture.dir, '.moved.duckdb.publishing');
    copyFileSync(copy, left);
    const again = (...forgetCopies: string[]) =>
      republish(COPIED, { ...fixture.targetOptions, file: fixture.file, forgetCopies });
    for (let i = 0; i < 2; i++) {
      expect(await again()).toEqual([expect.stringMatching(new RegExp(`${moved} is not there.*--forget-copy FILE`))]);
      expect(await fixture.query('SELECT path FROM _dfinery_copies ORDER BY 1')).toHaveLength(2);
    }
    expect(await again(copy)).toEqual([expect.stringContaining(moved)]);
    copyFileSync(copy, left);
    expect(await again(moved)).toEqual([]);
    expect(await fixture.query('SELECT path FROM _dfinery_copies')).toEqual([{ path: copy }]);
    expect(existsSync(left)).toBe(false);
  });
});
