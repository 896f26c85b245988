import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { prepareWindow } from '../../../src/sinks/parquet/commit/commit.ts';
import { type Change, openDataset } from '../../../src/sinks/parquet/dataset/dataset.ts';
import { verifyParquet } from '../../../src/sinks/parquet/verify.ts';
import { literal } from '../../../src/types/sql.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { ParquetBench } from '../../support/targets/parquet.ts';

let bench: ParquetBench;
beforeEach(() => {
  bench = new ParquetBench();
});
afterEach(() => bench.close());

const PARTITION = 'events/event_date=2026-01-01/data_0.parquet';
const THROUGH_LINK = 'events/event_date=2026-01-09/data_0.parquet';
const TABLES = ['events', 'event_items', 'event_logs'] as const;

/** a and b swap their dates (a cycle), c leaves a date that gains nothing, d stays, the type of n widens, x is new. */
const FIRST = csvOf([
  { id: 'a:1', n: '1', df_items_k: 'p', ...on('2026-01-01') },
  { id: 'b', n: '1', ...on('2026-01-02') },
  { id: 'c', n: '1', ...on('2026-01-03') },
  { id: 'd', n: '1', ...on('2026-01-04') },
  { id: 'e', n: '1', ...on('2026-01-03') },
]);
const SECOND = csvOf([
  { id: 'a:1', n: '2.5', df_items_k: 'q', x: 'y', ...on('2026-01-02') },
  { id: 'b', n: '2', ...on('2026-01-01') },
  { id: 'c', n: '2', ...on('2026-01-02') },
]);

/** The second window's change, prepared and not carried out; what waits for it stays where it is. */
async function prepared(): Promise<Change> {
  const dataset = await openDataset(bench.folderOptions);
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
    expect(await verifyParquet(bench.folderOptions)).toEqual([]);
    await (await openDataset(bench.folderOptions)).close();
    expect(bench.files()).toEqual(before);
    expect(bench.manifest.receipts).toHaveLength(1);
  });

  it('at any step after it never shows a row twice, and the next run finishes its work [R45]', async () => {
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
      await (await openDataset(bench.folderOptions)).close();
      expect(await bench.read('SELECT _key, n, x, event_date AS d FROM events ORDER BY _key')).toEqual([
        { _key: 'a:1', n: 2.5, x: 'y', d: '2026-01-02' },
        { _key: 'b', n: 2, x: null, d: '2026-01-01' },
        { _key: 'c', n: 2, x: null, d: '2026-01-02' },
        { _key: 'd', n: 1, x: null, d: '2026-01-04' },
        { _key: 'e', n: 1, x: null, d: '2026-01-03' },
      ]);
      expect(bench.files().filter((file) => /journal|tmp|part$|next$/.test(file))).toEqual([]);
    }
    expect(await verifyParquet(bench.folderOptions)).toEqual([]);
    rmSync(origin, { recursive: true });
  });

  it.each(['manifest.json', 'journal.json'])('may also be a disk that refuses %s', async (name) => {
    await bench.store([bench.window('2026-01-01', FIRST)], { tables: TABLES });
    const refused = join(bench.root, '_dfinery', name);
    for (const isClosed of [false, true]) {
      const sink = await bench.openFolder({ tables: TABLES });
      if (existsSync(refused)) await rename(refused, `${refused}.aside`);
      mkdirSync(join(refused, 'full'), { recursive: true });
      await expect(sink.commit([bench.window('2026-01-01', SECOND)], bench.signal)).rejects.toThrow();
      rmSync(refused, { recursive: true });
      if (existsSync(`${refused}.aside`)) await rename(`${refused}.aside`, refused);
      if (isClosed) await sink.close();
      const next = isClosed ? await bench.openFolder({ tables: TABLES }) : sink;
      await next.commit([bench.window('2026-01-01', SECOND)], bench.signal);
      await next.close();
      expect(await verifyParquet(bench.folderOptions)).toEqual([]);
      expect(await bench.read('SELECT _key, n FROM events ORDER BY _key')).toEqual([
        { _key: 'a:1', n: 2.5 },
        { _key: 'b', n: 2 },
        { _key: 'c', n: 2 },
        { _key: 'd', n: 1 },
        { _key: 'e', n: 1 },
      ]);
    }
  });

  it.each([
    ['goes on', false],
    ['is closed, and the next one goes on', true],
  ])(
    'may also be a disk that refuses a file between two others: the writer %s, and no row is lost [R494]',
    async (_, isClosed) => {
      const [one, two, three] = ['2026-01-01', '2026-01-02', '2026-01-03'];
      await bench.store([bench.window(one, csvOf([{ id: 'a', n: '1', ...on(one) }]))]);
      const sink = await bench.openFolder();
      const refused = join(bench.root, `events/event_date=${two}`);
      writeFileSync(refused, '');
      const both = [
        { id: 'a', n: '2', ...on(one) },
        { id: 'b', n: '2', ...on(two) },
      ];
      await expect(sink.commit([bench.window(one, csvOf(both), undefined, 2)], bench.signal)).rejects.toThrow();
      rmSync(refused);
      if (isClosed) await sink.close();
      const next = isClosed ? await bench.openFolder() : sink;
      await next.commit([bench.window(three, csvOf([{ id: 'c', n: '3', ...on(three) }]))], bench.signal);
      await next.close();
      expect(await bench.read('SELECT _key, n::INT AS n FROM events ORDER BY 1')).toEqual([
        { _key: 'a', n: 2 },
        { _key: 'b', n: 2 },
        { _key: 'c', n: 3 },
      ]);
      expect(await verifyParquet(bench.folderOptions)).toEqual([]);
    },
  );

  it.each<[string, (change: Change) => object]>([
    ['removes a file outside', () => ({ removes: ['../victim'] })],
    ['removes a file by its whole path', () => ({ removes: [join(`${bench.root}-outside`, 'victim')] })],
    ['removes a file that is no partition', () => ({ removes: ['_dfinery/lock'] })],
    ['moves a file out', ({ moves }) => ({ moves: [{ from: moves[0]?.from, to: '../victim' }] })],
    ['moves a file in', () => ({ moves: [{ from: '_dfinery/tmp/../../../victim', to: PARTITION }] })],
    ['removes a file through a link', () => ({ removes: [THROUGH_LINK] })],
    ['moves a file through a link', ({ moves }) => ({ moves: [{ ...moves[0], to: THROUGH_LINK }] })],
    ['moves a link in', () => ({ moves: [{ from: '_dfinery/tmp/link', to: PARTITION }] })],
    ['moves what does not wait', () => ({ moves: [{ from: '_dfinery/manifest.json', to: PARTITION }] })],
    ['moves a folder beside', () => ({ moves: [{ from: '_dfinery/tmpx/file', to: PARTITION }] })],
    ['moves by a way of its own', () => ({ moves: [{ from: '_dfinery/tmp/./link', to: PARTITION }] })],
    ['moves all that waits', () => ({ moves: [{ from: '_dfinery/tmp/', to: PARTITION }] })],
    ['moves nothing to a file', () => ({ moves: [{ from: null, to: PARTITION }] })],
    ['moves a file to a list', ({ moves }) => ({ moves: [{ ...moves[0], to: [PARTITION] }] })],
    ['moves nothing at all', () => ({ moves: [null] })],
    ['moves no list', () => ({ moves: {} })],
    ['moves one file well and another out', ({ moves }) => ({ moves: [...moves, { from: moves[0]?.from, to: 'x' }] })],
    ['removes a file well and another outside', () => ({ removes: [PARTITION, '../victim'] })],
    ['says nothing of the manifest', () => ({ manifest: undefined })],
    ['is of a later version', () => ({ v: 2 })],
    ['is no list', () => ({ removes: {} })],
  ])('of somebody who %s is refused, and nothing is touched [R186]', async (_name, forged) => {
    await bench.store([bench.window('2026-01-01', FIRST)]);
    const change = await prepared();
    const outside = `${bench.root}-outside`;
    mkdirSync(outside);
    for (const path of [
      join(outside, 'victim'),
      join(outside, 'data_0.parquet'),
      join(dirname(bench.root), 'victim'),
    ]) {
      writeFileSync(path, 'theirs');
    }
    symlinkSync(outside, join(bench.root, dirname(THROUGH_LINK)));
    symlinkSync(join(outside, 'victim'), join(bench.root, '_dfinery/tmp/link'));
    const journal = { v: 1, moves: change.moves, removes: [], manifest: change.manifest, ...forged(change) };
    writeFileSync(join(bench.root, '_dfinery/journal.json'), JSON.stringify(journal));
    const before = bench.files();
    await expect(openDataset(bench.folderOptions)).rejects.toMatchObject({ kind: 'config' });
    await expect(verifyParquet(bench.folderOptions)).rejects.toMatchObject({ kind: 'transient' });
    expect(bench.files()).toEqual(before);
    for (const path of [
      join(outside, 'victim'),
      join(outside, 'data_0.parquet'),
      join(dirname(bench.root), 'victim'),
    ]) {
      expect(readFileSync(path, 'utf8')).toBe('theirs');
      rmSync(path);
    }
    rmSync(outside, { recursive: true });
  });

  it('is left as it is by verify, which writes nothing [R186]', async () => {
    await bench.store([bench.window('2026-01-01', FIRST)]);
    const change = await prepared();
    const journal = { v: 1, moves: change.moves, removes: [], manifest: change.manifest };
    writeFileSync(join(bench.root, '_dfinery/journal.json'), JSON.stringify(journal));
    const times = () => bench.files().map((file) => [file, statSync(join(bench.root, file)).mtimeMs]);
    const before = times();
    await expect(verifyParquet(bench.folderOptions)).rejects.toMatchObject({ kind: 'transient' });
    expect(times()).toEqual(before);
    rmSync(join(bench.root, '_dfinery/journal.json'));
    const settled = times();
    expect(await verifyParquet(bench.folderOptions)).toEqual([]);
    expect(times()).toEqual(settled);
  });

  it('whose waiting files somebody took is not believed', async () => {
    await bench.store([bench.window('2026-01-01', FIRST)]);
    const change = await prepared();
    const journal = { v: 1, moves: change.moves, removes: [], manifest: change.manifest };
    writeFileSync(join(bench.root, '_dfinery/journal.json'), JSON.stringify(journal));
    rmSync(join(bench.root, '_dfinery/tmp'), { recursive: true });
    await expect(openDataset(bench.folderOptions)).rejects.toThrow(/somebody else took it away/);
  });
});
