import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { transientError } from '../../../src/base/errors.ts';
import { literal } from '../../../src/cells/types/sql.ts';
import type { Journal, Move } from '../../../src/targets/parquet/journal.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { compactParquet, purgeParquet, verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => {
  dying.at = undefined;
  fixture.close();
});

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

/** What a writer calls with its journal instead of executing it; undefined: it executes it. */
const dying = vi.hoisted(() => ({ at: undefined as ((journal: Journal) => void) | undefined }));
vi.mock(import('../../../src/targets/parquet/journal.ts'), async (original) => {
  const journal = await original();
  return {
    ...journal,
    execute: async (paths, decided) => {
      if (dying.at === undefined) return journal.execute(paths, decided);
      dying.at(decided);
      throw transientError('the writer died');
    },
  };
});

/** The journal of a writer that died before it wrote it; what waits for it stays where it is. */
async function prepared(work: () => Promise<unknown> = loadSecond): Promise<Journal> {
  const waiting = `${fixture.root}-waiting`;
  let found: Journal | undefined;
  dying.at = (journal) => {
    found = journal;
    cpSync(fixture.root, waiting, { recursive: true });
  };
  await expect(work()).rejects.toThrow('the writer died');
  dying.at = undefined;
  if (found === undefined) throw new Error('no journal');
  rmSync(fixture.root, { recursive: true });
  await rename(waiting, fixture.root);
  return found;
}
const loadSecond = () => fixture.store([fixture.window('2026-01-01', SECOND)], { tables: TABLES });
/** The first move of a journal. */
const moveIn = ({ steps }: Journal) => steps.find((step) => 'from' in step);
const reopen = async () => (await fixture.openFolder()).close();

async function take(step: Move): Promise<void> {
  if ('remove' in step) return rmSync(join(fixture.root, step.remove));
  mkdirSync(dirname(join(fixture.root, step.to)), { recursive: true });
  await rename(join(fixture.root, step.from), join(fixture.root, step.to));
}

/** Lets a writer die after every step of its journal; each time the next run finishes it. */
async function atEveryStep(journal: Journal, check: (steps: number) => Promise<void>, end: () => Promise<void>) {
  const origin = `${fixture.root}-origin`;
  await rename(fixture.root, origin);
  for (let steps = 0; steps <= journal.steps.length; steps++) {
    rmSync(fixture.root, { recursive: true, force: true });
    cpSync(origin, fixture.root, { recursive: true });
    writeFileSync(join(fixture.root, '_dfinery/journal.json'), JSON.stringify(journal));
    for (const step of journal.steps.slice(0, steps)) await take(step);
    await check(steps);
    await reopen();
    await end();
    expect(fixture.files().filter((file) => /journal|tmp|part$|next$/.test(file))).toEqual([]);
  }
  expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  rmSync(origin, { recursive: true });
}

const seen = () =>
  fixture.read(
    `SELECT split_part(_key, ':', 1) AS id, count(*)::INT AS times FROM read_parquet(${literal(`${fixture.root}/events/*/*.parquet`)},
    union_by_name = true) GROUP BY id ORDER BY id`,
  );

describe('a writer that is killed', () => {
  it('before its decision leaves everything unchanged', async () => {
    await fixture.store([fixture.window('2026-01-01', FIRST)], { tables: TABLES });
    const before = fixture.files();
    await prepared();
    expect(fixture.files().length).toBeGreaterThan(before.length);
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
    await reopen();
    expect(fixture.files()).toEqual(before);
    expect(fixture.manifest.receipts).toHaveLength(1);
  });

  it('at any later step never shows a row twice, and the next run finishes its work', async () => {
    await fixture.store([fixture.window('2026-01-01', FIRST)], { tables: TABLES });
    const journal = await prepared();
    expect(journal.steps.filter((step) => 'to' in step && step.to.startsWith('events/')).length).toBeGreaterThan(4);
    const check = async (steps: number) => {
      for (const { id, times } of await seen()) expect({ steps, id, times }).toEqual({ steps, id, times: 1 });
    };
    await atEveryStep(journal, check, async () => {
      expect(await fixture.read('SELECT _key, n, x, event_date AS d FROM events ORDER BY _key')).toEqual([
        { _key: 'a:1', n: 2.5, x: 'y', d: '2026-01-02' },
        { _key: 'b', n: 2, x: null, d: '2026-01-01' },
        { _key: 'c', n: 2, x: null, d: '2026-01-02' },
        { _key: 'd', n: 1, x: null, d: '2026-01-04' },
        { _key: 'e', n: 1, x: null, d: '2026-01-03' },
      ]);
    });
  });

  it('at any step of a purge has removed everything or the next run removes it, in one journal', async () => {
    const one = (id: string, day: string, who: string) => ({ id, df_unified_id: who, df_items_k: id, ...on(day) });
    const days = ['2026-01-01', '2026-01-02', '2026-01-03'];
    const rows = days.flatMap((day, i) => [
      one(`e${i}:1`, day, 'erna'),
      ...(i < 2 ? [one(`h${i}:1`, day, 'hans')] : []),
    ]);
    await fixture.store([fixture.window('2026-01-01', csvOf(rows), undefined, 3)], { tables: TABLES });
    const removal = { column: 'df_unified_id', ids: ['erna'] };
    const journal = await prepared(() => purgeParquet(fixture.folderOptions, removal));
    // Of each table two files are replaced and one is removed.
    expect(journal.steps.filter((step) => 'remove' in step)).toHaveLength(3);
    expect(journal.steps).toHaveLength(9);
    const check = async (steps: number) => {
      for (const { id, times } of await seen()) expect({ steps, id, times }).toEqual({ steps, id, times: 1 });
    };
    await atEveryStep(journal, check, async () => {
      for (const table of TABLES) {
        expect(await fixture.read(`SELECT df_unified_id AS u, count(*)::INT AS n FROM ${table} GROUP BY 1`)).toEqual([
          { u: 'hans', n: 2 },
        ]);
      }
      const holding = fixture.files().filter((file) => readFileSync(join(fixture.root, file)).includes('erna'));
      expect(holding).toEqual([]);
    });
  });

  it('at any step of a compaction shows every row once, in one journal', async () => {
    const size = 130_000;
    const rows = ['2026-01-01', '2026-01-02'].flatMap((day) =>
      Array.from({ length: size }, (_, i) => ({ id: `${day}-${i}`, df_event_name: `n${i % 3}`, ...on(day) })),
    );
    await fixture.store([fixture.window('2026-01-01', csvOf(rows), undefined, 2)], { tables: ['event_logs'] });
    const journal = await prepared(() => compactParquet(fixture.folderOptions));
    expect(journal.steps).toHaveLength(4);
    const counts = () =>
      fixture.read(
        'SELECT (SELECT count(DISTINCT _key)::INT FROM events) AS e, (SELECT count(*)::INT FROM event_logs) AS l',
      );
    const check = async (steps: number) =>
      expect({ steps, ...(await counts())[0] }).toEqual({ steps, e: 2 * size, l: 2 * size });
    await atEveryStep(journal, check, async () => {
      expect(fixture.manifest.files.filter(({ path }) => path.startsWith('events/'))).toMatchObject([
        { rows: size, is_sorted: true },
        { rows: size, is_sorted: true },
      ]);
    });
  });

  it.each(['manifest.json', 'journal.json'])(
    'by a disk that refuses %s leaves the old table or the new one',
    async (name) => {
      await fixture.store([fixture.window('2026-01-01', FIRST)], { tables: TABLES });
      const refused = join(fixture.root, '_dfinery', name);
      for (const isClosed of [false, true]) {
        const sink = await fixture.openFolder({ tables: TABLES });
        if (existsSync(refused)) await rename(refused, `${refused}.aside`);
        mkdirSync(join(refused, 'full'), { recursive: true });
        await expect(sink.commit([fixture.window('2026-01-01', SECOND)], fixture.signal)).rejects.toThrow();
        rmSync(refused, { recursive: true });
        if (existsSync(`${refused}.aside`)) await rename(`${refused}.aside`, refused);
        if (isClosed) await sink.close();
        const next = isClosed ? await fixture.openFolder({ tables: TABLES }) : sink;
        await next.commit([fixture.window('2026-01-01', SECOND)], fixture.signal);
        await next.close();
        expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
        expect(await fixture.read('SELECT _key, n FROM events ORDER BY _key')).toEqual([
          { _key: 'a:1', n: 2.5 },
          { _key: 'b', n: 2 },
          { _key: 'c', n: 2 },
          { _key: 'd', n: 1 },
          { _key: 'e', n: 1 },
        ]);
      }
    },
  );

  it.each([
    ['goes on', false],
    ['is closed, and the next one goes on', true],
  ])('by a disk that refuses a file between two others %s, and no row is lost', async (_, isClosed) => {
    const [one, two, three] = ['2026-01-01', '2026-01-02', '2026-01-03'];
    await fixture.store([fixture.window(one, csvOf([{ id: 'a', n: '1', ...on(one) }]))]);
    const sink = await fixture.openFolder();
    const refused = join(fixture.root, `events/event_date=${two}`);
    writeFileSync(refused, '');
    const both = [
      { id: 'a', n: '2', ...on(one) },
      { id: 'b', n: '2', ...on(two) },
    ];
    await expect(sink.commit([fixture.window(one, csvOf(both), undefined, 2)], fixture.signal)).rejects.toThrow();
    rmSync(refused);
    if (isClosed) await sink.close();
    const next = isClosed ? await fixture.openFolder() : sink;
    await next.commit([fixture.window(three, csvOf([{ id: 'c', n: '3', ...on(three) }]))], fixture.signal);
    await next.close();
    expect(await fixture.read('SELECT _key, n::INT AS n FROM events ORDER BY 1')).toEqual([
      { _key: 'a', n: 2 },
      { _key: 'b', n: 2 },
      { _key: 'c', n: 3 },
    ]);
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
  });

  it.each<[string, (journal: Journal) => object]>([
    ['removes a file outside', () => ({ steps: [{ remove: '../victim' }] })],
    ['removes a file by its whole path', () => ({ steps: [{ remove: join(`${fixture.root}-outside`, 'victim') }] })],
    ['removes a file that is no partition', () => ({ steps: [{ remove: '_dfinery/lock' }] })],
    ['moves a file out', (journal) => ({ steps: [{ ...moveIn(journal), to: '../victim' }] })],
    ['moves a file in', () => ({ steps: [{ from: '_dfinery/tmp/../../../victim', to: PARTITION }] })],
    ['removes a file through a link', () => ({ steps: [{ remove: THROUGH_LINK }] })],
    ['moves a file through a link', (journal) => ({ steps: [{ ...moveIn(journal), to: THROUGH_LINK }] })],
    ['moves a link in', () => ({ steps: [{ from: '_dfinery/tmp/link', to: PARTITION }] })],
    ['moves what does not wait', () => ({ steps: [{ from: '_dfinery/manifest.json', to: PARTITION }] })],
    ['moves a folder beside', () => ({ steps: [{ from: '_dfinery/tmpx/file', to: PARTITION }] })],
    ['moves by a way of its own', () => ({ steps: [{ from: '_dfinery/tmp/./link', to: PARTITION }] })],
    ['moves all that waits', () => ({ steps: [{ from: '_dfinery/tmp/', to: PARTITION }] })],
    ['moves nothing to a file', () => ({ steps: [{ from: null, to: PARTITION }] })],
    ['moves a file to a list', (journal) => ({ steps: [{ ...moveIn(journal), to: [PARTITION] }] })],
    ['removes a list', () => ({ steps: [{ remove: [PARTITION] }] })],
    ['moves nothing at all', () => ({ steps: [null] })],
    ['moves by a text', () => ({ steps: ['move'] })],
    ['moves no list', () => ({ steps: {} })],
    [
      'moves one file well and another out',
      (journal) => ({ steps: [...journal.steps, { ...moveIn(journal), to: 'x' }] }),
    ],
    ['removes a file well and another outside', () => ({ steps: [{ remove: PARTITION }, { remove: '../victim' }] })],
    ['says nothing of the manifest', () => ({ manifest: undefined })],
    ['is of a later version', () => ({ v: 2 })],
  ])('leaves no journal that %s: a forged one is refused, and nothing is touched', async (_name, forged) => {
    await fixture.store([fixture.window('2026-01-01', FIRST)]);
    const journal = await prepared();
    const outside = `${fixture.root}-outside`;
    mkdirSync(outside);
    for (const path of [
      join(outside, 'victim'),
      join(outside, 'data_0.parquet'),
      join(dirname(fixture.root), 'victim'),
    ]) {
      writeFileSync(path, 'theirs');
    }
    symlinkSync(outside, join(fixture.root, dirname(THROUGH_LINK)));
    symlinkSync(join(outside, 'victim'), join(fixture.root, '_dfinery/tmp/link'));
    writeFileSync(join(fixture.root, '_dfinery/journal.json'), JSON.stringify({ ...journal, ...forged(journal) }));
    const before = fixture.files();
    await expect(reopen()).rejects.toMatchObject({ kind: 'config' });
    await expect(verifyParquet(fixture.folderOptions)).rejects.toMatchObject({ kind: 'transient' });
    expect(fixture.files()).toEqual(before);
    for (const path of [
      join(outside, 'victim'),
      join(outside, 'data_0.parquet'),
      join(dirname(fixture.root), 'victim'),
    ]) {
      expect(readFileSync(path, 'utf8')).toBe('theirs');
      rmSync(path);
    }
    rmSync(outside, { recursive: true });
  });

  it('is not repaired by verify, which writes nothing', async () => {
    await fixture.store([fixture.window('2026-01-01', FIRST)]);
    const journal = await prepared();
    writeFileSync(join(fixture.root, '_dfinery/journal.json'), JSON.stringify(journal));
    const times = () => fixture.files().map((file) => [file, statSync(join(fixture.root, file)).mtimeMs]);
    const before = times();
    await expect(verifyParquet(fixture.folderOptions)).rejects.toMatchObject({ kind: 'transient' });
    expect(times()).toEqual(before);
    rmSync(join(fixture.root, '_dfinery/journal.json'));
    const settled = times();
    expect(await verifyParquet(fixture.folderOptions)).toEqual([]);
    expect(times()).toEqual(settled);
  });

  it('cannot be recovered if its temporary files were removed', async () => {
    await fixture.store([fixture.window('2026-01-01', FIRST)]);
    const journal = await prepared();
    writeFileSync(join(fixture.root, '_dfinery/journal.json'), JSON.stringify(journal));
    rmSync(join(fixture.root, '_dfinery/tmp'), { recursive: true });
    await expect(reopen()).rejects.toThrow(/somebody else took it away/);
  });
});
