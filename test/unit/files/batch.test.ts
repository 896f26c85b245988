import { afterEach, describe, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import type { SchemaMode } from '../../../src/config/source.ts';
import type { Window } from '../../../src/extract/window.ts';
import fc from '../../support/property.ts';
import { type Cells, csvOf, on, pastedRows } from '../../support/targets/duckdb.ts';
import { FILE_TARGETS, FilesFixture } from '../../support/targets/files-fixture.ts';

const FIRST = '2026-01-01';
const RUNS = 4;

let fixtures: FilesFixture[] = [];
afterEach(() => {
  for (const fixture of fixtures) fixture.close();
  fixtures = [];
});

function made(target: (typeof FILE_TARGETS)[number]): FilesFixture {
  const fixture = new FilesFixture(target);
  fixtures.push(fixture);
  return fixture;
}

/** Ids that windows share now and then; cells that widen a column, make a text of it, or are the text `null`; dates that drift. */
const row = fc.record({
  id: fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom('s:0', 's:1', undefined) },
    { weight: 4, arbitrary: fc.nat(99) },
  ),
  drift: fc.constantFrom(0, 0, 0, -1, 1),
  n: fc.constantFrom('1', '1', '2', '2.5', 'null', '', 'x'),
  flag: fc.constantFrom('TRUE', '', 'null', '7'),
  late: fc.constantFrom(undefined, undefined, undefined, '1', 'null', 'y'),
  item: fc.constantFrom('', '1', '2.5'),
});
type Row = typeof row extends fc.Arbitrary<infer R> ? R : never;
const windows = fc.array(fc.array(row, { minLength: 0, maxLength: 4 }), { minLength: 2, maxLength: 5 });

const cellsOf = ({ id, drift, n, flag, late, item }: Row, i: number): Cells => ({
  ...(id !== undefined && { id: typeof id === 'number' ? `w${i}-${id}:0` : id }),
  n,
  flag,
  ...(late !== undefined && { late }),
  df_items_k: item,
  ...on(addDays(FIRST, i + drift)),
});

/** All that a place holds, but for when and how columns changed. */
async function held(fixture: FilesFixture) {
  const snapshot = await fixture.snapshot();
  if (snapshot === undefined) return undefined;
  const { receipts, columns, cursor, eventNames } = snapshot.state;
  const tables: unknown[] = [];
  for (const name of ['events', 'event_items', 'event_logs']) {
    const hasFiles = snapshot.files.some(({ table }) => table === name);
    tables.push(hasFiles ? await fixture.read(`SELECT * FROM ${name} ORDER BY ALL`) : []);
  }
  expect(await fixture.verify()).toEqual([]);
  const types = columns.map(({ source, name, type, evidence }) => ({ source, name, type, evidence }));
  return { receipts, types, cursor, eventNames, tables };
}

/** What stays after these batches, and whether one of them was refused. */
async function stored(fixture: FilesFixture, batches: readonly (readonly Window[])[], schemaMode: SchemaMode) {
  const isRefused = await fixture.store(batches, { schemaMode }).then(
    () => false,
    (error: unknown) => {
      expect(error).toMatchObject({ kind: 'config', message: expect.stringContaining('schema_mode is fail') });
      return true;
    },
  );
  return { isRefused, ...(await held(fixture)) };
}

describe.each(FILE_TARGETS)('a batch of windows in %s', (target) => {
  it('is one commit, with a receipt for each window', async () => {
    const fixture = made(target);
    const days = [0, 1, 2].map((n) => addDays(FIRST, n));
    const windows = days.map((day, n) => fixture.fixture.window(day, csvOf([{ id: `k${n}`, n: `${n}`, ...on(day) }])));
    const [commit] = await fixture.store([windows]);
    expect(commit).toMatchObject({ rows: 3, idRepeats: 0 });
    expect(fixture.commits).toBe(1);
    const snapshot = await fixture.snapshot();
    expect(snapshot?.state.receipts.map(({ id, window, rows_live: live }) => [id, window, live])).toEqual(
      windows.map(({ receipt }, n) => [receipt.id, n + 1, 1]),
    );
    expect(snapshot?.state.cursor).toEqual(windows[2].state);
    expect(await fixture.read('SELECT _dfinery_window::INT AS w FROM events ORDER BY _key')).toEqual([
      { w: 1 },
      { w: 2 },
      { w: 3 },
    ]);
  });

  it('is read with one reader where the parallel one refuses a file [R713]', async () => {
    const fixture = made(target);
    const windows = [0, 1].map((n) => {
      const day = addDays(FIRST, n);
      return fixture.fixture.window(day, n === 0 ? csvOf([{ id: 'k', ...on(day) }]) : pastedRows());
    });
    const [commit] = await fixture.store([windows], { memoryLimit: '1GB', tables: ['events'] });
    const [{ rows, longest }] = await fixture.read('SELECT count(*) AS rows, max(length(c05)) AS longest FROM events');
    expect(Number(rows)).toBe(commit.rows);
    expect(Number(longest)).toBeGreaterThan(500_000);
  });

  it('of days that were loaded before is one commit, too, and takes their rows out [S13]', async () => {
    const fixture = made(target);
    const days = [0, 1, 2].map((n) => addDays(FIRST, n));
    const load = (n: string) =>
      days.map((day, i) =>
        fixture.fixture.window(
          day,
          csvOf([
            { id: `k${i}`, n, ...on(day) },
            { id: `${n}-${i}`, ...on(day) },
          ]),
        ),
      );
    await fixture.store([load('1'), load('2')]);
    expect(fixture.commits).toBe(2);
    expect(await fixture.read('SELECT _key, n FROM events ORDER BY _key')).toEqual([
      ...[0, 1, 2].map((i) => ({ _key: `1-${i}`, n: null })),
      ...[0, 1, 2].map((i) => ({ _key: `2-${i}`, n: null })),
      ...[0, 1, 2].map((i) => ({ _key: `k${i}`, n: '2' })),
    ]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('makes the same tables as its windows committed one by one, also of days that were loaded before [S53]', async () => {
    const modes = fc.constantFrom<SchemaMode>('evolve', 'evolve', 'freeze', 'fail');
    let [batches, commits] = [0, 0];
    const property = fc.asyncProperty(windows, windows, modes, async (list, again, mode) => {
      const [together, alone] = [made(target), made(target)];
      const windowsOf = (lists: typeof list) =>
        lists.map((rows, i) => {
          const cells = rows.map((one) => cellsOf(one, i));
          return together.fixture.window(addDays(FIRST, i), csvOf(cells, ['n', 'flag', 'df_items_k']));
        });
      const all = [windowsOf(list), windowsOf(again)];
      const oneByOne = all.flat().map((window) => [window]);
      const expected = await stored(alone, oneByOne, mode);
      expect(await stored(together, all, mode)).toEqual(expected);
      batches += oneByOne.length;
      commits += together.commits;
    });
    await fc.assert(property, { numRuns: RUNS });
    // Most windows are stored together with others.
    expect(commits).toBeLessThan(batches);
  });
});
