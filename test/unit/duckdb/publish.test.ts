import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CopiedFormat } from '../../../src/targets/copies/mark.ts';
import { checkCopy } from '../../../src/targets/copies/publish.ts';
import { republish } from '../../../src/targets/copies/republish.ts';
import { purgeDuckDb, rewriteDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { type DuckDbSink, openDuckDbSink } from '../../../src/targets/duckdb/sink.ts';
import { COPIED } from '../../../src/targets/duckdb/store.ts';
import { duckdb } from '../../../src/targets/duckdb/target.ts';
import { withCall } from '../../support/system-calls.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { attachElsewhere, query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
let copy: string;
beforeEach(() => {
  fixture = new DuckDbFixture();
  copy = join(fixture.dir, 'copy.duckdb');
});
afterEach(() => fixture.close());

const open = () => openDuckDbSink({ ...fixture.targetOptions, file: fixture.file });
const check = (path: string) => checkCopy(COPIED, path, fixture.file, fixture.targetOptions);
const refused = (message: RegExp) => ({ exitCode: 2, message: expect.stringMatching(message) });
const keysIn = async (file: string) =>
  (await query(file, 'SELECT _key FROM events ORDER BY 1')).map(({ _key }) => _key);
const copies = () => fixture.query('SELECT path FROM _dfinery_copies ORDER BY path');

/** Loads one row and does the work while the file is open. */
async function with1(id: string, work: (sink: DuckDbSink) => Promise<unknown>): Promise<void> {
  const sink = await open();
  try {
    await sink.commit([fixture.window('2026-01-01', csvOf([{ id }]))], fixture.signal);
    await work(sink);
  } finally {
    await sink.close();
  }
}

it('a copy for readers has its mark in the file itself, also where the disk fails while the copy is closed', async () => {
  const failing = (real: (...all: unknown[]) => unknown, ...all: unknown[]) =>
    all[0] === 'DETACH main_file'
      ? Promise.resolve(real('PRAGMA disable_checkpoint_on_shutdown')).then(() =>
          Promise.reject(new Error('fsync failed!')),
        )
      : real(...all);
  await with1('a', (sink) => withCall(DuckDBConnection.prototype, 'run', failing, () => sink.publish(copy)));
  expect(await query(copy, 'SELECT copy_of IS NOT NULL AS marked FROM _dfinery_state')).toEqual([{ marked: true }]);
  await check(copy);
});

describe('the path of a copy for readers', () => {
  it('is free or holds a copy by this program, also before the database exists', async () => {
    await check(copy);
    await with1('a', (sink) => sink.publish(copy));
    await check(copy);
  });

  it('is in an existing folder', async () => {
    await expect(check(join(fixture.dir, 'no', 'copy.duckdb'))).rejects.toMatchObject(
      refused(/folder of .* does not exist/),
    );
    expect(existsSync(join(fixture.dir, 'no'))).toBe(false);
  });

  it('is one that DuckDB can write a file at, and named as given if not', async () => {
    await expect(check(join(fixture.dir, 'c?p.duckdb'))).rejects.toMatchObject(refused(/\/c\?p\.duckdb has a "\?"/));
  });

  it('holds a copy of this database also when that is written anew during the check', async () => {
    await with1('a', (sink) => sink.publish(copy));
    let replacements = 0;
    const format: CopiedFormat = {
      ...COPIED,
      async withFile(options, work) {
        const result = await COPIED.withFile(options, work);
        if (replacements++ === 0) await rewriteDuckDb({ ...fixture.targetOptions, file: fixture.file });
        return result;
      },
    };
    await checkCopy(format, copy, fixture.file, fixture.targetOptions);
    expect(replacements).toBeGreaterThan(1);
  });

  it('is not a folder', async () => {
    mkdirSync(copy);
    await expect(check(copy)).rejects.toMatchObject(
      refused(/it is no file\. Move it elsewhere, or publish at another path; .*--forget-copy/),
    );
  });

  it('is not the database itself, in any spelling, before the first load and after it', async () => {
    const isRefused = async () => {
      for (const path of [fixture.file, relative(process.cwd(), fixture.file)]) {
        await expect(check(path), path).rejects.toMatchObject(refused(/is the file that is loaded/));
      }
    };
    await isRefused();
    await with1('a', async () => {});
    await isRefused();
  });

  it('holds nothing foreign: no text, no other database, no file with fewer rows than its receipts', async () => {
    writeFileSync(copy, 'mine');
    await expect(check(copy)).rejects.toMatchObject(
      refused(/is not a copy that this program made of this database; it was not changed/),
    );
    expect(readFileSync(copy, 'utf8')).toBe('mine');
    const other = join(fixture.dir, 'other.duckdb');
    await query(other, 'CREATE TABLE t AS SELECT 1 AS x');
    await expect(check(other)).rejects.toMatchObject(refused(/is not a copy that this program made of this database/));
    const short = join(fixture.dir, 'short.duckdb');
    await with1('a', (sink) => sink.publish(short));
    await query(short, 'DELETE FROM events');
    await expect(check(short)).rejects.toMatchObject({
      ...refused(/has 0 rows, its receipts 1/),
      cause: expect.objectContaining({ kind: 'system' }),
    });
    await query(short, 'ALTER TABLE _dfinery_windows ALTER rows_live TYPE VARCHAR');
    await expect(check(short)).rejects.toMatchObject(refused(/is not a copy that this program made .*DuckDB refused/));
    await query(short, 'ALTER TABLE _dfinery_windows DROP COLUMN rows_live');
    await expect(check(short)).rejects.toMatchObject(refused(/lacks the column _dfinery_windows\.rows_live of ours/));
  });

  it('is not judged after a stop', async () => {
    writeFileSync(copy, 'mine');
    const signal = AbortSignal.abort(new Error('stop'));
    await expect(checkCopy(COPIED, copy, fixture.file, { ...fixture.targetOptions, signal })).rejects.toThrow(/^stop$/);
  });

  it('holds no other database of this program, no copy of one, and no plain copy of the database itself', async () => {
    await with1('a', (sink) => sink.publish(copy));
    const other = new DuckDbFixture();
    try {
      const theirs = join(fixture.dir, 'theirs.duckdb');
      const sink = await openDuckDbSink({ ...fixture.targetOptions, file: other.file });
      await sink.commit([other.window('2026-01-01', csvOf([{ id: 'b' }]))], other.signal);
      await sink.publish(theirs);
      await expect(sink.publish(copy)).rejects.toMatchObject(refused(/it is a copy of another database/));
      await sink.close();
      await expect(check(other.file)).rejects.toMatchObject(refused(/it is a database of its own/));
      await expect(check(theirs)).rejects.toMatchObject(refused(/it is a copy of another database/));
      const backup = join(fixture.dir, 'backup.duckdb');
      copyFileSync(fixture.file, backup);
      await expect(check(backup)).rejects.toMatchObject(refused(/it is a database of its own/));
      for (const file of [copy, fixture.file]) expect(await keysIn(file), file).toEqual(['a']);
      expect(await keysIn(theirs)).toEqual(['b']);
    } finally {
      other.close();
    }
  });

  it('may be a symbolic link to a copy, without a second hard link', async () => {
    const [elsewhere, link] = ['elsewhere', 'link'].map((name) => join(fixture.dir, `${name}.duckdb`));
    await with1('a', (sink) => sink.publish(elsewhere));
    symlinkSync(elsewhere, link);
    await with1('b', (sink) => sink.publish(link));
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(await keysIn(elsewhere)).toEqual(['a', 'b']);
    linkSync(elsewhere, join(fixture.dir, 'name.duckdb'));
    await expect(check(link)).rejects.toMatchObject(refused(/has another name \(a hard link\)/));
  });

  it('is inspected without a change to the files beside it', async () => {
    await with1('a', (sink) => sink.publish(copy));
    const [beside, { mtimeMs }] = [`${copy}.rewriting`, statSync(copy)];
    writeFileSync(beside, 'mine');
    await check(copy);
    expect([readFileSync(beside, 'utf8'), statSync(copy).mtimeMs]).toEqual(['mine', mtimeMs]);
  });
});

describe('publishing', () => {
  it('is refused before anything is loaded when the path is invalid', async () => {
    const more = { tables: [], spoolDir: fixture.dir, retentionMs: 0, env: () => undefined, stdout: process.stdout };
    const openFor = (path: string) =>
      duckdb.open(fixture.file, { ...fixture.targetOptions, ...more, publish: path, signal: fixture.signal });
    mkdirSync(join(fixture.dir, 'folder'));
    await expect(openFor(join(fixture.dir, 'folder'))).rejects.toMatchObject(refused(/is no file/));
    expect(existsSync(fixture.file)).toBe(false);
    const loader = await openFor(copy);
    await loader.publish?.(copy);
    await loader.close();
    expect(await keysIn(copy)).toEqual([]);
  });

  it('is remembered once a copy, and leaves only the copies', async () => {
    const second = join(fixture.dir, 'second.duckdb');
    await with1('a', async (sink) => {
      for (const path of [second, copy, relative(process.cwd(), copy)]) await sink.publish(path);
    });
    expect(await copies()).toEqual([copy, second].map((path) => ({ path })));
    for (const file of [copy, second]) expect(await keysIn(file), file).toEqual(['a']);
    expect(
      readdirSync(fixture.dir)
        .filter((name) => !name.startsWith('spool'))
        .sort(),
    ).toEqual([fixture.file, copy, second].map((path) => basename(path)).sort());
  });

  it('gives a first copy the mode of the database, and a later one that of the previous copy', async () => {
    await with1('a', async () => {});
    chmodSync(fixture.file, 0o640);
    await with1('b', (sink) => sink.publish(copy));
    expect(statSync(copy).mode & 0o777).toBe(0o640);
    chmodSync(copy, 0o604);
    await with1('c', (sink) => sink.publish(copy));
    expect(statSync(copy).mode & 0o777).toBe(0o604);
  });

  it('includes the rows of all committed windows, also those in the write-ahead log', async () => {
    await with1('a', async (sink) => {
      await sink.publish(copy);
      await sink.commit([fixture.window('2026-01-02', csvOf([{ id: 'b' }]))], fixture.signal);
      await sink.publish(copy);
    });
    expect(await keysIn(copy)).toEqual(['a', 'b']);
  });

  it('leaves the lock on the database to its writer', async () => {
    await with1('a', async (sink) => {
      await sink.publish(copy);
      expect(attachElsewhere(fixture.file)).toContain('Could not set lock on file');
      await sink.publish(copy);
    });
    expect(attachElsewhere(fixture.file)).toBe('');
  });

  it('does not depend on what NODE_OPTIONS makes a process do', async () => {
    vi.stubEnv('NODE_OPTIONS', `--require ${join(fixture.dir, 'no-such.cjs')}`);
    try {
      await with1('a', (sink) => sink.publish(copy));
    } finally {
      vi.unstubAllEnvs();
    }
    expect(await keysIn(copy)).toEqual(['a']);
  });

  it('ignores leftovers of a killed run', async () => {
    const left = join(fixture.dir, '.copy.duckdb.publishing');
    for (const path of [left, `${left}.wal`]) writeFileSync(path, 'half');
    await with1('a', (sink) => sink.publish(copy));
    expect(await keysIn(copy)).toEqual(['a']);
    expect([left, `${left}.wal`].filter((path) => existsSync(path))).toEqual([]);
  });

  it('is refused when rows are missing: the previous copy stays, and no temporary file', async () => {
    await with1('a', (sink) => sink.publish(copy));
    await query(fixture.file, 'UPDATE _dfinery_windows SET rows_live = 5');
    const sink = await open();
    await expect(sink.publish(copy)).rejects.toMatchObject({
      message: expect.stringMatching(/has 1 rows, its receipts 5/),
    });
    await sink.close();
    expect(await keysIn(copy)).toEqual(['a']);
    expect(readdirSync(fixture.dir).filter((name) => name.includes('publishing'))).toEqual([]);
  });

  it('reports an error of the disk as such', async () => {
    const gone = join(fixture.dir, 'gone');
    await with1('a', async (sink) => {
      await expect(sink.publish(join(gone, 'copy.duckdb'))).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringMatching(/^The copy for readers .*the former copy stays/),
      });
    });
  });
});

describe('publishing after a purge', () => {
  const again = () => republish(COPIED, { ...fixture.targetOptions, file: fixture.file });

  it('replaces every copy, and does nothing without copies', async () => {
    await with1('a', async () => {});
    expect(await again()).toEqual([]);
    const second = join(fixture.dir, 'second.duckdb');
    await with1('a', async (sink) => {
      for (const path of [copy, second]) await sink.publish(path);
    });
    await with1('b', async () => {});
    expect(await again()).toEqual([]);
    for (const file of [copy, second]) expect(await keysIn(file), file).toEqual(['a', 'b']);
  });

  it('of a plain copy leaves the copies of its origin alone, until it has its own', async () => {
    await with1('a', (sink) => sink.publish(copy));
    const backup = join(fixture.dir, 'backup.duckdb');
    copyFileSync(fixture.file, backup);
    await with1('b', (sink) => sink.publish(copy));
    const options = { ...fixture.targetOptions, file: backup };
    expect(await republish(COPIED, options)).toEqual([]);
    expect(await keysIn(copy)).toEqual(['a', 'b']);
    const sink = await openDuckDbSink(options);
    await expect(sink.publish(copy)).rejects.toMatchObject(refused(/it is a copy of another database/));
    const own = join(fixture.dir, 'own.duckdb');
    await sink.publish(own);
    await sink.close();
    expect(await republish(COPIED, options)).toEqual([]);
    expect([await keysIn(copy), await keysIn(own)]).toEqual([['a', 'b'], ['a']]);
    expect(await again()).toEqual([]);
  });

  it('names the copies of a database that was moved to another disk and has its own since, until --forget-copy', async () => {
    await with1('a', (sink) => sink.publish(copy));
    const moved = join(fixture.dir, 'moved.duckdb');
    copyFileSync(fixture.file, moved);
    rmSync(fixture.file);
    const sink = await openDuckDbSink({ ...fixture.targetOptions, file: moved });
    await sink.publish(join(fixture.dir, 'own.duckdb'));
    await sink.close();
    const options = { ...fixture.targetOptions, spoolDir: fixture.dir, env: () => undefined };
    const people = await duckdb.people();
    const removal = { column: 'df_unified_id', ids: ['u-a'] };
    const named = async () => (await people.tryPurge(moved, removal, options)).copiesOfOriginal;
    const purge = (...forgetCopies: string[]) =>
      people.purge(moved, removal, { ...options, forgetCopies, onFound: async () => {} });
    expect(await named()).toEqual([copy]);
    expect((await purge()).unreached).toEqual([]);
    rmSync(copy);
    expect(await named()).toEqual([copy]);
    await purge(copy);
    expect(await named()).toEqual([]);
  });

  it('says what to do about a copy that has become a database of its own', async () => {
    await with1('a', (sink) => sink.publish(copy));
    await query(copy, 'UPDATE _dfinery_state SET copy_of = NULL');
    const [sentence] = await again();
    expect(sentence).toMatch(/it is a database of its own\. Move it elsewhere, .*--forget-copy with this path/);
    expect(sentence).not.toContain('Give another path');
  });

  it('is one still after a load into it was refused for its time zone', async () => {
    await with1('a', (sink) => sink.publish(copy));
    await expect(fixture.open({ file: copy, timezone: 'Asia/Seoul' })).rejects.toMatchObject(refused(/^timezone is /));
    expect(await again()).toEqual([]);
  });

  it('works after the database was compacted and moved', async () => {
    await with1('a', (sink) => sink.publish(copy));
    await rewriteDuckDb({ ...fixture.targetOptions, file: fixture.file });
    await with1('b', (sink) => sink.publish(copy));
    const moved = join(fixture.dir, 'moved.duckdb');
    renameSync(fixture.file, moved);
    expect(await republish(COPIED, { ...fixture.targetOptions, file: moved })).toEqual([]);
    expect(await keysIn(copy)).toEqual(['a', 'b']);
  });

  it('is refused for a copy, whose people are purged from its database alone', async () => {
    await with1('a', (sink) => sink.publish(copy));
    const query = { columns: [], ids: [] };
    await expect(purgeDuckDb({ ...fixture.targetOptions, file: copy }, query as never)).rejects.toMatchObject(
      refused(/is a copy for readers: give the database/),
    );
    expect(await keysIn(copy)).toEqual(['a']);
  });

  it('names every copy that it could not replace, and replaces the others', async () => {
    const [text, folder] = ['a.txt', 'b'].map((name) => join(fixture.dir, name));
    await with1('a', (sink) => sink.publish(copy));
    for (const path of [text, folder])
      await query(fixture.file, `INSERT INTO _dfinery_copies VALUES ('${path}', now())`);
    writeFileSync(text, 'mine');
    mkdirSync(folder);
    await with1('b', async () => {});
    const [sentence] = await again();
    for (const path of [text, folder]) expect(sentence).toContain(`${path} `);
    expect(sentence).not.toContain(`${copy} `);
    expect(await keysIn(copy)).toEqual(['a', 'b']);
    expect(readFileSync(text, 'utf8')).toBe('mine');
    // The file is closed: it can be opened again.
    copyFileSync(copy, text);
    expect(await again()).toEqual([expect.not.stringContaining(text)]);
    expect(await keysIn(text)).toEqual(['a', 'b']);
  });
});
