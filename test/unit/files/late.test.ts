import { existsSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { openStorage } from '../../../src/storage/open.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { FilesFixture, LOGS_WITHOUT_LOCK } from '../../support/targets/target-fixture.ts';

// What src/targets/files promises of every log whose commit decides between two writers: those of the targets, and the example of
// docs/targets.md. Parquet has a lock instead.

const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const UUID = '00000000-0000-4000-8000-000000000000';
const LOST = { name: 'LostRace', exitCode: 3 };

it('the logs without a lock are known', () => {
  expect(LOGS_WITHOUT_LOCK).toEqual(expect.arrayContaining(['delta', 'example']));
  expect(LOGS_WITHOUT_LOCK).not.toContain('parquet');
});

let fixture: FilesFixture;
const load = (day: Day, ...ids: string[]) =>
  fixture.fixture.window(day, csvOf(ids.map((id) => ({ id, df_unified_id: id, df_items_x: '1', ...on(day) }))));
const purge = (id: string) => fixture.purge({ column: 'df_unified_id', ids: [id] });
/** The files of the tables and of the log, from the root. */
const stored = async () => {
  const { storage, close } = await fixture.format.open(fixture.options, 'read');
  const paths: string[] = [];
  for (const folder of ['events', 'event_items', 'event_logs', '_log']) {
    for await (const { path } of storage.list(folder)) paths.push(path);
  }
  await close();
  return paths;
};

describe.each(LOGS_WITHOUT_LOCK)('%s beside a purge', (name) => {
  beforeEach(() => {
    fixture = new FilesFixture(name);
  });
  afterEach(() => fixture.close());

  it('refuses the commit of a writer that began before it, keeps nothing of that, and takes the next one', async () => {
    await fixture.store([load(ONE, 'a')]);
    const late = await fixture.open();
    try {
      await fixture.store([load(TWO, 'b')]);
      await purge('nobody');
      const before = await stored();
      await expect(late.commit([load(THREE, 'late')], fixture.fixture.signal)).rejects.toMatchObject(LOST);
      expect(await stored()).toEqual(before);
      expect(await fixture.keys()).toEqual(['a', 'b']);
      await late.commit([load(THREE, 'late')], fixture.fixture.signal);
    } finally {
      await late.close();
    }
    expect(await fixture.keys()).toEqual(['a', 'b', 'late']);
    expect(await fixture.verify()).toEqual([]);
  });

  it('a commit that a purge overtakes before its files are stored leaves nothing', async () => {
    await fixture.store([load(ONE, 'a', 'erna')]);
    const open = await fixture.format.open(fixture.options, 'read');
    const { address } = open.storage;
    await open.close();
    const storage = await openStorage(address, { env: fixture.options.env });
    const putFile = storage.putFile.bind(storage);
    let purges = 0;
    storage.putFile = async (...of) => {
      if (purges++ === 0) await purge('erna');
      await putFile(...of);
    };
    await expect(fixture.store([load(TWO, 'b', 'erna')], { storage })).rejects.toMatchObject(LOST);
    expect(purges).toBeGreaterThan(0);
    expect(await fixture.keys()).toEqual(['a']);
    expect((await stored()).filter((path) => path.includes(TWO))).toEqual([]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('a reader that a purge overtakes reads again, and sees the place after it', async () => {
    await fixture.store([load(ONE, 'a', 'erna', 'otto', 'ida')]);
    const open = await fixture.format.open(fixture.options, 'read');
    const { address } = open.storage;
    await open.close();
    /** The options of a reader that has read the log when a purge removes this person, but none of the files. */
    const overtakenBy = async (id: string) => {
      const storage = await openStorage(address, { env: fixture.options.env });
      const localFile = storage.localFile.bind(storage);
      let purges = 0;
      storage.localFile = async (...of) => {
        if (purges++ === 0) await purge(id);
        return localFile(...of);
      };
      return { ...fixture.options, storage };
    };
    const [maintenance, people] = [await fixture.target.maintenance(), await fixture.target.people()];
    expect(await maintenance.verify(fixture.place, await overtakenBy('erna'))).toEqual([]);
    expect(await maintenance.report(fixture.place, await overtakenBy('otto'))).toMatchObject({ rows: 2 });
    const query = { column: 'df_unified_id', ids: ['ida'] };
    expect(await people.find(fixture.place, query, await overtakenBy('ida'))).toMatchObject({ rows: 0 });
  });

  it('names in a purge the file of a dead run whose time is yet to come, as of a clock that was ahead', async () => {
    await fixture.store([load(ONE, 'a', 'erna')]);
    const open = await fixture.format.open(fixture.options, 'read');
    const { address } = open.storage;
    await open.close();
    const [old, ahead] = ['a', 'b'].map((c) =>
      join(address, `events/event_date=${ONE}/part-${UUID.replace(/^./, c)}.parquet`),
    );
    for (const [path, seconds] of [
      [old, -60],
      [ahead, 3_600],
    ] as const) {
      writeFileSync(path, 'x');
      const at = Date.now() / 1_000 + seconds;
      utimesSync(path, at, at);
    }
    const { unreached } = await purge('erna');
    expect(unreached).toEqual([expect.stringContaining(`${ahead} is part of no table`)]);
    expect([existsSync(old), existsSync(ahead)]).toEqual([false, true]);
    rmSync(ahead);
    expect((await purge('erna')).unreached).toEqual([]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('refuses a first load among files of others, which a purge would remove, but not among those of a dead run', async () => {
    const { storage, close } = await fixture.format.open(fixture.options, 'read');
    await close();
    const put = (path: string) => {
      mkdirSync(dirname(join(storage.address, path)), { recursive: true });
      writeFileSync(join(storage.address, path), 'x');
    };
    put(`events/event_date=${ONE}/part-${UUID}.parquet`);
    put(`event_logs/event_date=${ONE}/.${UUID}.tmp`);
    if (name === 'example') put(`events/metadata/${UUID}.json`);
    put('event_items/notes.txt');
    const refused = {
      exitCode: 2,
      message: expect.stringMatching(/event_items holds files that this program did not/),
    };
    await expect(fixture.store([load(ONE, 'a')])).rejects.toMatchObject(refused);
    rmSync(join(storage.address, 'event_items'), { recursive: true });
    await fixture.store([load(ONE, 'a')]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('removes what dead runs left, and nothing that is younger, live, or not of this program', async () => {
    await fixture.store([load(ONE, 'a'), load(TWO, 'b')]);
    const open = await fixture.format.open(fixture.options, 'read');
    const { address } = open.storage;
    await open.close();
    const dead = [`events/event_date=${ONE}/part-${UUID}.parquet`, `event_logs/event_date=${ONE}/.${UUID}.tmp`];
    if (name === 'example') dead.push(`events/metadata/${UUID}.json`);
    const young = dead.map((path) => path.replace(UUID, UUID.replace('4000', '4001')));
    const foreign = ['events/notes.txt', `events/metadata/${UUID}.txt`];
    const put = (path: string, ms: number) => {
      mkdirSync(dirname(join(address, path)), { recursive: true });
      writeFileSync(join(address, path), 'x');
      utimesSync(join(address, path), ms / 1_000, ms / 1_000);
    };
    const now = fixture.options.clock.now();
    const live = await stored();
    for (const path of [...dead, ...foreign]) put(path, now - 2 * 86_400_000);
    for (const path of young) put(path, now - 60_000);
    await (await fixture.open()).close();
    expect((await stored()).sort()).toEqual([...live, ...young, ...foreign].sort());
    expect(await fixture.verify()).toEqual([]);
  });
});

describe.each(['delta', 'example'] as const)('%s with a log of versions', (name) => {
  beforeEach(() => {
    fixture = new FilesFixture(name);
  });
  afterEach(() => fixture.close());

  it.each(['rows', 'no rows'])('keeps a commit of %s that a purge follows before its writer sees so', async (what) => {
    await fixture.store([load(ONE, 'a', 'erna')]);
    const storage = await openStorage(fixture.place, { env: fixture.options.env });
    const create = storage.create.bind(storage);
    let purges = 0;
    storage.create = async (path, text) => {
      const isMade = await create(path, text);
      // The last step: `events` of Delta, the one log of the example.
      if (/^(events\/_delta_log|_log)\/0*1\.json$/.test(path) && purges++ === 0) await purge('erna');
      return isMade;
    };
    const ids = what === 'rows' ? ['b'] : [];
    await fixture.store([load(TWO, ...ids)], { storage });
    expect(purges).toBe(1);
    expect(await fixture.keys()).toEqual(['a', ...ids]);
    expect((await fixture.priorLoads()).covered).toEqual(new Set([ONE, TWO]));
    expect(await fixture.verify()).toEqual([]);
    expect(fixture.filesWith('erna')).toEqual([]);
  });
});
