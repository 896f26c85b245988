import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { rowsOfPeopleInFiles } from '../../../src/sinks/files/purge.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { FILE_TARGETS, FilesBench } from '../../support/targets/files-bench.ts';
import { ParquetBench } from '../../support/targets/parquet.ts';

let bench: FilesBench | undefined;
afterEach(() => bench?.close());

const day = '2026-01-01';
const ROWS = [
  { id: 'a', df_unified_id: 'erna', df_event_name: 'erna_was_here', ...on(day) },
  { id: 'b', df_unified_id: 'erna', df_event_name: 'login', ...on(day) },
  { id: 'c', df_unified_id: 'hans', df_event_name: 'login', ...on(day) },
  { id: 'd', df_unified_id: 'hans', df_event_name: 'other', ...on('2026-01-02') },
];

describe.each(FILE_TARGETS)('a purge of %s', (target) => {
  it('is one commit, after which no file has the name of an event that the person alone had', async () => {
    bench = new FilesBench(target);
    const { bench: own } = bench;
    await bench.store([[own.window(day, csvOf(ROWS))]]);
    const commits = bench.commits;
    const done = await bench.place.purge(bench.options, { column: 'df_unified_id', ids: ['erna'] });
    expect(done).toMatchObject({ rows: 2, rowsRemoved: 2 });
    expect(bench.commits).toBe(commits + 1);
    for (const path of own.files()) {
      expect(readFileSync(join(own.root, path)).includes('erna'), path).toBe(false);
    }
    if (own instanceof ParquetBench) expect(own.manifest.event_names).toEqual(['login', 'other']);
    expect(await bench.read('SELECT _key FROM events ORDER BY 1')).toEqual([{ _key: 'c' }, { _key: 'd' }]);
    expect(await bench.verify()).toEqual([]);
  });

  it('of everybody leaves no row, no file and no event name', async () => {
    bench = new FilesBench(target);
    await bench.store([[bench.bench.window(day, csvOf(ROWS))]]);
    const all = { column: 'df_unified_id', ids: ['erna', 'hans'] };
    expect(await bench.place.purge(bench.options, all)).toMatchObject({ rows: 0, rowsRemoved: 4 });
    const snapshot = await bench.snapshot();
    expect(snapshot).toMatchObject({ files: [], state: { eventNames: [], receipts: [{ rows: 4, rows_live: 0 }] } });
    expect(bench.bench.files().filter((path) => path.endsWith('.parquet') && path.includes('event_date='))).toEqual([]);
    expect(await bench.verify()).toEqual([]);
  });
});

describe.each(FILE_TARGETS)('the rows of people in %s', (target) => {
  it('are shown one by one, whatever is in them, and wait nowhere afterwards [S58]', async () => {
    bench = new FilesBench(target);
    const memo = 'a line\n\u2028another';
    await bench.store([
      [bench.bench.window(day, csvOf([...ROWS, { id: 'e', df_unified_id: 'erna', memo, ...on(day) }]))],
    ]);
    const query = { column: 'df_unified_id', ids: ['erna'] };
    const rows: { readonly _key: string; readonly memo?: string }[] = [];
    for await (const { table, row } of rowsOfPeopleInFiles(bench.format, bench.options, query)) {
      expect(table).toBe('events');
      rows.push(JSON.parse(row));
    }
    expect(rows.map(({ _key }) => _key).sort()).toEqual(['a', 'b', 'e']);
    expect(rows.find(({ _key }) => _key === 'e')?.memo).toBe(memo);
    for await (const { row } of rowsOfPeopleInFiles(bench.format, bench.options, query)) {
      expect(row).not.toBe('');
      break;
    }
    expect(readdirSync(bench.options.spoolDir).filter((name) => name.startsWith('dfinery-files-'))).toEqual([]);
  });
});
