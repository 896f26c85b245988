import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TableName } from '../../../src/table/columns.ts';
import type { TableState } from '../../../src/table/state.ts';
import type { DataFile, NewFile } from '../../../src/targets/files/data-file.ts';
import { withTable } from '../../../src/targets/files/file-table.ts';
import { readFiles } from '../../../src/targets/files/parquet-file.ts';
import { on } from '../../support/targets/csv.ts';
import { FILE_TARGETS, FilesFixture } from '../../support/targets/target-fixture.ts';

const [ONE, TWO] = ['2026-01-01', '2026-01-02'] as const;

describe.each(FILE_TARGETS)('verify of %s', (name) => {
  let fixture: FilesFixture;
  beforeEach(async () => {
    fixture = new FilesFixture(name);
    const rows = [
      { id: 'a:0', n: '1', df_items_x: '1' },
      { id: 'a:1', n: '2', df_items_x: '2' },
      { id: 'b', n: '3', ...on(TWO) },
    ];
    await fixture.store([fixture.fixture.windowOf(ONE, ...rows)]);
  });
  afterEach(() => fixture.close());
  const messages = async () => (await fixture.verify()).map(({ check, message }) => `${check}: ${message}`);

  /** The first file of a table, as the log has it. */
  async function fileOf(table: TableName): Promise<DataFile & { readonly local: string }> {
    const file = (await fixture.snapshot())?.files.find((one) => one.table === table);
    const local = fixture.files().find((path) => file !== undefined && path.endsWith(file.path));
    if (file === undefined || local === undefined) throw new Error(`no file of ${table}`);
    return { ...file, local };
  }

  /** Commits what a query makes of the first file of a table in its place, and what the log is to say of it. */
  const rewrite = (table: TableName, select: string, more: Partial<NewFile> = {}) =>
    withTable(fixture.format, fixture.options, 'rewrite', async (open) => {
      const [file] = open.filesOf(table);
      const rows = `SELECT ${open.log.layout.hasDateColumn ? '* EXCLUDE (event_date)' : '*'} FROM ${readFiles([await open.fetchOne(file)])}`;
      const query = `SELECT ${select.replaceAll('THIS', `(${rows})`)}`;
      const { table: of, date, source } = file;
      const written = await open.write({ table: of, date, query, rows: file.rows, ...(source && { source }) });
      await open.commit({
        kind: 'load',
        removed: [file],
        added: [{ ...written, ...more }],
        state: open.snapshot.state,
      });
    });

  /** Commits another state of the same files. */
  const restate = (change: (state: TableState) => Partial<TableState>) =>
    withTable(fixture.format, fixture.options, 'rewrite', async (open) => {
      const { state } = open.snapshot;
      await open.commit({ kind: 'load', removed: [], added: [], state: { ...state, ...change(state) } });
    });

  it('finds nothing in loaded data, nor in rewritten files with the same rows', async () => {
    expect(await messages()).toEqual([]);
    await rewrite('events', '* FROM THIS');
    expect(await messages()).toEqual([]);
  });

  it('names every file that is missing, or has another length or other bytes, in every table', async () => {
    const [events, items, logs] = [await fileOf('events'), await fileOf('event_items'), await fileOf('event_logs')];
    rmSync(events.local);
    writeFileSync(items.local, 'x');
    const bytes = readFileSync(logs.local);
    bytes[20] ^= 1;
    writeFileSync(logs.local, bytes);
    expect((await messages()).sort()).toEqual([
      `files: ${items.path} is not the file that was written (1 bytes, was ${items.bytes})`,
      `files: ${logs.path} is not the file that was written`,
      `files: ${events.path} is missing`,
    ]);
  });

  it('names a file whose number of rows differs from the log', async () => {
    await rewrite('event_items', '* FROM THIS', { rows: 7 });
    const { path } = await fileOf('event_items');
    expect(await messages()).toEqual([`files: ${path} has 2 rows instead of 7`]);
  });

  it('names a file with a column of another type', async () => {
    await rewrite('events', '* REPLACE (CAST(n AS VARCHAR) AS n) FROM THIS');
    const { path } = await fileOf('events');
    const found = `columns: ${path} has other columns than events should have: it has n VARCHAR`;
    expect(await messages()).toContain(found);
  });

  it.each<[TableName, string, string[]]>([
    ['events', 'CASE WHEN n = 1 THEN _key END AS _key, * EXCLUDE (_key) FROM THIS', ['keys: 1 row has no _key']],
    ['events', "'b' AS _key, * EXCLUDE (_key) FROM THIS", ['keys: 1 keys occur more than once']],
    ['event_items', '* FROM THIS LIMIT 1', ['rows: event_items should have 2 rows, and has 1']],
    ['event_logs', '* FROM THIS UNION ALL FROM THIS', ['rows: event_logs should have 2 rows, and has 3']],
  ])('reports, by the rows of %s, the difference after %s', async (table, select, expected) => {
    await rewrite(table, select);
    expect(await messages()).toEqual(expected);
  });

  it('names rows of a window without a receipt', async () => {
    await rewrite('events', '* REPLACE (CAST(9 AS BIGINT) AS _dfinery_window) FROM THIS');
    expect(await messages()).toContain('rows: 2 rows belong to window 9, which has no receipt');
  });

  it('compares the windows of the rows with those of the log', async () => {
    const windows = new Map([1, 9].map((window) => [window, 1]));
    await rewrite('events', '* FROM THIS', { windows });
    expect(await messages()).toContain('rows: 1 row belongs to window 9, which has no receipt');
  });

  it('names a receipt with more live rows than it had, and days without a receipt', async () => {
    await restate(({ receipts }) => ({ receipts: receipts.map((receipt) => ({ ...receipt, rows: 2 })) }));
    const rows = `rows: window 1 (${ONE} to ${ONE}) has 3 rows, and its export had 2: another program added rows to it`;
    expect(await messages()).toEqual([rows]);
    await restate(() => ({ exportState: { version: 1, from_date: '2026-01-05' } }));
    const days = 'days: the cursor is at 2026-01-05, but no receipt covers 2026-01-02 to 2026-01-04';
    expect(await messages()).toEqual([rows, days]);
    await restate(() => ({ receipts: [], exportState: { version: 1, from_date: TWO } }));
    expect(await messages()).toContain('rows: 3 rows belong to window 1, which has no receipt');
  });
});
