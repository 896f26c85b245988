import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, on } from '../../support/targets/csv.ts';
import { compactParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const manifest = () => join(fixture.root, '_dfinery/manifest.json');
const CSV = csvOf([{ id: 'a:0', df_items_x: '1', ...on('2026-01-01') }]);

describe('opening a Parquet folder', () => {
  it('changes nothing when it has all requested tables', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)], { tables: ['events', 'event_logs'] });
    const older = readFileSync(manifest(), 'utf8').replace(/"writer":"[^"]*"/, '"writer":"0.0.1"');
    writeFileSync(manifest(), older);
    await (await fixture.openFolder({ tables: ['events', 'event_logs'] })).close();
    await (await fixture.openFolder({ tables: [] })).close();
    expect(readFileSync(manifest(), 'utf8')).toBe(older);
  });

  it('creates a requested table for the existing days, and records it in the manifest', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    await (await fixture.openFolder({ tables: ['event_items'] })).close();
    expect(fixture.manifest.tables).toEqual(['events', 'event_items']);
    expect(fixture.manifest.files.map(({ path, rows }) => [path, rows])).toEqual([
      ['event_items/event_date=2026-01-01/data_0.parquet', 1],
      ['events/event_date=2026-01-01/data_0.parquet', 1],
    ]);
    expect(await fixture.read('SELECT x FROM event_items')).toEqual([{ x: '1' }]);
  });

  it('names a damaged file', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const good = fixture.manifest;
    writeFileSync(manifest(), '[]');
    await expect(fixture.openFolder()).rejects.toMatchObject({ kind: 'config', where: { file: manifest() } });
    const journal = join(fixture.root, '_dfinery/journal.json');
    writeFileSync(journal, JSON.stringify({ v: 1, steps: [{ from: 'x', to: 'y' }], manifest: good }));
    await expect(fixture.openFolder()).rejects.toMatchObject({ kind: 'config', where: { file: journal } });
  });

  it('reports that it finished the change of a dead run, and only then', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    expect(fixture.log.map(({ event }) => event)).not.toContain('parquet.recovered');
    const journal = join(fixture.root, '_dfinery/journal.json');
    const left = { ...fixture.manifest, cursor: { version: 1, from_date: '2026-01-09' } };
    writeFileSync(journal, JSON.stringify({ v: 1, steps: [], manifest: left }));
    const sink = await fixture.openFolder();
    expect(sink.state?.exportState).toMatchObject({ from_date: '2026-01-09' });
    await sink.close();
    expect(fixture.log.map(({ event }) => event)).toContain('parquet.recovered');
    expect(existsSync(journal)).toBe(false);
  });

  it('finishes the first change of a dead run from its journal without a manifest', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const journal = join(fixture.root, '_dfinery/journal.json');
    writeFileSync(journal, JSON.stringify({ v: 1, steps: [], manifest: fixture.manifest }));
    rmSync(manifest());
    await (await fixture.openFolder()).close();
    expect(fixture.manifest.receipts).toHaveLength(1);
  });

  it.each(['events', 'event_items', 'event_logs'])('refuses a foreign %s, and leaves it unchanged', async (table) => {
    const folder = join(fixture.root, table);
    mkdirSync(folder, { recursive: true });
    await (await fixture.openFolder()).close();
    writeFileSync(join(folder, 'theirs.parquet'), 'x');
    await expect(fixture.openFolder()).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/holds files that this program did not write/),
    });
    expect(readFileSync(join(folder, 'theirs.parquet'), 'utf8')).toBe('x');
  });

  it('refuses a file with the name of a table', async () => {
    mkdirSync(fixture.root);
    writeFileSync(join(fixture.root, 'events'), 'x');
    await expect(fixture.openFolder()).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('ENOTDIR'),
    });
  });

  it('takes a dangling link as no manifest, and does not block the folder', async () => {
    mkdirSync(join(fixture.root, '_dfinery'), { recursive: true });
    symlinkSync('nowhere', manifest());
    const options = fixture.folderOptions;
    await expect(compactParquet(options)).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('holds no table of this program'),
    });
    rmSync(manifest());
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    expect(await compactParquet(options)).toMatchObject({ rows: 1 });
  });

  it('empties the temporary folder of a dead run', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const before = fixture.files();
    mkdirSync(join(fixture.root, '_dfinery/tmp/deep'), { recursive: true });
    writeFileSync(join(fixture.root, '_dfinery/tmp/deep/x.part'), 'rows');
    const sink = await fixture.openFolder();
    expect(fixture.files()).toEqual(before);
    await sink.close();
  });

  it('waits for another run of this process as long as allowed, or until a stop', async () => {
    const first = await fixture.openFolder();
    let now = 0;
    const waited: number[] = [];
    const sleep = async (ms: number, signal?: AbortSignal) => {
      signal?.throwIfAborted();
      now += ms;
      waited.push(ms);
    };
    const clock = { now: () => now, sleep, after: () => () => {} };
    await expect(fixture.openFolder({ clock, lockWaitMs: 250 })).rejects.toMatchObject({ kind: 'transient' });
    expect(waited.reduce((sum, ms) => sum + ms)).toBe(250);
    const signal = AbortSignal.abort(new Error('stop'));
    await expect(fixture.openFolder({ clock, lockWaitMs: 250, signal })).rejects.toThrow('stop');
    const freeing = { ...clock, sleep: () => first.close() };
    await (await fixture.openFolder({ clock: freeing, lockWaitMs: 250 })).close();
  });

  it('releases the lock after it has failed', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const good = readFileSync(manifest());
    writeFileSync(manifest(), '{}');
    await expect(fixture.openFolder()).rejects.toMatchObject({ kind: 'config' });
    writeFileSync(manifest(), good);
    await expect(fixture.openFolder({ timezone: 'Asia/Seoul' })).rejects.toMatchObject({ kind: 'config' });
    await (await fixture.openFolder()).close();
  });
});
