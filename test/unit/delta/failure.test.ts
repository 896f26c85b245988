import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { literal } from '../../../src/cells/types/sql.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { TABLES as ALL_TABLES } from '../../../src/table/columns.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FaultyStorage, type Outcome } from '../../support/targets/faulty-storage.ts';
import { purgeDelta, verifyDelta } from '../../support/targets/files.ts';
import { query as rowsIn } from '../../support/targets/query.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const day = '2026-01-01';
const next = '2026-01-02';
const verify = () => verifyDelta(fixture.lakeOptions);
const TABLES = ['events', 'event_items'] as const;
const rowsOf = (n: string) =>
  csvOf([
    { id: 'a', n, df_items_x: '1', ...on(day) },
    { id: 'b', n: '2', ...on(day) },
  ]);
/** The second reads the day again: it replaces rows and makes a number a text, in both tables. */
const older = () => fixture.window(day, rowsOf('1'));
const newer = () => fixture.window(day, csvOf([{ id: 'a', n: 'text', df_items_x: 'y', ...on(day) }]));
const shown = () => fixture.read('SELECT _key, n::VARCHAR AS n FROM events ORDER BY 1');
const ONE = [
  { _key: 'a', n: '1' },
  { _key: 'b', n: '2' },
];
const TWO = [
  { _key: 'a', n: 'text' },
  { _key: 'b', n: '2' },
];

async function run(
  outcomeOf: (change: string, count: number) => Outcome,
): Promise<{ changes: string[]; error: unknown }> {
  const storage = new FaultyStorage(fixture.root, outcomeOf);
  try {
    await fixture.store([newer()], { tables: TABLES, storage });
    return { changes: storage.changes, error: undefined };
  } catch (error) {
    return { changes: storage.changes, error };
  }
}

/** A promise that somebody else resolves. */
function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

/** Waits before it commits `events`. */
class WaitingStorage extends DiskStorage {
  readonly #wait: () => Promise<void>;

  constructor(dir: string, wait: () => Promise<void>) {
    super(dir);
    this.#wait = wait;
  }

  override async create(path: string, text: string): Promise<boolean> {
    if (path.startsWith('events/_delta_log/')) await this.#wait();
    return super.create(path, text);
  }
}

describe('a run that is killed', () => {
  it('between any two requests leaves the old table or the new one, and the next run repairs it', async () => {
    await fixture.store([older()], { tables: TABLES });
    const good = join(fixture.dir, 'good');
    cpSync(fixture.root, good, { recursive: true });
    const { changes } = await run(() => 'normal');
    expect(changes.length).toBeGreaterThan(5);
    for (let at = 1; at <= changes.length; at++) {
      // Before one request is after the one before it.
      for (const outcome of at === 1 ? (['dies before', 'dies after'] as const) : (['dies after'] as const)) {
        rmSync(fixture.root, { recursive: true });
        cpSync(good, fixture.root, { recursive: true });
        await run((_, count) => (count === at ? outcome : 'normal'));
        const seen = await shown();
        expect([ONE, TWO], `${outcome} ${changes[at - 1]}`).toContainEqual(seen);
        await fixture.store([newer()], { tables: TABLES, retentionMs: 0 });
        expect(await shown()).toEqual(TWO);
        expect(await fixture.read('SELECT _key, x FROM event_items ORDER BY 1')).toEqual([{ _key: 'a', x: 'y' }]);
        expect(await verify(), `${outcome} ${changes[at - 1]}`).toEqual([]);
      }
    }
  }, 240_000);

  it('between the commits of two tables leaves nothing uncommitted, also when the next run loads another day', async () => {
    const tables = ['events', 'event_logs'] as const;
    const of = (date: string, id: string) => fixture.window(date, csvOf([{ id, ...on(date) }]));
    await fixture.store([of(next, 'a:2')], { tables });
    // The event would now be told by its row of the other day.
    const storage = new FaultyStorage(fixture.root, (change) =>
      /create events\/_delta_log/.test(change) ? 'dies before' : 'normal',
    );
    await expect(fixture.store([of(day, 'a:1')], { tables, storage })).rejects.toThrow();
    await fixture.store([of('2026-01-03', 'z')], { tables });
    expect(await fixture.read('SELECT df_event_log_id AS id FROM event_logs ORDER BY 1')).toEqual([
      { id: 'a' },
      { id: 'z' },
    ]);
    expect((await verify()).filter(({ check }) => check !== 'days')).toEqual([]);
  });

  it.each(['event_logs', 'event_items', 'events'])(
    'before the commit of %s, while it adds tables, leaves them to a purge, which removes its people from them',
    async (table) => {
      const query = { column: 'df_unified_id', ids: ['erna'] };
      const rows = ['erna', 'hans'].map((id) => ({ id, df_unified_id: id, df_items_x: id, ...on(day) }));
      await fixture.store([fixture.window(day, csvOf(rows))], { tables: ['events'] });
      const storage = new FaultyStorage(fixture.root, (change) =>
        change.startsWith(`create ${table}/_delta_log`) ? 'dies before' : 'normal',
      );
      await expect(
        fixture.store([fixture.window(next, csvOf([{ id: 'c', ...on(next) }]))], { tables: ALL_TABLES, storage }),
      ).rejects.toThrow();
      expect(await purgeDelta(fixture.lakeOptions, query)).toMatchObject({ rowsRemoved: 1, unreached: [] });
      const files = fixture.stored().filter((path) => path.endsWith('.parquet') && !path.includes('_delta_log'));
      const held = await Promise.all(files.map((path) => rowsIn(':memory:', `FROM read_parquet(${literal(path)})`)));
      expect(JSON.stringify(held)).toContain('hans');
      expect(JSON.stringify(held)).not.toContain('erna');
      expect(await verify()).toEqual([]);
    },
  );

  it.each(['event_logs', 'event_items', 'events'])(
    'before the commit of %s, while it adds tables, leaves them to the next run, also without new days',
    async (table) => {
      const tables = ALL_TABLES;
      await fixture.store([older()], { tables: ['events'] });
      const storage = new FaultyStorage(fixture.root, (change) =>
        change.startsWith(`create ${table}/_delta_log`) ? 'dies before' : 'normal',
      );
      await expect(fixture.store([], { tables, storage })).rejects.toThrow();
      await fixture.store([], { tables });
      expect(await fixture.read('SELECT _key FROM event_items')).toEqual([{ _key: 'a' }]);
      expect(await verify()).toEqual([]);
    },
  );

  it('before its first commit was renamed leaves temporary files, and the next run creates the table', async () => {
    const temporaries = [
      '_delta_log/.00000000000000000000.json.0123456789ab.tmp',
      `event_date=${day}/.${randomUUID()}.tmp`,
    ];
    for (const path of temporaries) {
      mkdirSync(join(fixture.root, 'events', path, '..'), { recursive: true });
      writeFileSync(join(fixture.root, 'events', path), 'x');
    }
    await fixture.store([older()]);
    expect(await shown()).toEqual(ONE);
    for (const path of temporaries) utimesSync(join(fixture.root, 'events', path), 1, 1);
    await (await fixture.openLake()).close();
    expect(temporaries.filter((path) => existsSync(join(fixture.root, 'events', path)))).toEqual([]);
  });

  it('leaves files that no commit names: they are removed once older than the retention, others stay', async () => {
    await fixture.store([older()], { tables: TABLES });
    await run((change) => (/create events\/_delta_log/.test(change) ? 'dies before' : 'normal'));
    const live = new Set([...fixture.replay('events').files.keys()]);
    const rubbish = () => fixture.files('events').filter((path) => path.endsWith('.parquet') && !live.has(path));
    expect(rubbish().length).toBeGreaterThan(0);
    const foreign = 'event_date=2026-01-01/mine.parquet';
    writeFileSync(join(fixture.root, 'events', foreign), 'x');
    const open = async () => (await fixture.openLake({ tables: ['events'] })).close();
    await open();
    expect(rubbish().length).toBeGreaterThan(1);
    // However short the retention is: they may be those of another run that is about to commit them.
    const before = rubbish();
    await (await fixture.openLake({ tables: ['events'], retentionMs: 0 })).close();
    expect(rubbish()).toEqual(before);
    for (const path of rubbish()) utimesSync(join(fixture.root, 'events', path), 1, 1);
    await open();
    expect(rubbish()).toEqual([foreign]);
    expect(await shown()).toEqual(ONE);
    // The other table was ahead: the window comes again.
    expect((await verify()).map(({ message }) => message)).toEqual([expect.stringContaining('sync again')]);
    await fixture.store([newer()], { tables: TABLES });
    expect(await verify()).toEqual([]);
  });
});

describe('a commit', () => {
  it('whose answer is lost is recognised as its own by a retry or by the next run', async () => {
    await fixture.store([older()]);
    const isCommit = (change: string) => /create events\/_delta_log/.test(change);
    const asked = await run((change) => (isCommit(change) ? 'seems taken' : 'normal'));
    expect(asked.error).toBeUndefined();
    expect(await shown()).toEqual(TWO);
    const gaveUp = await run((change) => (isCommit(change) ? 'answer lost' : 'normal'));
    expect(gaveUp.error).toMatchObject({ exitCode: 3 });
    expect(await shown()).toEqual(TWO);
    expect(await verify()).toEqual([]);
    const sink = await fixture.openLake();
    expect(sink.state?.exportState).toMatchObject({ from_date: next });
    await sink.close();
  });

  it('that loses the race for events alone marks other tables as stale, and the next commit repairs them', async () => {
    await fixture.store([older()], { tables: TABLES });
    const of = (id: string) => fixture.window(next, csvOf([{ id, n: '3', df_items_x: '1', ...on(next) }]));
    const [ready, won] = [deferred(), deferred()];
    let late: Promise<unknown> | undefined;
    // Opened behind the first one's commit of the other table, it replaces that, and is too late for events.
    const second = new WaitingStorage(fixture.root, async () => {
      ready.resolve();
      await won.promise;
    });
    const first = new WaitingStorage(fixture.root, () => {
      late = fixture.store([of('late')], { tables: TABLES, storage: second });
      return ready.promise;
    });
    await fixture.store([of('quick')], { tables: TABLES, storage: first });
    won.resolve();
    await expect(late).rejects.toMatchObject({ exitCode: 3 });
    expect((await verify()).map(({ message }) => message)).toEqual([
      expect.stringMatching(/event_items .*: sync again, with --tables event_items$/),
    ]);
    await fixture.store([fixture.window('2026-01-03', csvOf([{ id: 'z', ...on('2026-01-03') }]))], { tables: TABLES });
    expect((await verify()).filter(({ check }) => check !== 'days')).toEqual([]);
    expect(await fixture.read('SELECT _key FROM event_items ORDER BY 1')).toEqual([{ _key: 'a' }, { _key: 'quick' }]);
  });

  it('that loses a race changes nothing and exits with 3', async () => {
    await fixture.store([older()]);
    const [one, two] = [await fixture.openLake(), await fixture.openLake()];
    try {
      await one.commit([fixture.window(next, csvOf([{ id: 'c', n: '3', ...on(next) }]))], fixture.signal);
      const files = fixture.files('events');
      await expect(two.commit([newer()], fixture.signal)).rejects.toMatchObject({
        exitCode: 3,
        message: expect.stringContaining('another writer'),
      });
      expect(fixture.files('events')).toEqual(files);
    } finally {
      await one.close();
      await two.close();
    }
    expect(await shown()).toEqual([...ONE, { _key: 'c', n: '3' }]);
    expect(await verify()).toEqual([]);
  });

  it('is never written to a location that lets two writers create the same object', async () => {
    const storage = new FaultyStorage(fixture.root);
    storage.create = async (path, text) => {
      await storage.write(path, text);
      return true;
    };
    await expect(fixture.openLake({ storage })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('If-None-Match'),
    });
    expect(fixture.files()).toEqual([]);
  });
});

describe('files that left the table', () => {
  it('stay for the retention, and are removed by the next run after it', async () => {
    await fixture.store([older(), newer()]);
    const old = fixture.actions('events', 1, 'remove').map(({ path }) => String(path));
    expect(old.length).toBe(1);
    await (await fixture.openLake()).close();
    expect(fixture.files('events')).toEqual(expect.arrayContaining(old));
    expect(await fixture.read('SELECT count(*)::INT AS n FROM events', 0)).toEqual([{ n: 2 }]);
    await (await fixture.openLake({ retentionMs: 0 })).close();
    expect(fixture.files('events')).not.toContain(old[0]);
    expect(await shown()).toEqual(TWO);
    expect(await verify()).toEqual([]);
  });
});

describe('verify', () => {
  it('names a file that is missing or changed, and rows that the log does not know', async () => {
    await fixture.store([older()], { tables: TABLES });
    const [path] = [...fixture.replay('events').files.keys()];
    const file = join(fixture.root, 'events', path);
    const bytes = readFileSync(file);
    const checks = async () => (await verify()).map(({ check }) => check);
    writeFileSync(file, Buffer.concat([bytes, Buffer.from('x')]));
    expect(await checks()).toEqual(['files']);
    const changed = Buffer.from(bytes);
    changed[20] ^= 1;
    writeFileSync(file, changed);
    expect(await checks()).toEqual(['files']);
    rmSync(file);
    expect(await checks()).toEqual(['files']);
    writeFileSync(file, bytes);
    expect(await checks()).toEqual([]);
  });
});

describe('a file that another run removes while it is read', () => {
  it('ends the load with a transient error and advice, and nothing is changed', async () => {
    await fixture.store([older()], { tables: TABLES });
    const sink = await fixture.openLake({ tables: TABLES });
    try {
      // As a purge does, between what a load read of the log and the files that it reads.
      const [file] = fixture.files('events').filter((name) => name.endsWith('.parquet'));
      rmSync(join(fixture.root, 'events', file));
      await expect(sink.commit([newer()], new AbortController().signal)).rejects.toMatchObject({
        kind: 'transient',
        message: expect.stringMatching(/is gone that was to be read: another run removed it\. Run again/),
      });
    } finally {
      await sink.close();
    }
    expect(fixture.versions()).toBe(1);
  });
});
