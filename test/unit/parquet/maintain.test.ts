import { appendFileSync, cpSync, existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventLogs, sortedEventLogs } from '../../../src/engine/views.ts';
import { type FileTable, readingTable } from '../../../src/targets/files/file-table.ts';
import { PARQUET } from '../../../src/targets/parquet/log.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { compactParquet, tryPurgeParquet, verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const at = (time: string) => ({ df_server_datetime: time, df_correction_datetime: time });
const OTHER_DISK = '/dev/shm';
const hasOtherDisk = existsSync(OTHER_DISK) && statSync(OTHER_DISK).dev !== statSync(tmpdir()).dev;
const TABLES = ['events', 'event_items', 'event_logs'] as const;

const CSV = csvOf([
  { id: 'a:1', df_unified_id: 'erna-4711', df_items_x: '1', ...at('2026-01-01 10:00:00.000') },
  { id: 'a:2', df_unified_id: 'erna-4711', df_items_x: '2', ...at('2026-01-01 10:00:00.000') },
  { id: 'b', df_unified_id: 'hans-0815', ...at('2026-01-01 11:00:00.000') },
  { id: 'c', df_unified_id: 'erna-4711', ...at('2026-01-02 11:00:00.000') },
]);

describe('verify', () => {
  it('only reads while another process writes, and waits for a change to finish', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const times = () => fixture.files().map((file) => [file, statSync(join(fixture.root, file)).mtimeMs]);
    const journal = join(fixture.root, '_dfinery/journal.json');
    const sink = await fixture.openFolder();
    try {
      const before = times();
      expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
      appendFileSync(join(fixture.root, 'events/event_date=2026-01-01/data_0.parquet'), 'x');
      expect((await verifyParquet(fixture.folderOptions)).map(({ check }) => check)).toEqual(['files']);
      expect(times().map(([file]) => file)).toEqual(before.map(([file]) => file));
      writeFileSync(journal, '{}');
      await expect(verifyParquet(fixture.folderOptions)).rejects.toMatchObject({ kind: 'transient' });
      rmSync(journal);
    } finally {
      await sink.close();
    }
  });

  it('checks again when files changed meanwhile, a limited number of times', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const sink = await fixture.openFolder();
    const windows: number[] = [];
    const look = async ({ snapshot }: FileTable) => {
      windows.push(snapshot.state.receipts[0].window);
      if (windows.length < 3) await sink.commit([fixture.window('2026-01-01', CSV)], fixture.signal);
      if (windows.length === 1) throw new Error('a file went away');
      return windows.length;
    };
    try {
      expect(await readingTable(PARQUET, fixture.folderOptions, look, () => false)).toBe(3);
      expect(windows).toEqual([1, 2, 3]);
      const restless = async () => {
        windows.push(0);
        await sink.commit([fixture.window('2026-01-01', CSV)], fixture.signal);
      };
      await expect(readingTable(PARQUET, fixture.folderOptions, restless, () => false)).rejects.toMatchObject({
        kind: 'transient',
      });
      expect(windows.length).toBeLessThan(20);
    } finally {
      await sink.close();
    }
  });
});

describe('purge', () => {
  it.runIf(hasOtherDisk)('is refused beforehand when a partition is on another disk', async () => {
    await fixture.store([fixture.window('2026-01-01', CSV)]);
    const folder = join(fixture.root, 'events', 'event_date=2026-01-02');
    const other = mkdtempSync(join(OTHER_DISK, 'dfinery-'));
    try {
      cpSync(folder, other, { recursive: true });
      rmSync(folder, { recursive: true });
      symlinkSync(other, folder);
      const removal = { column: 'df_unified_id', ids: ['erna-4711'] };
      await expect(tryPurgeParquet(fixture.folderOptions, removal)).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringMatching(/event_date=2026-01-02 lies on another disk/),
      });
      expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});

describe('compact', () => {
  it('finds no date without rows, since a load removes an emptied file', async () => {
    const moved = csvOf([{ id: 'c', df_unified_id: 'x', ...at('2026-01-01 11:00:00.000') }]);
    await fixture.store([fixture.window('2026-01-01', CSV), fixture.window('2026-01-01', moved)], { tables: TABLES });
    expect(fixture.files().filter((file) => file.includes('2026-01-02'))).toEqual([]);
    const before = await fixture.read('SELECT * FROM events ORDER BY _key');
    expect(await compactParquet(fixture.folderOptions)).toMatchObject({ rows: 4, files: [] });
    expect(await fixture.read('SELECT * FROM events ORDER BY _key')).toEqual(before);
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  });
});

describe('event_logs of a folder with little memory', () => {
  it('are the same rows', async () => {
    const more = csvOf([
      { id: 'a:0', ...at('2026-01-01 09:00:00.000') },
      { id: 'a:0', memo: 'again', ...at('2026-01-01 09:00:00.000') },
      { id: '', memo: 'no id at all', ...at('2026-01-01 09:00:00.000') },
      { id: 'q:10', ...at('2026-01-01 09:00:00.000') },
      { id: 'q:9', ...at('2026-01-02 09:00:00.000') },
    ]);
    await fixture.store([fixture.window('2026-01-01', CSV), fixture.window('2026-01-02', more)]);
    const columns = fixture.manifest.columns.filter(({ type }) => type !== null);
    const rowsOf = (sql: string) => fixture.read(`SELECT * FROM (${sql}) ORDER BY ALL`);
    const usual = await rowsOf(eventLogs(columns));
    expect(usual).toHaveLength(5);
    expect(await rowsOf(sortedEventLogs(columns, 'events', 'true'))).toEqual(usual);
    const keep = "_key <> 'a:0'";
    expect(await rowsOf(sortedEventLogs(columns, 'events', keep))).toEqual(
      await rowsOf(eventLogs(columns, 'events', keep)),
    );
  });
});
