import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeEach, describe, expect, it } from 'vitest';
import { engineError, isDamagedBlock } from '../../../src/engine/session/engine-errors.ts';
import { expectMode } from '../../support/modes.ts';
import { pastedRows } from '../../support/targets/csv.ts';
import { Place } from '../../support/targets/place.ts';

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;
const RUN = { began: 'x', ended: 'y', exitCode: 3, cause: 'why', version: '1', rows: 0, days: 0, exports: 1, bytes: 5 };
const MANY = Array.from({ length: 20_000 }, (_, i) => ({ id: `${i}`, a: `${Math.sin(i)}`, b: `${Math.cos(i)}` }));

describe('a DuckDB file', () => {
  let place: Place;
  beforeEach(() => {
    place = new Place('duckdb');
  });

  it('has comments on tables and the columns of the program, and nothing but what is documented', async () => {
    await place.load([[place.of(D1, [{ id: 'a', note: 'x' }])]]);
    await place.load([[place.of(D2, [{ id: 'b', more: 'x' }])]]);
    const tables = await place.read(
      'SELECT table_name AS name, comment FROM duckdb_tables() WHERE NOT internal ORDER BY 1',
    );
    const ours = ['changes', 'columns', 'days', 'runs', 'state'].map((name) => `_dfinery_${name}`);
    expect(tables.map(({ name }) => name)).toEqual([...ours, 'events']);
    const columns = await place.read(
      "SELECT column_name AS name, comment FROM duckdb_columns() WHERE table_name = 'events'",
    );
    expect(columns.slice(0, 4).map(({ name }) => name)).toEqual(['_key', 'event_date', '_rescued', '_loaded_at']);
    expect([...tables, ...columns.slice(0, 4)].filter(({ comment }) => comment === null)).toEqual([]);
    expectMode(place.place, 0o600);
  });

  it('has one receipt of a day and one row of a column, also after the day came again', async () => {
    await place.load([[place.of(D1, [{ id: 'a', n: '1' }])]]);
    await place.load([[place.of(D1, [{ id: 'b', n: 'x' }])]]);
    expect(await place.read('SELECT rows_stored FROM _dfinery_days')).toEqual([{ rows_stored: '1' }]);
    const types = "SELECT type FROM _dfinery_columns WHERE source_name = 'n'";
    expect(await place.read(types)).toEqual([{ type: 'string' }]);
  });

  it('can be opened by others between two commits, and a commit waits for it', async () => {
    const sink = await place.open({ lockWaitMs: 60_000 });
    await sink.commit([place.of(D1, [{ id: 'a' }])], place.commitInfo(D1));
    const holder = await openElsewhere(place.place);
    const committing = sink.commit([place.of(D2, [{ id: 'b' }])], place.commitInfo(D1));
    holder.stdin.end();
    await committing;
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`]);
    await sink.close();
  });

  it('that stays open elsewhere ends the wait with a failure that passes (exit 3)', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const sink = await place.open();
    const holder = await openElsewhere(place.place);
    const committing = sink.commit([place.of(D2, [{ id: 'b' }])], place.commitInfo(D1));
    await expect(committing).rejects.toMatchObject({ kind: 'transient', message: expect.stringMatching('is in use') });
    holder.stdin.end();
    await once(holder, 'exit');
    expect(await place.keys()).toEqual([`${D1} a`]);
  });

  it('that stays open elsewhere ends a stopped run within seconds', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const stop = new AbortController();
    let sleptMs = 0;
    const sleep = async (ms: number) => {
      sleptMs += ms;
    };
    const sink = await place.open({ lockWaitMs: 90_000, signal: stop.signal, clock: { ...place.clock, sleep } });
    const holder = await openElsewhere(place.place);
    stop.abort();
    await expect(sink.recordRun(RUN)).rejects.toMatchObject({ message: expect.stringMatching('is in use') });
    holder.stdin.end();
    await once(holder, 'exit');
    expect(sleptMs).toBeLessThanOrEqual(2_000);
  });

  it('takes the commits of two runs of one process in turn', async () => {
    const sinks = await Promise.all([D1, D2].map(() => place.open({ lockWaitMs: 60_000 })));
    const batches = [D1, D2].map((day) => [place.of(day, [{ id: day }])]);
    await Promise.all(sinks.map((sink, i) => sink.commit(batches[i], place.commitInfo(D1))));
    expect(await place.keys()).toEqual([`${D1} ${D1}`, `${D2} ${D2}`]);
  });

  it('keeps other tables, and is refused if one of them has the name of a table of the program', async () => {
    await place.read('CREATE TABLE other AS SELECT 1 AS x');
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    expect(await place.read('SELECT x FROM other')).toEqual([{ x: 1 }]);
    place = new Place('duckdb');
    await place.read('CREATE TABLE events AS SELECT 1 AS x');
    const loading = place.load([[place.of(D1, [{ id: 'a' }])]]);
    await expect(loading).rejects.toMatchObject({ kind: 'config', message: expect.stringContaining('not ours') });
    expect(await place.read('FROM events')).toEqual([{ x: 1 }]);
  });

  it('is refused if it is no DuckDB file, of a later version, or an address', async () => {
    writeFileSync(place.place, 'a,b\n1,2\n');
    await expect(place.load([])).rejects.toMatchObject({ kind: 'config' });
    place = new Place('duckdb');
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    await place.read('UPDATE _dfinery_state SET v = 99');
    const message = expect.stringContaining('has version 99, this program knows 3: use the newer program');
    await expect(place.load([])).rejects.toMatchObject({ kind: 'config', message });
    for (const address of ['md:events', 's3:/x', 's3://x/y', 'postgres:dbname=x', 'sqlite:x.db', 'https://x']) {
      await expect(place.open({ address })).rejects.toMatchObject({ kind: 'config' });
    }
  });

  it('is refused beside the write-ahead log of a file that is gone, and the sentence says so', async () => {
    const isRefused = {
      kind: 'config',
      message: expect.stringMatching(/\.wal belongs to a file that is gone: put that/),
    };
    const [strayLog, logPath] = [join(place.dir, 'stray'), `${place.place}.wal`];
    const formerPath = join(place.dir, 'former.duckdb');
    const former = await (await DuckDBInstance.create(formerPath)).connect();
    await former.run('CREATE TABLE other (x INTEGER)');
    await former.run('CHECKPOINT');
    await former.run('INSERT INTO other VALUES (1)');
    copyFileSync(`${formerPath}.wal`, strayLog);
    former.closeSync();
    copyFileSync(strayLog, logPath);
    await expect(place.open()).rejects.toMatchObject(isRefused);
    rmSync(logPath);
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    copyFileSync(strayLog, logPath);
    await expect(place.open()).rejects.toMatchObject(isRefused);
    rmSync(logPath);
    expect(await place.keys()).toEqual([`${D1} a`]);
  });

  it('is called damaged, not replaced, if its own write-ahead log is damaged', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const copyPath = join(place.dir, 'copy.duckdb');
    copyFileSync(place.place, copyPath);
    const copy = await (await DuckDBInstance.create(copyPath)).connect();
    await copy.run('CREATE TABLE other (x INTEGER)');
    const log = readFileSync(`${copyPath}.wal`);
    copy.closeSync();
    writeFileSync(`${place.place}.wal`, log.fill(0, log.length - 20));
    const message = expect.stringContaining(`${place.place} is damaged`);
    await expect(place.open()).rejects.toMatchObject({ kind: 'config', message });
    await expect(place.verify()).rejects.toMatchObject({ kind: 'config', message });
  });

  it('names the days that it lacks, if it is older than the write-ahead log beside it', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const [olderPath, newerPath] = [join(place.dir, 'older.duckdb'), join(place.dir, 'newer.duckdb')];
    copyFileSync(place.place, olderPath);
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    copyFileSync(place.place, newerPath);
    const newer = await (await DuckDBInstance.create(newerPath)).connect();
    await newer.run("UPDATE _dfinery_state SET export_state = export_state || ' '");
    copyFileSync(olderPath, place.place);
    copyFileSync(`${newerPath}.wal`, `${place.place}.wal`);
    newer.closeSync();
    const message = expect.stringMatching(`after ${D2}, which .*--from ${D2} --to ${D2}`);
    expect((await place.verify()).differences).toEqual([{ check: 'rows', message }]);
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    expect(place.log).toContainEqual(expect.objectContaining({ level: 'warn', event: 'days.missing', message }));
    expect((await place.verify()).differences).toEqual([]);
  });

  it('keeps its time zone, though somebody dropped its profiles before its first day', async () => {
    place.timezone = 'Asia/Seoul';
    await place.loadProfiles(place.snapshot('df_unified_id\nu1\n'));
    await place.read('DROP TABLE user_profiles');
    place.timezone = 'UTC';
    await expect(place.load([[place.of(D1, [{ id: 'a' }])]])).rejects.toThrow(/^timezone is UTC, .*Asia\/Seoul/);
  });

  it('that cannot be written is named before anything is downloaded', async () => {
    for (const name of [join('missing', 'x.duckdb'), 'x'.repeat(256)]) {
      await expect(place.open({ address: join(place.dir, name) })).rejects.toMatchObject({ kind: 'config' });
    }
    symlinkSync(join(place.dir, 'x.duckdb'), place.place);
    const message = expect.stringContaining('a link to a file that is not there');
    await expect(place.load([[place.of(D1, [{ id: 'a' }])]])).rejects.toMatchObject({ kind: 'config', message });
    rmSync(place.place);
    if (process.getuid?.() === 0) return;
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    chmodSync(place.place, 0o400);
    await expect(place.load([])).rejects.toMatchObject({ kind: 'config' });
    chmodSync(place.place, 0o600);
    chmodSync(dirname(place.place), 0o500);
    await expect(place.load([])).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/^The folder of .* cannot be written \(EACCES\)/),
    });
    chmodSync(dirname(place.place), 0o700);
  });

  it('keeps a column and an index of its user, also when a small table gets new columns', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    await place.read('ALTER TABLE events ADD COLUMN mine INTEGER DEFAULT 7');
    await place.read('CREATE INDEX by_key ON events (_key)');
    await place.load([[place.of(D2, [{ id: 'b', fresh: 'x' }])]]);
    expect(await place.read('SELECT _key, mine, fresh FROM events ORDER BY 1')).toEqual([
      { _key: 'a', mine: 7, fresh: null },
      { _key: 'b', mine: 7, fresh: 'x' },
    ]);
    expect(await place.read('SELECT index_name AS name FROM duckdb_indexes()')).toEqual([{ name: 'by_key' }]);
  });

  it('whose table another program changed takes no day, with a sentence that says so', async () => {
    await place.load([[place.of(D1, [{ id: 'a', note: 'x' }])]]);
    await place.read('ALTER TABLE events DROP COLUMN note');
    const loading = place.load([[place.of(D2, [{ id: 'b', note: 'y' }])]]);
    await expect(loading).rejects.toThrow('another program');
    expect(await place.verify()).toMatchObject({ differences: [{ check: 'columns' }] });
  });

  it('takes no day whose download was removed, and the sentence names spool_dir', async () => {
    const day = place.of(D1, [{ id: 'a' }]);
    rmSync(day.files[0].path);
    await expect(place.load([[day]])).rejects.toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(/is gone \(.*\.csv.*\): .* set spool_dir to a folder that nothing cleans/),
    });
  });

  it('whose table has a unique index of a user takes no day, with a sentence without the cell', async () => {
    await place.load([[place.of(D1, [{ id: 'a', phone: '010-9999-0000' }])]]);
    await place.read('CREATE UNIQUE INDEX by_phone ON events (phone)');
    const loading = place.load([[place.of(D2, [{ id: 'b', phone: '010-9999-0000' }])]]);
    await expect(loading).rejects.toThrow(/another program changed the table events.*\(Constraint Error\)/);
  });

  it.each([
    'Conversion Error: Could not convert string "quota exceeded" to INT64',
    'Conversion Error: Could not convert string "Input/output error 010-9" to INT64',
    'Invalid Input Error: Malformed JSON "x too small to be a Parquet file"',
    'TransactionContext Error: Failed to commit: Duplicate key "phone: fsync failed! 010-9"',
    'TransactionContext Error: Failed to commit: PRIMARY KEY or UNIQUE constraint violation: duplicate key "fsync failed!"',
  ])('fails with a sentence that no cell chooses, and that quotes none: %s', (text) => {
    const { kind, message, detail } = engineError(new Error(text), 'x.duckdb');
    const errorClass = text.split(':', 1)[0];
    expect([kind, message]).toEqual(['system', expect.stringContaining(`on x.duckdb (${errorClass})`)]);
    expect(detail).toBe(errorClass);
  });

  it('is called full for the words of each class of errors that quotes no cell, and of no other', () => {
    const ofFiles = ['FATAL', 'INTERNAL', 'IO', 'Out of Memory', 'Permission', 'Serialization', 'TransactionContext'];
    const others = ['Binder', 'Catalog', 'Constraint', 'Conversion', 'Invalid Input', 'Mismatch Type', 'Out of Range'];
    const kinds = [...ofFiles, ...others].map((name) => {
      return engineError(new Error(`${name} Error: No space left on device`), 'x.duckdb').kind;
    });
    expect(kinds).toEqual([...ofFiles.map(() => 'transient'), ...others.map(() => 'system')]);
  });

  it('does not call a download gone that is there and cannot be opened', () => {
    const text = 'IO Error: Cannot open file "/tmp/dfinery-spool-abcdef/x.csv": Too many open files';
    expect(engineError(new Error(text), 'x.duckdb').message).toContain('Too many open files');
  });

  it('whose path has a word of another failure is not called damaged', () => {
    const text = 'IO Error: Cannot open file "/lake/checksum.duckdb": Permission denied';
    expect(engineError(new Error(text), 'x.duckdb').message).toContain('cannot be opened or written');
  });

  it('on a disk that fails is not called damaged', () => {
    expect(isDamagedBlock(new Error('IO Error: Could not read from file "x": Input/output error'))).toBe(false);
    expect(isDamagedBlock(new Error('IO Error: Could not write file "x": No space left on device'))).toBe(false);
    expect(isDamagedBlock(new Error('IO Error: Corrupt database file: computed checksum 1'))).toBe(true);
  });

  it('does not reach other files by views that others left in it', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const secret = join(place.dir, 'secret.csv');
    writeFileSync(secret, 'x\n1\n');
    await place.read(`CREATE OR REPLACE VIEW event_logs AS SELECT * FROM read_csv('${secret}')`);
    await expect(place.verify()).resolves.toMatchObject({ differences: [] });
    await place.read(`DROP TABLE events; CREATE VIEW events AS SELECT * FROM read_csv('${secret}')`);
    await expect(place.verify()).rejects.toThrow(/secret.*file system operations are disabled/);
  });

  it.each(['text', '5', '2026.1.2 3:04', '[1]'])(
    'takes rows with %s around some that DuckDB misreads',
    async (cell) => {
      const day = place.ofCsv(D1, [pastedRows(cell)]);
      const [commit] = await place.load([[day]]);
      expect(commit.rowsWritten).toBe(day.receipt.rows);
      expect((await place.verify()).differences).toEqual([]);
    },
  );

  it('gives back the space of removed rows', async () => {
    await place.load([[place.of(D1, MANY)], [place.of(D2, [{ id: 'b' }])]]);
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const { bytesBefore, bytesAfter, rows } = await place.compact();
    expect([bytesAfter < bytesBefore, rows]).toEqual([true, 2]);
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
    const [{ comments }] = await place.read(
      "SELECT count(comment)::INTEGER AS comments FROM duckdb_columns() WHERE table_name = 'events'",
    );
    expect(comments).toBe(4);
  });

  it('says of a purge how large the file was before it', async () => {
    const rows = MANY.map((row) => ({ ...row, member: 'm1', df_unified_id: 'u1' }));
    await place.load([[place.of(D1, rows)]]);
    const { size } = statSync(place.place);
    expect(await place.purge(['m1'])).toMatchObject({ rowsRemoved: rows.length, bytesBefore: size });
  });

  it('is told by verify of rows without a key', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }, { id: 'b' }, { id: 'c' }])]]);
    await place.read("UPDATE events SET _key = NULL WHERE _key <> 'a'");
    const differences = [{ check: 'keys', message: '2 rows have no _key in events' }];
    expect(await place.verify()).toEqual({ differences, warnings: [] });
  });

  it('that is damaged in any block is named by verify', async () => {
    await place.load([[place.of(D1, MANY)]]);
    const whole = readFileSync(place.place);
    const block = 262_144;
    const answers: string[] = [];
    for (let at = 3 * 4096 + block / 2; at < whole.length; at += block) {
      const damaged = Buffer.from(whole);
      damaged[at] ^= 1;
      writeFileSync(place.place, damaged);
      answers.push(
        await place.verify().then(
          ({ differences }) => differences.map(({ message }) => message).join(),
          ({ message }) => message,
        ),
      );
    }
    // One block lists the tables, and a free one may be left at the end.
    const named = answers.filter((answer) => /^the table \w+ cannot be read: its blocks are damaged$/.test(answer));
    expect(named.length).toBeGreaterThanOrEqual(answers.length - 2);
    expect(named.length).toBeGreaterThan(4);
    writeFileSync(place.place, whole);
    truncateSync(place.place, whole.length - block);
    expect((await place.verify()).differences).toMatchObject([{ check: 'files' }]);
    // A copy that was cut early has no tables.
    truncateSync(place.place, block);
    await expect(place.verify()).rejects.toThrow(`${place.place} is damaged, or is not a database`);
  });
});

/** A process that has the file open until its stdin ends. */
async function openElsewhere(file: string) {
  const script = `
    import { DuckDBInstance } from '@duckdb/node-api';
    const instance = await DuckDBInstance.create(process.argv[1]);
    console.log('open');
    process.stdin.resume().on('end', () => { instance.closeSync(); process.exit(); });`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script, file]);
  const [said] = await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')]);
  expect(String(said)).toBe('open\n');
  return holder;
}
