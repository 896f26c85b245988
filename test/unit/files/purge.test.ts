import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
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
