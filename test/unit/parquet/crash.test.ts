import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { prepareWindow } from '../../../src/sinks/parquet/commit/commit.ts';
import { type Change, openDataset } from '../../../src/sinks/parquet/dataset/dataset.ts';
import { verifyParquet } from '../../../src/sinks/parquet/verify.ts';
import { literal } from '../../../src/types/sql.ts';
import { csvOf } from '../../support/duckdb.ts';
import { ParquetBench } from '../../support/parquet.ts';

let bench: ParquetBench;
beforeEach(() => {
  bench = new ParquetBench();
});
afterEach(() => bench.close());

const at = (day: string) => ({
  df_server_datetime: `${day} 10:00:00.000`,
  df_correction_datetime: `${day} 10:00:00.000`,
});
const options = () => ({ dir: bench.root, lockWaitMs: 0, clock: systemClock, logger: silentLogger });
const TABLES = ['events', 'event_items', 'event_logs'] as const;

/** a and b swap their dates (a cycle), c leaves a date that gains nothing, d stays, the type of n widens, x is new. */
const FIRST = csvOf([
  { id: 'a:1', n: '1', df_items_k: 'p', ...at('2026-01-01') },
  { id: 'b', n: '1', ...at('2026-01-02') },
  { id: 'c', n: '1', ...at('2026-01-03') },
  { id: 'd', n: '1', ...at('2026-01-04') },
  { id: 'e', n: '1', ...at('2026-01-03') },
]);
const SECOND = csvOf([
  { id: 'a:1', n: '2.5', df_items_k: 'q', x: 'y', ...at('2026-01-02') },
  { id: 'b', n: '2', ...at('2026-01-01') },
  { id: 'c', n: '2', ...at('2026-01-02') },
]);

/** The second window's change, prepared and not carried out; what waits for it stays where it is. */
async function prepared(): Promise<Change> {
  const dataset = await openDataset(options());
  try {
    await dataset.clear();
    const rules = { zoned: false, columnTypes: new Map(), pinned: undefined, mode: 'evolve' } as const;
    const settings = { rules, zone: undefined, tables: TABLES };
    const { change } = await dataset.engine.transaction(() =>
      prepareWindow(dataset, bench.window('2026-01-01', SECOND), settings),
    );
    cpSync(bench.root, `${bench.root}-waiting`, { recursive: true });
    return change;
  } finally {
    await dataset.close();
    rmSync(bench.root, { recursive: true });
    await rename(`${bench.root}-waiting`, bench.root);
  }
}

const seen = () =>
  bench.read(
    `SELECT split_part(_key, ':', 1) AS id, count(*)::INT AS times FROM read_parquet(${literal(`${bench.root}/events/*/*.parquet`)},
    union_by_name = true) GROUP BY id ORDER BY id`,
  );

describe('a writer that dies', () => {
  it('before it has decided leaves everything as it was', async () => {
    await bench.store([bench.window('2026-01-01', FIRST)], { tables: TABLES });
    const before = bench.files();
    await prepared();
    expect(bench.files().length).toBeGreaterThan(before.length);
    expect(await verifyParquet(options())).toEqual([]);
    expect(bench.files()).toEqual(before);
    expect(bench.manifest.receipts).toHaveLength(1);
  });

  it('at any step after it never shows a row twice, and the next run finishes its work', async () => {
    await bench.store([bench.window('2026-01-01', FIRST)]);
    const change = await prepared();
    const origin = `${bench.root}-origin`;
    await rename(bench.root, origin);
    const moves = change.moves.filter(({ to }) => to.startsWith('events/'));
    expect(moves.length).toBeGreaterThan(4);
    for (let steps = 0; steps <= change.moves.length; steps++) {
      rmSync(bench.root, { recursive: true, force: true });
      cpSync(origin, bench.root, { recursive: true });
      writeFileSync(
        join(bench.root, '_dfinery/journal.json'),
        JSON.stringify({ v: 1, moves: change.moves, removes: [], manifest: change.manifest }),
      );
      for (const { from, to } of change.moves.slice(0, steps)) {
        mkdirSync(dirname(join(bench.root, to)), { recursive: true });
        await rename(join(bench.root, from), join(bench.root, to));
      }
      for (const { id, times } of await seen()) expect({ steps, id, times }).toEqual({ steps, id, times: 1 });
      await (await openDataset(options())).close();
      expect(await bench.read('SELECT _key, n, x, event_date AS d FROM events ORDER BY _key')).toEqual([
        { _key: 'a:1', n: 2.5, x: 'y', d: '2026-01-02' },
        { _key: 'b', n: 2, x: null, d: '2026-01-01' },
        { _key: 'c', n: 2, x: null, d: '2026-01-02' },
        { _key: 'd', n: 1, x: null, d: '2026-01-04' },
        { _key: 'e', n: 1, x: null, d: '2026-01-03' },
      ]);
      expect(bench.files().filter((file) => /journal|tmp|part$|next$/.test(file))).toEqual([]);
    }
    expect(await verifyParquet(options())).toEqual([]);
    rmSync(origin, { recursive: true });
  });

  it.each(['manifest.json.next', 'journal.json.next'])('may also be a disk that refuses %s', async (name) => {
    await bench.store([bench.window('2026-01-01', FIRST)], { tables: TABLES });
    const blocked = join(bench.root, '_dfinery', name, 'full');
    for (const isClosed of [false, true]) {
      const sink = await bench.openFolder({ tables: TABLES });
      mkdirSync(blocked, { recursive: true });
      await expect(sink.commit(bench.window('2026-01-01', SECOND), bench.signal)).rejects.toThrow();
      rmSync(dirname(blocked), { recursive: true });
      if (isClosed) await sink.close();
      const next = isClosed ? await bench.openFolder({ tables: TABLES }) : sink;
      await next.commit(bench.window('2026-01-01', SECOND), bench.signal);
      await next.close();
      expect(await verifyParquet(options())).toEqual([]);
      expect(await bench.read('SELECT _key, n FROM events ORDER BY _key')).toEqual([
        { _key: 'a:1', n: 2.5 },
        { _key: 'b', n: 2 },
        { _key: 'c', n: 2 },
        { _key: 'd', n: 1 },
        { _key: 'e', n: 1 },
      ]);
    }
  });

  it('whose waiting files somebody took is not believed', async () => {
    await bench.store([bench.window('2026-01-01', FIRST)]);
    const change = await prepared();
    const journal = { v: 1, moves: change.moves, removes: [], manifest: change.manifest };
    writeFileSync(join(bench.root, '_dfinery/journal.json'), JSON.stringify(journal));
    rmSync(join(bench.root, '_dfinery/tmp'), { recursive: true });
    await expect(openDataset(options())).rejects.toThrow(/somebody else took it away/);
  });
});
