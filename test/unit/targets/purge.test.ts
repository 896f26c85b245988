import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cells, csvOf, on } from '../../support/targets/csv.ts';
import { FILE_TARGETS, FilesFixture, TARGETS, TargetFixture } from '../../support/targets/target-fixture.ts';

const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const ERNA = { column: 'df_unified_id', ids: ['erna', 'nobody'] };

let fixture: TargetFixture;
afterEach(() => fixture.close());

/** Erna is on three days, alone on the third; her event e begins with an item of hers and goes on with one of Hans. */
const ROWS: readonly Cells[] = [
  { id: 'a:0', df_unified_id: 'erna', df_items_x: '1', memo: 'erna', ...on(ONE) },
  { id: 'b', df_unified_id: 'hans', ...on(ONE) },
  { id: 'e:0', df_unified_id: 'erna', df_items_x: '2', df_event_name: 'erna_was_here', ...on(TWO) },
  { id: 'e:1', df_unified_id: 'hans', df_items_x: '3', ...on('2026-01-04') },
  { id: 'f', df_unified_id: 'hans', ...on(TWO) },
  { id: 'c:0', df_unified_id: 'erna', df_items_x: '4', ...on(THREE) },
  { id: 'g', df_unified_id: 'hans', df_event_name: 'other', ...on('2026-01-05') },
];
const load = () => fixture.store([fixture.fixture.window(ONE, csvOf(ROWS), undefined, 5)]);
/** What the place holds, table by table. */
const tables = () =>
  Promise.all(['events', 'event_items', 'event_logs'].map((table) => fixture.read(`FROM ${table} ORDER BY ALL`)));

describe.each(TARGETS)('a purge of %s', (name) => {
  beforeEach(() => {
    fixture = TargetFixture.of(name);
  });

  it('leaves no byte of a person in any file, nor event names of that person alone; the receipts match', async () => {
    await load();
    // A version of the rows that is older.
    await load();
    expect(fixture.filesWith('erna')).not.toEqual([]);
    const done = await fixture.purge(ERNA);
    expect(done).toMatchObject({
      rows: 4,
      rowsRemoved: 3,
      found: { people: 1, rows: 3, rowsOf: new Map([['erna', 3]]) },
    });
    expect(fixture.filesWith('erna')).toEqual([]);
    expect(fixture.files().filter((path) => path.includes('erna'))).toEqual([]);
    expect(await fixture.keys()).toEqual(['b', 'e:1', 'f', 'g']);
    expect(await fixture.read('SELECT x FROM event_items')).toEqual([{ x: '3' }]);
    expect(await fixture.read('SELECT df_event_log_id AS id FROM event_logs ORDER BY 1')).toEqual(
      ['b', 'e', 'f', 'g'].map((id) => ({ id })),
    );
    const { eventNames, rowsOf, covered } = await fixture.priorLoads();
    expect(eventNames).toEqual(name === 'delta' ? [] : ['df_login', 'other']);
    expect([rowsOf?.(ONE, '2026-01-05'), covered.size]).toEqual([7, 5]);
    expect(await fixture.verify()).toEqual([]);
    expect(await fixture.purge(ERNA)).toMatchObject({ rows: 4, rowsRemoved: 0 });
    await fixture.store([fixture.fixture.windowOf('2026-01-06', { id: 'late' })]);
    expect(await fixture.keys()).toContain('late');
    expect(await fixture.verify()).toEqual([]);
  });

  it('leaves no row and no event name if it removes everybody', async () => {
    await load();
    const all = { column: 'df_unified_id', ids: ['erna', 'hans'] };
    expect(await fixture.purge(all)).toMatchObject({ rows: 0, rowsRemoved: 7 });
    expect(await fixture.keys()).toEqual([]);
    expect((await fixture.priorLoads()).eventNames).toEqual([]);
    expect(fixture.filesWith('erna')).toEqual([]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('leaves days without the column unchanged', async () => {
    await fixture.store([
      fixture.fixture.windowOf(ONE, { id: 'a', df_unified_id: 'erna', mail: 'x@example.com' }, { id: 'b' }),
      fixture.fixture.windowOf(TWO, { id: 'c', df_unified_id: 'hans' }),
    ]);
    const query = { column: 'mail', ids: ['x@example.com'] };
    expect(await fixture.purge(query)).toMatchObject({ rows: 2, rowsRemoved: 1 });
    expect(await fixture.keys()).toEqual(['b', 'c']);
    expect(await fixture.verify()).toEqual([]);
  });

  it('changes nothing as a trial, after a stop, or with an unknown column', async () => {
    await load();
    const before = await tables();
    expect(await fixture.tryPurge(ERNA)).toMatchObject({ found: { rows: 3 }, foreignTables: [] });
    const { target, place, options } = fixture;
    const refused = { exitCode: 2, message: expect.stringContaining('has no column no') };
    await expect(fixture.tryPurge({ column: 'no', ids: ['x'] })).rejects.toMatchObject(refused);
    await expect(fixture.purge({ column: 'no', ids: ['x'] })).rejects.toMatchObject(refused);
    const stopped = { ...options, signal: AbortSignal.abort(new Error('stop')), onFound: async () => undefined };
    await expect((await target.people()).purge(place, ERNA, stopped)).rejects.toThrow('stop');
    expect(await tables()).toEqual(before);
    expect(await fixture.verify()).toEqual([]);
    // The place is not locked any more.
    await (await fixture.open()).close();
  });

  it('is refused if nothing was loaded, and removes nothing from a location without rows', async () => {
    await expect(fixture.purge(ERNA)).rejects.toMatchObject({ exitCode: 2 });
    await expect(fixture.tryPurge(ERNA)).rejects.toMatchObject({ exitCode: 2 });
    await fixture.store([fixture.fixture.windowOf(ONE)]);
    expect(await fixture.purge(ERNA)).toMatchObject({ rows: 0, rowsRemoved: 0 });
  });
});

describe.each(FILE_TARGETS)('a purge of the files of %s', (name) => {
  it('is one commit, which replaces only the files with rows of the person', async () => {
    const files = new FilesFixture(name);
    fixture = files;
    await load();
    const [before, { commits }] = [await files.snapshot(), files];
    const done = await files.purge(ERNA);
    expect(files.commits).toBe(commits + 1);
    const after = await files.snapshot();
    const removed = before?.files.filter(({ path }) => !after?.files.some((file) => file.path === path)) ?? [];
    // Parquet keeps the names of its files: one a date.
    if (name !== 'parquet') expect(done.files).toHaveLength(removed.filter(({ table }) => table === 'events').length);
    expect(done.files).toHaveLength(3);
    const bytes = (snapshot: typeof after) => snapshot?.files.reduce((sum, file) => sum + file.bytes, 0);
    expect([done.bytesBefore, done.bytesAfter]).toEqual([bytes(before), bytes(after)]);
    expect(after?.state).toMatchObject({ receipts: [{ rows: 7, rows_live: 4 }] });
  });
});

describe.each(TARGETS)('compact of %s', (name) => {
  beforeEach(() => {
    fixture = TargetFixture.of(name);
  });

  it('changes no row, no receipt and no column', async () => {
    await load();
    await fixture.store([
      fixture.fixture.windowOf(ONE, { id: 'h', late: '1', df_items_x: 'text' }),
      fixture.fixture.windowOf(TWO, { id: 'f' }, { id: 'i', df_server_datetime: '', df_correction_datetime: '' }),
    ]);
    const of = async () => {
      const { state, columns, rows } = await fixture.report();
      return { state, columns, rows, tables: await tables() };
    };
    const before = await of();
    expect(await fixture.compact()).toMatchObject({ rows: before.rows, rowsRemoved: 0 });
    expect(await of()).toEqual(before);
    expect(await fixture.verify()).toEqual([]);
    await fixture.store([fixture.fixture.windowOf(THREE, { id: 'j', df_items_x: '9' })]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('is refused if nothing was loaded', async () => {
    await expect(fixture.compact()).rejects.toMatchObject({ exitCode: 2 });
  });
});
