import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EXIT } from '../../../src/base/errors.ts';
import { Engine } from '../../../src/engine/session/engine.ts';
import { begunRun } from '../../../src/table/runs.ts';
import { priorLoadsOf } from '../../../src/table/state.ts';
import { failureOf } from '../../support/failure.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const at = (time: string, correction = time) => ({ df_server_datetime: time, df_correction_datetime: correction });
const CSV = csvOf([{ id: 'a', ...at('2026-01-01 10:00:00.000') }]);

describe('a Parquet folder', () => {
  it('has one writer: the second waits, then exits with 3', async () => {
    const first = await fixture.openFolder();
    const failure = await failureOf(fixture.openFolder());
    expect(failure).toMatchObject({ kind: 'transient', exitCode: EXIT.later });
    expect(failure.message).toContain('is in use');
    const second = fixture.openFolder({ lockWaitMs: 10_000 });
    await first.close();
    await (await second).close();
  });

  it('is refused when it holds files without a manifest', async () => {
    mkdirSync(join(fixture.root, 'events'), { recursive: true });
    writeFileSync(join(fixture.root, 'events/part-0.parquet'), 'x');
    const failure = await failureOf(fixture.openFolder());
    expect(failure).toMatchObject({ kind: 'config', exitCode: EXIT.usage });
    expect(fixture.files()).toEqual(['events/part-0.parquet']);
  });

  it('holds no partial file of a killed writer once the next has opened it', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const before = fixture.files();
    for (const name of ['manifest', 'journal']) {
      writeFileSync(join(fixture.root, `_dfinery/.${name}.json.0123456789ab.tmp`), '{"half');
    }
    expect(fixture.files()).toHaveLength(before.length + 2);
    await (await fixture.openFolder()).close();
    expect(fixture.files()).toEqual(before);
  });

  it('leaves what the next writer puts there as soon as the lock is free', async () => {
    const sink = await fixture.openFolder();
    await sink.commit([fixture.window('2026-01-01', CSV)], fixture.signal);
    const waiting = join(fixture.root, '_dfinery/tmp');
    const close = Engine.prototype.close;
    const closing = vi.spyOn(Engine.prototype, 'close').mockImplementationOnce(async function (this: Engine) {
      expect(existsSync(waiting)).toBe(false);
      await close.call(this);
      mkdirSync(waiting);
      writeFileSync(join(waiting, 'events-0.part'), 'of the next writer');
    });
    await sink.close();
    expect(closing).toHaveBeenCalledOnce();
    closing.mockRestore();
    expect(existsSync(join(waiting, 'events-0.part'))).toBe(true);
  });

  it('cannot be a file', async () => {
    writeFileSync(fixture.root, 'x');
    expect(await failureOf(fixture.openFolder())).toMatchObject({ kind: 'config' });
  });

  it('fails with the error of the system if a folder has the name of a file, and is loaded once it is removed', async () => {
    const path = join(fixture.root, 'events/event_date=2026-01-01/data_0.parquet');
    const sink = await fixture.openFolder();
    mkdirSync(join(path, 'theirs'), { recursive: true });
    const failure = await failureOf(sink.commit([fixture.window('2026-01-01', CSV)], fixture.signal));
    expect(failure).toMatchObject({ kind: 'config', message: expect.stringMatching(/EISDIR|ENOTEMPTY/) });
    rmSync(path, { recursive: true });
    await sink.commit(
      [fixture.window('2026-01-02', csvOf([{ id: 'b', ...at('2026-01-02 10:00:00.000') }]))],
      fixture.signal,
    );
    await sink.close();
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual([{ _key: 'a' }, { _key: 'b' }]);
  });

  it('is refused with a damaged or newer manifest', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const path = join(fixture.root, '_dfinery/manifest.json');
    const good = readFileSync(path, 'utf8');
    writeFileSync(path, good.replace('"v":1', '"v":2'));
    expect((await failureOf(fixture.openFolder())).message).toMatch(/has version 2, this program knows version 1/);
    writeFileSync(path, good.slice(0, -10));
    expect((await failureOf(fixture.openFolder())).message).toMatch(/is not JSON/);
    writeFileSync(path, good.replace('events/event_date=', '../event_date='));
    expect((await failureOf(fixture.openFolder())).kind).toBe('config');
    writeFileSync(path, good);
    await (await fixture.openFolder()).close();
  });

  it('is private to its owner, file by file', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    for (const file of fixture.files()) expect(statSync(join(fixture.root, file)).mode & 0o077, file).toBe(0);
    expect(statSync(join(fixture.root, 'events')).mode & 0o077).toBe(0);
  });

  it('may have any name', async () => {
    const place = join(fixture.dir, "la[k]e's *?{1} %20 안녕");
    const rows = (day: string, other: string) =>
      csvOf([
        { id: 'a', ...at(`2026-01-0${day} 10:00:00.000`) },
        { id: 'b', ...at(`2026-01-0${other} 10:00:00.000`) },
        { id: 'c', ...at('2026-01-03 10:00:00.000') },
      ]);
    const tables = ['events', 'event_logs'] as const;
    await fixture.store([fixture.window('2026-01-01', rows('1', '2')), fixture.window('2026-01-01', rows('2', '1'))], {
      place,
      tables,
    });
    expect(await verifyParquet({ ...fixture.folderOptions, place })).toEqual([]);
  });

  it('reports changes of columns with the window that caused them, and none of a failed window', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const more = (id: string, name: string) =>
      fixture.window('2026-01-02', csvOf([{ id, [name]: '1', ...at('2026-01-02 10:00:00.000') }]));
    /** Commits a window while there is a folder where the file of this name is to be. */
    const whileBlocked = async (name: string, window: ReturnType<typeof more>) => {
      const path = join(fixture.root, '_dfinery', name);
      const sink = await fixture.openFolder();
      await sink.runs?.begin(begunRun('2026-01-03T00:00:00.000Z', '1'));
      const before = existsSync(path) ? readFileSync(path) : undefined;
      rmSync(path, { force: true });
      mkdirSync(path);
      await expect(sink.commit([window], fixture.signal)).rejects.toThrow();
      rmSync(path, { recursive: true });
      if (before !== undefined) writeFileSync(path, before);
      await sink.close();
    };
    await whileBlocked('journal.json', more('b', 'never'));
    const covered = async () => {
      const sink = await fixture.openFolder();
      const prior = priorLoadsOf(sink.state);
      await sink.runs?.begin(begunRun('2026-01-04T00:00:00.000Z', '1'));
      await sink.close();
      return [...prior.covered];
    };
    expect(await covered()).toEqual(['2026-01-01']);
    await fixture.store([more('c', 'later')]);
    expect(await covered()).toEqual(['2026-01-01', '2026-01-02']);
    const own = fixture.manifest.changes.filter(({ sourceName }) => !sourceName.startsWith('df_'));
    expect(own.map(({ sourceName, change }) => [sourceName, change])).toEqual([['later', 'added']]);
  });

  it('has a file a date and a manifest', async () => {
    const csv = csvOf([
      { id: 'a', n: '1', flag: 'TRUE', tags: 'null', memo: 'x,"y"\n안녕', ...at('2026-01-01 10:00:00.000') },
      { id: 'b:1', n: '9007199254740993', df_items_df_price: '1.5', tags: '["p"]', ...at('2026.1.2 3:04') },
    ]);
    const [commit] = await fixture.store([fixture.window('2026-01-01', csv)]);
    expect(commit).toMatchObject({ rows: 2, rescued: new Map() });
    expect(fixture.files()).toEqual([
      '_dfinery/lock',
      '_dfinery/manifest.json',
      'events/event_date=2026-01-01/data_0.parquet',
      'events/event_date=2026-01-02/data_0.parquet',
    ]);
    expect(
      await fixture.read(
        'SELECT _key, n, flag, tags, memo, df_items_df_price AS p, event_date AS d FROM events ORDER BY _key',
      ),
    ).toEqual([
      { _key: 'a', n: '1', flag: true, tags: null, memo: 'x,"y"\n안녕', p: null, d: '2026-01-01' },
      { _key: 'b:1', n: '9007199254740993', flag: null, tags: ['p'], memo: null, p: 1.5, d: '2026-01-02' },
    ]);
    const { files, receipts, cursor } = fixture.manifest;
    expect(files.map(({ path, rows, windows }) => ({ path, rows, windows }))).toEqual([
      { path: 'events/event_date=2026-01-01/data_0.parquet', rows: 1, windows: { 1: 1 } },
      { path: 'events/event_date=2026-01-02/data_0.parquet', rows: 1, windows: { 1: 1 } },
    ]);
    expect(receipts).toMatchObject([{ window: 1, rows: 2, rows_live: 2, from: '2026-01-01' }]);
    expect(cursor).toEqual({ version: 1, from_date: '2026-01-02' });
  });

  it('has receipts without headers and shapes of cells', async () => {
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a', memo: 'Erna', ...at('2026-01-01 10:00:00.000') }]));
    await fixture.store([window]);
    const { header: _header, columns: _columns, ...kept } = window.receipt;
    const [{ window: number, rows_live: live, ...receipt }] = fixture.manifest.receipts;
    expect({ number, live, ...receipt }).toMatchObject({
      number: 1,
      live: 1,
      id: kept.id,
      rows: 1,
      sha256: kept.sha256,
    });
    expect(Object.keys(receipt).filter((key) => key === 'header' || key === 'columns')).toEqual([]);
    expect(JSON.stringify(fixture.manifest)).not.toContain('Erna');
  });
});
