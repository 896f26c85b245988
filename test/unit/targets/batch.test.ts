import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import type { SchemaMode } from '../../../src/config/source.ts';
import { SharedIds } from '../../../src/engine/rows/superseded.ts';
import type { Window } from '../../../src/extract/window.ts';
import fc from '../../support/property.ts';
import { type Cells, csvOf, on, pastedRows } from '../../support/targets/csv.ts';
import { withMemoryForOneStatement } from '../../support/targets/memory-shortage.ts';
import {
  FILE_TARGETS,
  FilesFixture,
  TARGETS,
  TargetFixture,
  type TargetName,
} from '../../support/targets/target-fixture.ts';

const FIRST = '2026-01-01';
const RUNS = 4;

let fixtures: TargetFixture[] = [];
afterEach(() => {
  for (const fixture of fixtures) fixture.close();
  fixtures = [];
});

function made<F extends TargetFixture>(fixture: F): F {
  fixtures.push(fixture);
  return fixture;
}

/** All that a place holds, but for when and how columns changed. */
async function held(fixture: TargetFixture) {
  if ((await fixture.priorLoads()).state === undefined) return undefined;
  const { state, columns } = await fixture.report();
  const read = (table: string) => fixture.read(`SELECT * FROM ${table} ORDER BY ALL`);
  const hasRows = (await fixture.keys()).length > 0;
  const tables = hasRows ? await Promise.all(['events', 'event_items', 'event_logs'].map(read)) : [];
  expect(await fixture.verify()).toEqual([]);
  return { state: { ...state, changes: undefined }, columns, tables };
}

/** What stays after these batches, how many rows share an id with others, and whether a batch was refused. */
async function stored(fixture: TargetFixture, batches: readonly (readonly Window[])[], schemaMode: SchemaMode) {
  const commits = await fixture.store(batches, { schemaMode }).catch((error: unknown) => {
    expect(error).toMatchObject({ kind: 'config', message: expect.stringContaining('schema_mode is fail') });
    return undefined;
  });
  const idRepeats = commits?.reduce((sum, commit) => sum + commit.idRepeats, 0);
  return { isRefused: commits === undefined, idRepeats, commits: commits?.length, held: await held(fixture) };
}

/** Stores batches in one place and their windows one by one in another: both must hold the same. */
async function isSame(name: TargetName, batchesOf: (place: TargetFixture) => Window[][], mode: SchemaMode = 'evolve') {
  const [together, alone] = [made(TargetFixture.of(name)), made(TargetFixture.of(name))];
  const batches = batchesOf(together);
  const oneByOne = batches.flat().map((window) => [window]);
  const { commits: single, ...expected } = await stored(alone, oneByOne, mode);
  const { commits, ...found } = await stored(together, batches, mode);
  expect(found).toEqual(expected);
  return { commits: commits ?? 0, single: single ?? 0, ...found };
}

type Rows = readonly (readonly Cells[])[];
const day = (n: number) => addDays(FIRST, n);
/** Each list is a batch; each of its members the rows of one day, from the first on. */
const EXAMPLES: Readonly<Record<string, { readonly batches: readonly Rows[]; readonly mode?: SchemaMode }>> = {
  'days of one header and of others, empty ones, and rows without an id': {
    batches: [
      [
        [
          { id: 'a', n: '1' },
          { id: 'b', n: '2' },
        ],
        [{ id: 'c', n: '3' }],
        [],
        [
          { id: 'd', other: 'x' },
          { id: 'e', other: '' },
        ],
        [
          { id: '', n: '7' },
          { id: 'f', n: '8' },
          { id: 'f', n: '9' },
        ],
      ],
    ],
  },
  'days that are read again, with fewer and with more rows': {
    batches: ['1', '2'].map((v) =>
      [0, 1, 2].map((n) => [
        { id: `a${n}`, v },
        { id: `${v === '1' ? 'b' : 'c'}${n}`, v },
      ]),
    ),
  },
  'an id on several days, at one server time and at others': {
    batches: [
      [
        [{ id: 'a', v: '1' }],
        [{ id: 'a', v: '2', ...on(FIRST) }, { id: 'b' }],
        [{ id: 'b' }],
        [{ id: 'b' }, { id: 'b#2' }],
      ],
      [[{ id: 'a', v: '3' }]],
    ],
  },
  'days that make a text of what earlier days had as another type, or change names': {
    batches: [
      ['TRUE', '1', '1.5', 'null', 'word', '2026-01-01', '[1,2]'].map((x, i) => [
        { id: `i${i}`, x, [`X${i % 2 ? '' : 'y'}`]: '1' },
      ]),
    ],
  },
  'days that freeze holds to the columns before them': {
    batches: [[[{ id: 'a', x: '1' }], [{ id: 'b', x: '1.5', y: '2' }], [{ id: 'c', x: '2' }]]],
    mode: 'freeze',
  },
};

/** Ids that windows share now and then; cells that widen a column, make a text of it, or are the text `null`; dates that drift. */
const cell = fc.constantFrom(
  '1',
  '1',
  '2',
  '2.5',
  'null',
  '',
  'x',
  'TRUE',
  '2026-01-02',
  '2026-01-02 10:00:00.000',
  '["a"]',
);
const row = fc.record({
  id: fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom('s:0', 's:1', 's#2', undefined) },
    { weight: 4, arbitrary: fc.nat(99) },
  ),
  drift: fc.constantFrom(0, 0, 0, -1, 1),
  cells: fc.record(
    { n: cell, flag: fc.constantFrom('TRUE', '', 'null', '7'), Y: cell, y: cell, y_2: cell, df_items_k: cell },
    { requiredKeys: ['n', 'flag', 'df_items_k'] },
  ),
});
type Row = typeof row extends fc.Arbitrary<infer R> ? R : never;
const windows = fc.array(fc.array(row, { minLength: 0, maxLength: 4 }), { minLength: 2, maxLength: 5 });
const cellsOf = ({ id, drift, cells }: Row, n: number): Cells => ({
  ...(id !== undefined && { id: typeof id === 'number' ? `w${n}-${id}:0` : id }),
  ...cells,
  ...on(day(n + drift)),
});

describe.each(TARGETS)('a batch of windows in %s equals its windows stored one by one', (name) => {
  it.each(Object.keys(EXAMPLES))('with %s', async (example) => {
    const { batches, mode } = EXAMPLES[example];
    const { held: found } = await isSame(
      name,
      ({ fixture }) => batches.map((days) => days.map((rows, n) => fixture.windowOf(day(n), ...rows))),
      mode,
    );
    expect(found?.tables[0].length).toBeGreaterThan(2);
  });

  it('with a window of several files', async () => {
    const { held: found } = await isSame(name, ({ fixture }) => [
      [
        fixture.windowOf(day(0), { id: 'a', n: '1' }),
        fixture.window(day(1), [
          csvOf([{ id: 'p', n: '1', ...on(day(1)) }]),
          csvOf([{ id: 'q', m: '2', ...on(day(1)) }]),
        ]),
      ],
    ]);
    expect(found?.tables[0]).toHaveLength(3);
  });

  it('for any days, also those that were loaded before', async () => {
    const modes = fc.constantFrom<SchemaMode>('evolve', 'evolve', 'freeze', 'fail');
    let [committed, single] = [0, 0];
    const property = fc.asyncProperty(windows, windows, modes, async (list, again, mode) => {
      const found = await isSame(
        name,
        ({ fixture }) =>
          [list, again].map((days) =>
            days.map((rows, n) => {
              const cells = rows.map((one) => cellsOf(one, n));
              return fixture.window(day(n), csvOf(cells, ['n', 'flag', 'df_items_k']));
            }),
          ),
        mode,
      );
      committed += found.commits;
      single += found.single;
    });
    await fc.assert(property, { numRuns: RUNS });
    // Most windows are stored together with others.
    if (single > 0) expect(committed).toBeLessThan(single);
  });

  it('or is refused as a whole, with nothing stored, if windows share ids', async () => {
    const fixture = made(TargetFixture.of(name));
    const windows = [0, 1].map((n) => fixture.fixture.windowOf(day(n), { id: 'k' }, { id: `own${n}` }));
    const sink = await fixture.open();
    await expect(sink.commit(windows, fixture.fixture.signal)).rejects.toBeInstanceOf(SharedIds);
    expect(sink.state?.receipts ?? []).toEqual([]);
    for (const window of windows) await sink.commit([window], fixture.fixture.signal);
    await sink.close();
    expect(await fixture.keys()).toEqual(['k', 'k#2', 'own0', 'own1']);
    expect(await fixture.verify()).toEqual([]);
  });

  it('with a single-threaded reader if the parallel one refuses a file', async () => {
    const fixture = made(TargetFixture.of(name));
    const windows = [fixture.fixture.windowOf(day(0), { id: 'k' }), fixture.fixture.window(day(1), pastedRows())];
    const commits = await fixture.store([windows], { memoryLimit: '1GB', tables: ['events'] });
    const [{ rows, longest }] = await fixture.read('SELECT count(*) AS rows, max(length(c05)) AS longest FROM events');
    expect(Number(rows)).toBe(commits.reduce((sum, commit) => sum + commit.rows, 0));
    expect(Number(longest)).toBeGreaterThan(500_000);
    expect(fixture.fixture.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe.each(FILE_TARGETS)('a batch of windows in %s', (name) => {
  it('is stored with memory for a single window, also while another is being written', async () => {
    const fixture = made(new FilesFixture(name));
    const windows = [0, 1, 2].map((i) => fixture.fixture.windowOf(day(i), { id: `k${i}` }));
    await withMemoryForOneStatement(() => fixture.store([windows]));
    expect(await fixture.keys()).toEqual(['k0', 'k1', 'k2']);
    expect(await fixture.verify()).toEqual([]);
  });

  it('is one commit, with a receipt for each window, and one more if all its days are read again', async () => {
    const fixture = made(new FilesFixture(name));
    const days = [0, 1, 2].map(day);
    const load = (n: string) =>
      days.map((one, i) => fixture.fixture.windowOf(one, { id: `k${i}`, n }, { id: `${n}-${i}`, n }));
    const first = load('1');
    const [commit] = await fixture.store([first]);
    expect(commit).toMatchObject({ windows: 3, rows: 6, idRepeats: 0 });
    expect(fixture.commits).toBe(1);
    const { state } = (await fixture.snapshot()) ?? {};
    expect(state?.receipts.map(({ id, window, rows_live: live }) => [id, window, live])).toEqual(
      first.map(({ receipt }, n) => [receipt.id, n + 1, 2]),
    );
    expect(state?.exportState).toEqual(first[2].state);
    await fixture.store([load('2')]);
    expect(fixture.commits).toBe(2);
    expect(await fixture.read('SELECT _key, n, _dfinery_window::INT AS w FROM events ORDER BY _key')).toEqual([
      ...[0, 1, 2].map((i) => ({ _key: `1-${i}`, n: '1', w: i + 1 })),
      ...[0, 1, 2].map((i) => ({ _key: `2-${i}`, n: '2', w: i + 4 })),
      ...[0, 1, 2].map((i) => ({ _key: `k${i}`, n: '2', w: i + 4 })),
    ]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('leaves nothing if it is stopped while its first rows are written', async () => {
    const fixture = made(new FilesFixture(name));
    const sink = await fixture.open();
    const ids = Array.from({ length: 50 }, (_, i) => ({ id: `k${i}` }));
    for (const one of [0, 1, 2].map(day)) sink.begin?.(fixture.fixture.windowOf(one, ...ids));
    await sink.close();
    expect(await fixture.snapshot()).toBeUndefined();
    const left = readdirSync(fixture.fixture.dir, { recursive: true, encoding: 'utf8' });
    expect([...left, ...fixture.files()].filter((path) => path.includes('incoming'))).toEqual([]);
  });
});
