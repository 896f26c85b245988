import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import type { Window } from '../../../src/extract/window.ts';
import { verifyDuckDb } from '../../../src/sinks/duckdb/verify.ts';
import fc from '../../support/property.ts';
import { type Cells, csvOf, DuckDbFixture, on, pastedRows } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const dayOf = (n: number) => addDays('2026-01-01', n - 1);
const file = (name: string) => join(fixture.dir, `${name}.duckdb`);

/** All that a file holds of its rows, columns and receipts, apart from when a change was stored. */
async function contents(path: string) {
  const of = (sql: string) => query(path, sql);
  return {
    events: await of('SELECT * FROM events ORDER BY _key'),
    windows: await of('SELECT * FROM _dfinery_windows ORDER BY number'),
    columns: await of('SELECT * FROM _dfinery_columns ORDER BY position'),
    state: await of('SELECT v, timezone, state FROM _dfinery_state'),
    names: await of('SELECT * FROM _dfinery_event_names ORDER BY name'),
    items: await of('SELECT * FROM event_items ORDER BY _key'),
  };
}

/** Loads batches into one file and their windows one by one into another; both must hold the same. */
async function isSame(batches: readonly (readonly Window[])[], options = {}) {
  const [together, alone] = [file('together'), file('alone')];
  const repeats = [0, 0];
  for (const [i, path] of [together, alone].entries()) {
    const sink = await fixture.open({ file: path, ...options });
    for (const batch of i === 0 ? batches : batches.flat().map((window) => [window])) {
      for (let rest = batch; rest.length > 0; ) {
        const commit = await sink.commit(rest, fixture.signal);
        repeats[i] += commit.idRepeats;
        rest = rest.slice(commit.windows);
      }
    }
    await sink.close();
    expect(await verifyDuckDb({ file: path, lockWaitMs: 0, clock: fixture.targetOptions.clock })).toEqual([]);
  }
  const found = await contents(together);
  expect(found).toEqual(await contents(alone));
  expect(repeats[0]).toBe(repeats[1]);
  return found;
}

const window = (n: number, rows: readonly Cells[]) =>
  fixture.window(dayOf(n), csvOf(rows.map((row) => ({ ...on(dayOf(n)), ...row }))));

describe('a batch of windows in a DuckDB file is stored as its windows one by one [R712]', () => {
  it('with files of one header and of others, empty days, parts and rows without an id', async () => {
    const parts = fixture.window(dayOf(4), [
      csvOf([{ id: 'p', n: '1', ...on(dayOf(4)) }]),
      csvOf([{ id: 'q', m: '2' }]),
    ]);
    const { events, windows } = await isSame([
      [
        window(1, [
          { id: 'a', n: '1' },
          { id: 'b', n: '2' },
        ]),
        window(2, [{ id: 'c', n: '3' }]),
        fixture.window(dayOf(3), csvOf([], ['n'])),
        parts,
        window(5, [
          { id: 'd', other: 'x' },
          { id: 'e', other: '' },
        ]),
        window(6, [
          { id: '', n: '7' },
          { id: 'f', n: '8' },
          { id: 'f', n: '9' },
        ]),
      ],
    ]);
    expect(events).toHaveLength(10);
    expect(windows.map(({ rows_live }) => rows_live)).toEqual(['2', '1', '0', '2', '2', '3']);
  });

  it('when all of its days are read again, with fewer and with more rows', async () => {
    const first = [1, 2, 3].map((n) =>
      window(n, [
        { id: `a${n}`, v: '1' },
        { id: `b${n}`, v: '1' },
      ]),
    );
    const again = [1, 2, 3].map((n) =>
      window(n, [
        { id: `a${n}`, v: '2' },
        { id: `c${n}`, v: '2' },
      ]),
    );
    const { events } = await isSame([first, again]);
    expect(events.map(({ _key, v }) => `${_key}=${v}`)).toEqual([
      'a1=2',
      'a2=2',
      'a3=2',
      'b1=1',
      'b2=1',
      'b3=1',
      'c1=2',
      'c2=2',
      'c3=2',
    ]);
  });

  it('when an id is on several of its days: at one server time once, at others each', async () => {
    const time = on(dayOf(1));
    const { events } = await isSame([
      [
        window(1, [{ id: 'a', v: '1' }]),
        window(2, [{ id: 'a', v: '2', ...time }, { id: 'b' }]),
        window(3, [{ id: 'b' }]),
      ],
      [window(4, [{ id: 'b' }, { id: 'b#2' }]), window(1, [{ id: 'a', v: '3' }])],
    ]);
    expect(events.length).toBeGreaterThan(3);
  });

  it('when a later day makes a text of what earlier days had as another type, or changes names', async () => {
    const days = ['TRUE', '1', '1.5', 'null', 'word', '2026-01-01', '[1,2]'];
    const { columns } = await isSame([
      days.map((x, i) => window(i + 1, [{ id: `i${i}`, x, [`X${i % 2 ? '' : 'y'}`]: '1' }])),
    ]);
    expect(columns.find(({ source_name }) => source_name === 'x')?.type).toBe('string');
  });

  it('under a schema_mode that holds each window to the columns before it', async () => {
    const windows = [
      window(1, [{ id: 'a', x: '1' }]),
      window(2, [{ id: 'b', x: '1.5', y: '2' }]),
      window(3, [{ id: 'c', x: '2' }]),
    ];
    await isSame([windows], { schemaMode: 'freeze' });
  });

  it('whatever the days bring', async () => {
    const cell = fc.constantFrom(
      '',
      'null',
      '1',
      '2',
      '1.5',
      'TRUE',
      'x',
      '2026-01-02',
      '2026-01-02 10:00:00.000',
      '["a"]',
    );
    const row = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd#2', 'e', 'f', ''),
      x: cell,
      late: fc.boolean(),
      df_items_n: cell,
    });
    const day = fc.record({ rows: fc.array(row, { maxLength: 4 }), column: fc.constantFrom('y', 'Y', 'y_2', 'z') });
    await fc.assert(
      fc.asyncProperty(fc.array(day, { minLength: 2, maxLength: 5 }), fc.boolean(), async (days, rereads) => {
        fixture.close();
        fixture = new DuckDbFixture();
        const windows = days.map(({ rows, column }, i) =>
          window(
            i + 1,
            rows.map(({ late, ...cells }) => ({ ...cells, [column]: cells.x, ...(late ? on(dayOf(1)) : {}) })),
          ),
        );
        const again = rereads
          ? days.map(({ rows }, i) =>
              window(
                i + 1,
                rows.slice(1).map(({ late: _, ...cells }) => cells),
              ),
            )
          : [];
        await isSame([windows, ...(again.length > 0 ? [again] : [])]);
      }),
      { numRuns: 15 },
    );
  });
});

describe('a file that DuckDB refuses to read in parallel [R713]', () => {
  it('is read with one reader, as all others are', async () => {
    const [commit] = await fixture.load([fixture.window(dayOf(1), pastedRows())], { memoryLimit: '1GB' });
    const [{ rows, longest }] = await fixture.query('SELECT count(*) AS rows, max(length(c05)) AS longest FROM events');
    expect(Number(rows)).toBe(commit.rows);
    expect(Number(longest)).toBeGreaterThan(500_000);
    expect(fixture.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
