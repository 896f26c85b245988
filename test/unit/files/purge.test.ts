import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { rowsOfPeopleInFiles } from '../../../src/sinks/files/purge.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { FILE_TARGETS, FilesFixture } from '../../support/targets/files-fixture.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: FilesFixture | undefined;
afterEach(() => fixture?.close());

const day = '2026-01-01';
const ROWS = [
  { id: 'a', df_unified_id: 'erna', df_event_name: 'erna_was_here', ...on(day) },
  { id: 'b', df_unified_id: 'erna', df_event_name: 'login', ...on(day) },
  { id: 'c', df_unified_id: 'hans', df_event_name: 'login', ...on(day) },
  { id: 'd', df_unified_id: 'hans', df_event_name: 'other', ...on('2026-01-02') },
];

describe.each(FILE_TARGETS)('a purge of %s', (target) => {
  it('is one commit, after which no file has the name of an event that the person alone had', async () => {
    fixture = new FilesFixture(target);
    const { fixture: own } = fixture;
    await fixture.store([[own.window(day, csvOf(ROWS))]]);
    const commits = fixture.commits;
    const done = await fixture.place.purge(fixture.options, { column: 'df_unified_id', ids: ['erna'] });
    expect(done).toMatchObject({ rows: 2, rowsRemoved: 2 });
    expect(fixture.commits).toBe(commits + 1);
    for (const path of own.files()) {
      expect(readFileSync(join(own.root, path)).includes('erna'), path).toBe(false);
    }
    if (own instanceof ParquetFixture) expect(own.manifest.event_names).toEqual(['login', 'other']);
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual([{ _key: 'c' }, { _key: 'd' }]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('of everybody leaves no row, no file and no event name', async () => {
    fixture = new FilesFixture(target);
    await fixture.store([[fixture.fixture.window(day, csvOf(ROWS))]]);
    const all = { column: 'df_unified_id', ids: ['erna', 'hans'] };
    expect(await fixture.place.purge(fixture.options, all)).toMatchObject({ rows: 0, rowsRemoved: 4 });
    const snapshot = await fixture.snapshot();
    expect(snapshot).toMatchObject({ files: [], state: { eventNames: [], receipts: [{ rows: 4, rows_live: 0 }] } });
    expect(fixture.fixture.files().filter((path) => path.endsWith('.parquet') && path.includes('event_date='))).toEqual(
      [],
    );
    expect(await fixture.verify()).toEqual([]);
  });
});

describe.each(FILE_TARGETS)('the rows of people in %s', (target) => {
  it('are shown one by one, whatever is in them, and wait nowhere afterwards [S58]', async () => {
    fixture = new FilesFixture(target);
    const memo = 'a line\n\u2028another';
    await fixture.store([
      [fixture.fixture.window(day, csvOf([...ROWS, { id: 'e', df_unified_id: 'erna', memo, ...on(day) }]))],
    ]);
    const query = { column: 'df_unified_id', ids: ['erna'] };
    const rows: { readonly _key: string; readonly memo?: string }[] = [];
    for await (const { table, row } of rowsOfPeopleInFiles(fixture.format, fixture.options, query)) {
      expect(table).toBe('events');
      rows.push(JSON.parse(row));
    }
    expect(rows.map(({ _key }) => _key).sort()).toEqual(['a', 'b', 'e']);
    expect(rows.find(({ _key }) => _key === 'e')?.memo).toBe(memo);
    for await (const { row } of rowsOfPeopleInFiles(fixture.format, fixture.options, query)) {
      expect(row).not.toBe('');
      break;
    }
    expect(readdirSync(fixture.options.spoolDir).filter((name) => name.startsWith('dfinery-files-'))).toEqual([]);
  });
});
