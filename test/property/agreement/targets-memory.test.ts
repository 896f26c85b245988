import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Window } from '../../../src/extract/window.ts';
import { verifyDuckDb } from '../../../src/sinks/duckdb/verify.ts';
import { Engine } from '../../../src/sinks/sql/engine/engine.ts';
import type { TableName } from '../../../src/table/columns.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { type Cells, csvOf, DuckDbFixture, on } from '../../support/targets/duckdb.ts';
import { verifyDelta, verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

const TABLES: readonly TableName[] = ['events', 'event_items', 'event_logs'];
const DAY = '2026-01-01';
const NEXT = '2026-01-02';

const item = (log: string, position: number, day: typeof DAY | typeof NEXT, more: Cells = {}): Cells => ({
  id: `${log}:${position}`,
  df_event_log_id: log,
  df_items_price: String(position),
  ...on(day),
  ...more,
});
/** Two days, of which the first is read again: a row changes, an event moves to the next day, a number becomes a text. */
const windowsOf = (fixture: DuckDbFixture): Window[] => [
  fixture.window(DAY, csvOf([item('a', 0, DAY), item('a', 1, DAY), item('b', 0, DAY, { n: '1' }), item('b', 0, DAY)])),
  fixture.window(NEXT, csvOf([item('c', 1, NEXT), item('c', 0, NEXT), { id: '', n: '5', ...on(NEXT) }])),
  fixture.window(DAY, csvOf([item('a', 0, DAY, { n: 'text' }), item('a', 1, NEXT), item('d', 7, DAY)])),
];

/** From now on each engine says that memory is short, until it uses one thread; returns how often it said so. */
function runOutOfMemory(): () => number {
  const small = new WeakSet<Engine>();
  const { run } = Engine.prototype;
  let count = 0;
  vi.spyOn(Engine.prototype, 'run').mockImplementation(function (this: Engine, sql, values) {
    if (sql === 'SET threads = 1') small.add(this);
    if (sql === 'RESET threads') small.delete(this);
    if (/^\s*(COPY|INSERT INTO (events|event_items)\b)/.test(sql) && !small.has(this)) {
      count++;
      return Promise.reject(new Error('Out of Memory Error: could not allocate block'));
    }
    return run.call(this, sql, values);
  });
  return () => count;
}

const fixtures: DuckDbFixture[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const fixture of fixtures.splice(0)) fixture.close();
});

function made<B extends DuckDbFixture>(fixture: B): B {
  fixtures.push(fixture);
  return fixture;
}

type Read = (sql: string) => Promise<Record<string, unknown>[]>;
/** How each target stores the windows; what it returns reads its tables and says what is wrong with them. */
const KINDS: Record<string, () => Promise<{ readonly read: Read; readonly problems: unknown[] }>> = {
  duckdb: async () => {
    const fixture = made(new DuckDbFixture());
    await fixture.load(windowsOf(fixture));
    const problems = await verifyDuckDb({ ...fixture.targetOptions, file: fixture.file });
    return { read: (sql) => fixture.query(sql), problems };
  },
  parquet: async () => {
    const fixture = made(new ParquetFixture());
    await fixture.store(windowsOf(fixture), { tables: TABLES });
    const problems = await verifyParquet(fixture.folderOptions);
    return { read: (sql) => fixture.read(sql), problems };
  },
  delta: async () => {
    const fixture = made(new DeltaFixture());
    await fixture.store(windowsOf(fixture), { tables: TABLES });
    return { read: (sql) => fixture.read(sql), problems: await verifyDelta(fixture.lakeOptions) };
  },
};

describe('a target whose memory is short', () => {
  it.each(Object.keys(KINDS))('%s: stores the same rows with one thread', async (name) => {
    const load = KINDS[name];
    const shown = async ({ read, problems }: Awaited<ReturnType<typeof load>>) => {
      expect(problems).toEqual([]);
      return await Promise.all(TABLES.map((table) => read(`SELECT * FROM ${table} ORDER BY ALL`)));
    };
    const usual = await shown(await load());
    const said = runOutOfMemory();
    const small = await load();
    expect(said()).toBeGreaterThan(0);
    vi.restoreAllMocks();
    expect(await shown(small)).toEqual(usual);
    expect(usual.map((rows) => rows.length)).toEqual([8, 7, 5]);
  });
});
