import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Engine, EngineOptions } from '../../../src/engine/session/engine.ts';
import { engineError, isOutOfMemory, isRefusedByIndex } from '../../../src/engine/session/faults.ts';
import { openEngine } from '../../../src/engine/session/open.ts';
import { temporaryPathOf } from '../../../src/fs/atomic-file.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const open = (options: Partial<EngineOptions> = {}) =>
  openEngine({ file: fixture.file, lockWaitMs: 0, clock: fixture.targetOptions.clock, ...options });

async function using<T>(work: (engine: Engine) => Promise<T>, options: Partial<EngineOptions> = {}): Promise<T> {
  const engine = await open(options);
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

const others = () => readdirSync(fixture.dir).filter((name) => name !== basename(fixture.file));

describe('a DuckDB file that is replaced while it is opened', () => {
  it('is opened as it is then, within the time to wait; else the failure is a passing one', async () => {
    await using(async (engine) => void (await engine.run('CREATE TABLE t AS SELECT 1 AS n')));
    const run = DuckDBConnection.prototype.run;
    const replaceAfterOpening = () => {
      const spy = vi.spyOn(DuckDBConnection.prototype, 'run');
      spy.mockImplementation(async function (this: DuckDBConnection, sql) {
        const result = await run.call(this, sql);
        if (sql.startsWith('ATTACH')) {
          spy.mockRestore();
          copyFileSync(fixture.file, `${fixture.file}.new`);
          renameSync(`${fixture.file}.new`, fixture.file);
        }
        return result;
      });
    };
    replaceAfterOpening();
    await expect(open()).rejects.toMatchObject({ exitCode: 3, message: expect.stringContaining('was replaced') });
    replaceAfterOpening();
    await using(async (engine) => void (await engine.run('INSERT INTO t VALUES (2)')), { lockWaitMs: 5_000 });
    expect(await fixture.query('SELECT n FROM t ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }]);
  });
});

describe('leftovers of dead runs beside a DuckDB file', () => {
  it('are removed when the file is opened for writing: blocks, a rewritten copy and its log', async () => {
    await using(async () => {});
    const spilled = `${fixture.file}.tmp`;
    mkdirSync(spilled);
    for (const name of ['duckdb_temp_block-1.block', 'duckdb_temp_storage_DEFAULT-0.tmp', 'mine.txt'])
      writeFileSync(join(spilled, name), 'x');
    const spilledByReader = `${spilled}-0123456789ab`;
    mkdirSync(spilledByReader);
    writeFileSync(join(spilledByReader, 'duckdb_temp_storage_DEFAULT-0.tmp'), 'x');
    for (const end of ['.rewriting', '.rewriting.wal', '.mine']) writeFileSync(`${fixture.file}${end}`, 'x');
    const now = Date.now() / 1_000;
    const [old, young] = [temporaryPathOf(fixture.file), temporaryPathOf(fixture.file)];
    for (const [path, hours] of [
      [old, 2],
      [young, 0.5],
    ] as const) {
      writeFileSync(path, 'x');
      utimesSync(path, now - hours * 3_600, now - hours * 3_600);
    }
    const before = others().sort();
    await using(async () => {}, { readOnly: true });
    expect(others().sort()).toEqual(before);
    await using(async () => {});
    expect(others().sort()).toEqual([basename(young), 'events.duckdb.mine', 'events.duckdb.tmp'].sort());
    expect(readdirSync(spilled)).toEqual(['mine.txt']);
  });

  it('do not include an empty folder of blocks', async () => {
    await using(async () => {});
    mkdirSync(`${fixture.file}.tmp`);
    await using(async () => {});
    expect(others()).toEqual([]);
  });
});

describe('a DuckDB file', () => {
  it('is read with a folder of its own for what is spilled, since others may read it at once', async () => {
    await using(async () => {});
    const spilling = async (engine: Engine) =>
      String((await engine.row("SELECT current_setting('temp_directory') AS t")).t);
    const [first, second] = [await using(spilling, { readOnly: true }), await using(spilling, { readOnly: true })];
    expect(first).not.toBe(second);
    for (const folder of [first, second]) expect(folder).toMatch(/events\.duckdb\.tmp-[0-9a-f]{12}$/);
  });

  it('is not created for reading', async () => {
    await expect(open({ readOnly: true })).rejects.toMatchObject({ exitCode: 2 });
    expect(existsSync(fixture.file)).toBe(false);
    expect(others()).toEqual([]);
  });

  it('is reported as new only when opening created it', async () => {
    expect(await using(async ({ isNew }) => isNew)).toBe(true);
    expect(await using(async ({ isNew }) => isNew)).toBe(false);
  });

  it('is the target of a symbolic link, and nothing is created beside the link', async () => {
    mkdirSync(join(fixture.dir, 'data'));
    mkdirSync(join(fixture.dir, 'links'));
    const [file, link] = [join(fixture.dir, 'data', 'x.duckdb'), join(fixture.dir, 'links', 'x.duckdb')];
    await using(async () => {}, { file });
    symlinkSync(file, link);
    await using(
      async (engine) => {
        expect(engine.file).toBe(file);
        await engine.run('CREATE TABLE t AS SELECT 1 AS x');
        expect(readdirSync(join(fixture.dir, 'links'))).toEqual(['x.duckdb']);
      },
      { file: link },
    );
    expect(statSync(file).size).toBeGreaterThan(0);
  });

  it('is not written by a reader', async () => {
    await using((engine) => engine.run('CREATE TABLE t AS SELECT 1 AS x'));
    await using(
      async (engine) => {
        await expect(engine.run('DELETE FROM t')).rejects.toThrow(/read-only/);
        expect(await engine.row('SELECT x FROM t')).toEqual({ x: 1 });
      },
      { readOnly: true },
    );
  });

  // No thread may set the umask of its process.
  it.runIf(isMainThread)('creates its files with mode 0600 while it is open, and restores the umask', async () => {
    const before = process.umask(0o022);
    try {
      await using(async () => expect(process.umask()).toBe(0o077));
      expect(process.umask()).toBe(0o022);
      await expect(open({ file: join(fixture.dir, 'no', 'x.duckdb') })).rejects.toMatchObject({ exitCode: 2 });
      expect(process.umask()).toBe(0o022);
    } finally {
      process.umask(before);
    }
  });

  it('is written into and released by an engine beside another, whose statements and file go on', async () => {
    const file = join(fixture.dir, 'beside');
    await using(async (engine) => {
      await engine.run('CREATE TABLE own(a INTEGER)');
      const beside = await open({ file, shared: engine });
      const row = [1, "it's", true, '2026-01-01T09:30:00.250Z', null];
      await beside.transaction(async () => {
        await beside.run('CREATE TABLE own(a BIGINT, b VARCHAR, c BOOLEAN, d TIMESTAMPTZ, e UUID)');
        await beside.append('own', [row, row]);
      });
      await expect(beside.transaction(() => beside.append('own', [row, [2]]))).rejects.toThrow('all columns');
      const running = engine.rowsOnOwnConnection('SELECT count(*) AS n FROM range(20_000_000) t(i) WHERE i % 7 = 0');
      await beside.close();
      expect(existsSync(`${file}.wal`)).toBe(false);
      expect(await engine.count('own')).toBe(0);
      expect(Number((await running)[0].n)).toBe(2_857_143);
      // A step after the attach fails.
      mkdirSync(`${file}.rewriting`);
      await expect(open({ file, shared: engine })).rejects.toThrow();
      rmdirSync(`${file}.rewriting`);
      await (await open({ file, shared: engine })).close();
    });
    await using(
      async (engine) => {
        const [first, ...others] = await engine.rows(
          "SELECT a, b, c, CAST(d AT TIME ZONE 'UTC' AS VARCHAR) AS d, e FROM own",
        );
        expect(others).toHaveLength(1);
        expect(first).toEqual({ a: 1n, b: "it's", c: true, d: '2026-01-01 09:30:00.25', e: null });
      },
      { file },
    );
  });

  it('may be closed twice', async () => {
    const engine = await open();
    await engine.close();
    await engine.close().catch(() => {});
    expect(await using((other) => other.rows('SELECT 1 AS x'))).toEqual([{ x: 1 }]);
  });
});

describe('the memory limit', () => {
  const limit = () =>
    using(async (engine) =>
      Number(
        (await engine.row("SELECT CAST(parse_formatted_bytes(current_setting('memory_limit')) AS DOUBLE) AS n")).n,
      ),
    );

  it.each([
    ['what the container allows', 2 ** 31, 2 ** 30],
    ['what the machine has, where no container says less', 0, totalmem() / 2],
    ['what the machine has, where the container would allow more', 2 ** 60, totalmem() / 2],
  ])('is half of %s', async (_what, constrained, wanted) => {
    const constraining = vi.spyOn(process, 'constrainedMemory').mockReturnValue(constrained);
    try {
      const found = await limit();
      expect(found).toBeGreaterThan(wanted * 0.99);
      expect(found).toBeLessThan(wanted * 1.01);
    } finally {
      constraining.mockRestore();
    }
  });
});

describe('a transaction', () => {
  beforeEach(() => using((engine) => engine.run('CREATE TABLE t (x INTEGER)')));
  const held = () => using(async (engine) => (await engine.rows('SELECT x FROM t ORDER BY x')).map(({ x }) => x));
  const insert = (engine: Engine, x: number) => engine.run(`INSERT INTO t VALUES (${x})`);

  it('commits all of its work or nothing, and the next one is not affected', async () => {
    await using(async (engine) => {
      expect(await engine.transaction(() => insert(engine, 1))).toBe(1);
      const failing = engine.transaction(async () => {
        await insert(engine, 2);
        throw new Error('mine');
      });
      await expect(failing).rejects.toThrow('mine');
      await engine.transaction(() => insert(engine, 3));
    });
    expect(await held()).toEqual([1, 3]);
  });

  it('does not begin after a stop', async () => {
    const work = vi.fn(async () => {});
    await using((engine) =>
      expect(engine.transaction(work, AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop'),
    );
    expect(work).not.toHaveBeenCalled();
  });

  it('commits nothing when it is stopped at any statement or after the last', async () => {
    for (const at of [0, 1, 2]) {
      const stop = new AbortController();
      await using(async (engine) => {
        const work = async () => {
          for (let n = 0; n < 2; n++) {
            if (n === at) stop.abort(new Error('stop'));
            await insert(engine, n);
          }
          if (at === 2) stop.abort(new Error('stop'));
        };
        await expect(engine.transaction(work, stop.signal)).rejects.toThrow('stop');
        // What comes after it is no part of it.
        await insert(engine, 10 + at);
        expect(await engine.rows('SELECT 1 AS x')).toEqual([{ x: 1 }]);
      });
    }
    expect(await held()).toEqual([10, 11, 12]);
  });

  it('aborts a running statement', async () => {
    // One that has not quite begun is not stopped, and ends by itself: then the next stop comes later.
    const endOf = async (engine: Engine, ms: number) => {
      const stop = new AbortController();
      const timer = setTimeout(() => stop.abort(new Error('stop')), ms);
      let ended: unknown;
      const work = () =>
        engine.rows('SELECT sum(a.range * b.range) FROM range(30000) a, range(30000) b').catch((error: unknown) => {
          ended = error;
          throw error;
        });
      await engine.transaction(work, stop.signal).catch(() => {});
      clearTimeout(timer);
      return String(ended);
    };
    await using(async (engine) => {
      const ends: string[] = [];
      for (let ms = 20; ms < 2_000 && !/INTERRUPT/i.test(ends.at(-1) ?? ''); ms *= 2)
        ends.push(await endOf(engine, ms));
      expect(ends.at(-1)).toMatch(/INTERRUPT/i);
    });
  });

  it('removes its listener from the signal', async () => {
    const stop = new AbortController();
    await using(async (engine) => {
      await engine.transaction(() => insert(engine, 1), stop.signal);
      const interrupting = vi.spyOn(engine, 'interrupt');
      stop.abort(new Error('stop'));
      expect(interrupting).not.toHaveBeenCalled();
      await insert(engine, 2);
    });
    expect(await held()).toEqual([1, 2]);
  });
});

describe('an error of DuckDB', () => {
  const file = '/data/x.duckdb';
  const reported = (text: string) => engineError(new Error(text), file);

  it.each([
    [
      'IO Error: Could not set lock on file "x": Conflicting lock is held in /bin/a (PID 7). However, you would be able to open this database read-only. See also https://x',
      'transient',
      /is in use: its lock is held by \/bin\/a \(PID 7\)\. Close/,
    ],
    ['IO Error: Could not set lock on file "x": busy', 'transient', /another process holds its lock/],
    ['IO Error: No space left on device', 'transient', /disk of .* is full/],
    ['Out of Memory Error: failed to offload: max_temp_directory_size', 'transient', /disk of .* is full/],
    ['Out of Memory Error: failed to allocate block', 'config', /needs more memory/],
    ['IO Error: could not allocate 3 bytes', 'config', /needs more memory/],
    ['IO Error: The file "x" exists, but it is not a valid DuckDB database file!', 'config', /is not a database/],
    ['IO Error: No files found that match the pattern "x"', 'transient', /another run removed it/],
    ['IO Error: Cannot open file "/a/b.parquet": No such file or directory', 'transient', /another run removed it/],
    [
      'IO Error: Cannot open file "x": Permission denied.',
      'config',
      /cannot be opened or written: Cannot open file "x": Permission denied\.$/,
    ],
    ['IO Error: Could not write file "x": Input/output error', 'transient', /failed \(Could not write file "x": Input/],
    [
      'TransactionContext Error: Failed to commit: Could not write file "x.wal": Input/output error',
      'transient',
      /try again/,
    ],
    [
      'TransactionContext Error: Failed to commit: Cannot open file "x.wal": No space left on device',
      'transient',
      /is full/,
    ],
    ['FATAL Error: fsync failed!', 'transient', /failed \(fsync failed!\): try again later/],
    [
      'FATAL Error: Failed: database has been invalidated because of a previous fatal error. Original error: "fsync failed!"',
      'transient',
      /try again later/,
    ],
    [
      'TransactionContext Error: Failed to commit: Could not fsync file "x.wal": Read-only file system',
      'config',
      /cannot be opened or written: Failed to commit: Could not fsync file "x.wal": Read-only file system\.$/,
    ],
    ['TransactionContext Error: Failed to commit: canary', 'system', /please report it/],
    ['FATAL Error: Failed: canary', 'system', /please report it/],
    ['Permission Error: not allowed', 'config', /cannot be opened or written: not allowed\.$/],
  ])('%s is reported', (text, kind, message) => {
    expect(reported(text)).toMatchObject({ kind, message: expect.stringMatching(message) });
  });

  it('about cells never quotes one', () => {
    const failure = reported(
      "Conversion Error: Could not convert string 'canary' to INT32\nCSV Error on Line: 17\ncanary",
    );
    expect(failure).toMatchObject({ kind: 'system', message: expect.stringContaining('(Conversion Error, line 17)') });
    expect(JSON.stringify(failure) + failure.message + failure.internal).not.toContain('canary');
    expect(reported('canary').message).toContain('(error)');
    expect(reported('Invalid Input Error: canary').message).toContain('(Invalid Input Error)');
  });

  it('about a statement keeps its first line for the log', () => {
    expect(reported('Binder Error: no column x\nLINE 1: canary').internal).toBe('Binder Error: no column x');
    expect(reported('Constraint Error: canary').internal).toBe('Constraint Error');
  });

  it('names memory or an index if it is about one', () => {
    expect(isOutOfMemory(new Error('Out of Memory Error: x'))).toBe(true);
    expect(isOutOfMemory(new Error('IO Error: failed to pin block'))).toBe(true);
    expect(isOutOfMemory(new Error('Out of Memory Error: see max_temp_directory_size'))).toBe(false);
    expect(isOutOfMemory(new Error('IO Error: x'))).toBe(false);
    for (const text of ['Dependency Error: x', 'Constraint Error: x', 'Catalog Error: an index depends on it'])
      expect(isRefusedByIndex(new Error(text)), text).toBe(true);
    expect(isRefusedByIndex(new Error('IO Error: Constraint Error'))).toBe(false);
  });

  it('is unchanged if it is a UserError already', async () => {
    const failure = reported('IO Error: x');
    expect(engineError(failure, 'other')).toBe(failure);
    await expect(verifyDuckDb({ ...fixture.targetOptions, file: fixture.file })).rejects.toThrow(
      'holds no table of this program',
    );
  });
});
