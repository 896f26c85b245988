import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DAY_MS } from '../../../src/base/clock.ts';
import { addDays } from '../../../src/base/days.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import type { StoredObject } from '../../../src/storage/storage.ts';
import type { Sink } from '../../../src/targets/contract.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { filesBelow, Place } from '../../support/targets/place.ts';

const [D1, D2, D3] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const PART = 'part-00000000-0000-4000-8000-000000000000.parquet';
const OTHER_PROTOCOL = { protocol: { minReaderVersion: 3, minWriterVersion: 7, writerFeatures: ['deletionVectors'] } };
type Action = Record<string, Record<string, unknown> | undefined>;
type Instead = Parameters<typeof withCall>[2];

/** Does work while a method of every disk behaves as `instead` says. */
const withDisk = <T>(method: keyof DiskStorage, instead: Instead, work: () => Promise<T>): Promise<T> =>
  withCall(DiskStorage.prototype, method, instead, work);

describe('a Delta table on a disk', () => {
  let place: Place;
  beforeEach(() => {
    place = new Place('delta');
  });

  const log = () => join(place.place, 'events/_delta_log');
  const entryPath = (version: number) => join(log(), `${String(version).padStart(20, '0')}.json`);
  const entry = (version: number): Action[] =>
    readFileSync(entryPath(version), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  const actions = (version: number, kind: string): Record<string, unknown>[] =>
    entry(version).flatMap((action): Record<string, unknown>[] => (action[kind] === undefined ? [] : [action[kind]]));
  const inTwoDays = () => ({ ...place.clock, now: () => Date.now() + 2 * DAY_MS });
  const append = (version: number, ...lines: readonly unknown[]) =>
    writeFileSync(entryPath(version), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

  it('keeps metadata that another program has written anew', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const [{ format: _, ...metaData }] = actions(0, 'metaData');
    append(1, { metaData: { ...metaData, format: { provider: 'parquet' }, description: 'ours' } });
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    expect(actions(2, 'metaData')).toEqual([]);
  });

  it('has one file a day and one commit a batch, and names that every reader takes', async () => {
    await place.load([[place.of(D1, [{ id: 'a', 'a b;c': '1' }]), place.of(D2, [{ id: 'b' }])]]);
    expect(actions(0, 'add').map(({ path }) => String(path).replace(/part-[0-9a-f-]{36}/, 'part-ID'))).toEqual([
      `event_date=${D1}/part-ID.parquet`,
      `event_date=${D2}/part-ID.parquet`,
    ]);
    expect(actions(0, 'commitInfo')).toEqual([expect.not.objectContaining({ readVersion: expect.anything() })]);
    const [{ schemaString, partitionColumns }] = actions(0, 'metaData');
    expect([String(schemaString).includes('a_b_c'), partitionColumns]).toEqual([true, ['event_date']]);
  });

  it('keeps in its statistics no value of a person', async () => {
    const birth = { birth_datetime: '1990-03-04 05:06:07.000', birthday: '1990-03-04' };
    await place.load([[place.of(D1, [{ id: 'a', phone: '0101', name: 'Kim', ...birth }, { id: 'b' }])]]);
    const [{ stats }] = actions(0, 'add');
    expect(JSON.parse(String(stats))).toEqual({ numRecords: 2 });
  });

  it('writes no file anew for a new column, and those with values of a widened one', async () => {
    await place.load([[place.of(D1, [{ id: 'a', n: '1' }]), place.of(D2, [{ id: 'b' }])]]);
    await place.load([[place.of(D3, [{ id: 'c', constructor: '1' }])]]);
    expect([actions(1, 'add').length, actions(1, 'remove').length]).toEqual([1, 0]);
    await place.load([[place.of('2026-01-04', [{ id: 'd', n: 'text' }])]]);
    expect(actions(2, 'remove').map(({ path }) => String(path).slice(11, 21))).toEqual([D1]);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('loses a race: exit 3, what it stored is removed, and the same run works again', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const sink = await place.open();
    // Another writer commits between the last look at the log and the commit.
    const loseRace = async () => {
      append(1, { commitInfo: {} });
      return false;
    };
    const commit = () => sink.commit([place.of(D2, [{ id: 'b' }])], place.commitInfo(D1));
    await expect(withDisk('create', loseRace, commit)).rejects.toMatchObject({ exitCode: 3 });
    await sink.close();
    expect(filesBelow(join(place.place, 'events')).filter((path) => path.endsWith('.parquet'))).toHaveLength(1);
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`]);
  });

  it('ends with 3 for a run that stood still, and whose folder another run has removed', async () => {
    const sink = await place.open();
    rmSync(join(place.place, '_dfinery/tmp'), { recursive: true });
    const commit = sink.commit([place.of(D1, [{ id: 'a' }])], place.commitInfo(D1));
    await expect(commit).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('another run removed it'),
    });
    await sink.close();
  });

  it('loses people in a purge, also if its first load ended after the profiles', async () => {
    await place.loadProfiles(place.snapshot('df_unified_id,df_external_id\nu1,m1\nu2,m2\n'));
    const purged = (await place.peopleOperations()).purge({ ids: ['m1'], searchesProfiles: true }, async () => 0);
    expect(await purged).toMatchObject({ rowsRemoved: 1, unreached: [] });
    expect(await place.readProfiles('SELECT df_unified_id AS u FROM user_profiles')).toEqual([{ u: 'u2' }]);
  });

  it('keeps what a purge has committed to events before another run commits to the profiles', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }, { id: 'b' }])]]);
    await place.loadProfiles(place.snapshot('df_unified_id,df_external_id\nu1,m1\n'));
    const purge = (await place.peopleOperations()).purge({ ids: ['m1'], searchesProfiles: true }, async () => {
      await place.loadProfiles(place.snapshot('df_unified_id,df_external_id\nu1,m1\nu2,m2\n'));
      return 0;
    });
    const message = expect.stringContaining('user_profiles first: run again');
    await expect(purge).rejects.toMatchObject({ exitCode: 3, message });
    expect(await place.keys()).toEqual([`${D1} b`]);
  });

  it('keeps in a purge the entry that another run is about to make, and removes that of a killed run', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }])]]);
    const [killed, live] = ['0123456789ab', 'ba9876543210'].map((id) => `.${'1'.padStart(20, '0')}.json.${id}.tmp`);
    const hourAgo = new Date(Date.now() - 3_600_000);
    for (const name of [killed, live]) writeFileSync(join(log(), name), 'an entry');
    utimesSync(join(log(), killed), hourAgo, hourAgo);
    const hourAhead = new Date(Date.now() + 3_600_000);
    utimesSync(join(log(), live), hourAhead, hourAhead);
    await place.purge(['m1']);
    expect(readdirSync(log()).filter((name) => name.endsWith('.tmp'))).toEqual([live]);
  });

  it('is refused with an older log beside newer files, which stay', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }, { id: 'b' }])]]);
    const copy = join(place.dir, 'log');
    cpSync(log(), copy, { recursive: true });
    await place.purge(['m1']);
    rmSync(log(), { recursive: true });
    renameSync(copy, log());
    const before = filesBelow(place.place);
    const isRefused = { exitCode: 2, message: expect.stringContaining(`of ${D1} the _delta_log names a file`) };
    for (const work of [() => place.load([[place.of(D2, [{ id: 'c' }])]]), () => place.verify(), () => place.purge([])])
      await expect(work()).rejects.toMatchObject(isRefused);
    expect(filesBelow(place.place)).toEqual(before);
  });

  it.each([
    ['a file of another program', { add: { path: 'x.parquet', partitionValues: {}, size: 1, dataChange: true } }],
    ['a path out of the table', { remove: { path: '../../etc/passwd' } }],
    ['an absolute path', { remove: { path: '/etc/passwd' } }],
    ['a day that is none', { remove: { path: `event_date=2026-13-01/${PART}` } }],
    ['an unknown feature', OTHER_PROTOCOL],
    ['a value that is no action', { add: 5 }],
    ['a day without receipt', { domainMetadata: { domain: `dfinery.day.${D1}`, configuration: '{}', removed: true } }],
  ])('is refused with one sentence for %s, and nothing is changed', async (_, action) => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    append(1, action);
    const before = filesBelow(place.place);
    await expect(place.load([[place.of(D2, [{ id: 'b' }])]])).rejects.toMatchObject({ exitCode: 2 });
    await expect(place.verify()).rejects.toMatchObject({ exitCode: 2 });
    expect(filesBelow(place.place)).toEqual(before);
  });

  it('stays refused for a run that was open when another program changed it', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const [{ path }] = actions(0, 'add');
    const sink = await place.open({ clock: inTwoDays() });
    append(1, { remove: { path, deletionTimestamp: 0, dataChange: true } }, OTHER_PROTOCOL);
    const before = filesBelow(join(place.place, 'events'));
    for (const id of ['b', 'c']) {
      const commit = sink.commit([place.of(D2, [{ id }])], place.commitInfo(D1));
      await expect(commit).rejects.toMatchObject({ exitCode: 2 });
    }
    await sink.close();
    expect(filesBelow(join(place.place, 'events'))).toEqual(before);
  });

  it('no longer names a file that a user removed, or another program in a commit', async () => {
    const [d1, d2] = [place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])];
    await place.load([[d1, d2]]);
    rmSync(join(place.place, `events/event_date=${D1}`), { recursive: true });
    expect(await place.verify()).toMatchObject({ differences: [], warnings: [expect.stringContaining(D1)] });
    expect(await place.load([[d2]])).toMatchObject([{ daysWritten: [], daysUnchanged: [D2] }]);
    expect(await place.keys()).toEqual([`${D2} b`]);
    const [, { path }] = actions(0, 'add');
    append(2, { remove: { path, deletionTimestamp: Date.now(), dataChange: true } });
    expect((await place.state())?.events.receipts.get(D2)).toMatchObject({ pruned: true });
    await place.load([[place.of(D3, [{ id: 'c' }])]]);
    expect(await place.keys()).toEqual([`${D3} c`]);
  });

  it('takes a file for removed also if the one before it is still there', async () => {
    for (const id of ['a', 'b']) await place.load([[place.of(D1, [{ id }])]]);
    const [{ path }] = actions(1, 'add');
    rmSync(join(place.place, 'events', String(path)));
    expect(await place.verify()).toMatchObject({ differences: [], warnings: [expect.stringContaining(D1)] });
  });

  it('keeps files that left for a day, then removes them, those of profiles and of dead runs, too', async () => {
    for (const id of ['a', 'b']) {
      await place.load([[place.of(D1, [{ id }])]]);
      await place.loadProfiles(place.snapshot('df_external_id,df_unified_id\n1,u1\n'));
    }
    writeFileSync(join(place.place, `events/event_date=${D1}/${PART}`), 'of a dead run');
    const parquet = () => filesBelow(place.place).filter((path) => path.endsWith('.parquet')).length;
    await place.load([]);
    expect(parquet()).toBe(5);
    place.clock = inTwoDays();
    await place.load([]);
    expect(parquet()).toBe(2);
    expect(await place.keys()).toEqual([`${D1} b`]);
  });

  it('keeps for an hour what another run may commit, also where nothing is retained', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const path = join(place.place, `events/event_date=${D1}/${PART}`);
    writeFileSync(path, 'of a run under way');
    const later = (ms: number) => ({ ...place.clock, now: () => Date.now() + ms });
    for (const [minutes, isThere] of [
      [50, true],
      [70, false],
    ] as const) {
      place.clock = later(minutes * 60_000);
      await place.load([], { retentionMs: 0 });
      expect(existsSync(path)).toBe(isThere);
    }
  });

  it('keeps an old file for a day after it left, also over a checkpoint', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    place.clock = inTwoDays();
    await place.load([[place.of(D1, [{ id: 'b' }])]]);
    place.clock = { ...place.clock, now: () => Date.now() + 2.1 * DAY_MS };
    for (const id of ['c', 'd', 'e', 'f', 'g']) await place.load([[place.of(D2, [{ id }])]]);
    expect(readdirSync(join(place.place, `events/event_date=${D1}`))).toHaveLength(2);
  });

  describe('whose log is gone', () => {
    const record = async (days: number) => {
      const sink = await place.open({ loadsProfiles: true });
      const times = { began: 'x', ended: 'y', exitCode: 0, cause: null, version: '1' };
      await sink.recordRun({ ...times, rows: days, days, exports: 1, bytes: 5 });
      await sink.close();
    };
    const loadLater = () => {
      place.clock = inTwoDays();
      return place.load([[place.of(D2, [{ id: 'b' }])]]);
    };

    const loadProfiles = () => place.loadProfiles(place.snapshot('df_unified_id\nu1\n'));

    it.each([
      ['after a run that loaded no day', () => record(0)],
      ['beside profiles', () => loadProfiles().then(() => record(1))],
    ])('is refused %s, and keeps its data files', async (_, prepare) => {
      await place.load([[place.of(D1, [{ id: 'a' }])]]);
      await prepare();
      rmSync(log(), { recursive: true });
      const before = filesBelow(place.place);
      const message = expect.stringContaining('restore the log');
      for (const command of [loadLater, () => place.state(), () => place.verify(), () => place.purge(['m1'])]) {
        await expect(command()).rejects.toMatchObject({ exitCode: 2, message });
      }
      expect(filesBelow(place.place)).toEqual(before);
    });

    it('is loaded if a killed load of its first days left the data files', async () => {
      await loadProfiles();
      await record(0);
      mkdirSync(join(place.place, `events/event_date=${D1}`), { recursive: true });
      writeFileSync(join(place.place, `events/event_date=${D1}/${PART}`), 'of a killed run');
      await loadLater();
      expect(await place.keys()).toEqual([`${D2} b`]);
    });
  });

  describe('with a data file that is damaged', () => {
    beforeEach(async () => {
      await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])]]);
      truncateSync(join(place.place, 'events', String(actions(0, 'add')[0].path)), 100);
    });

    it('stores the day again that comes unchanged, and goes on', async () => {
      const batch = [place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }]), place.of(D3, [{ id: 'c' }])];
      expect(await place.load([batch])).toMatchObject([{ daysWritten: [D1, D3], daysUnchanged: [D2] }]);
      expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D3} c`]);
      expect((await place.verify()).differences).toEqual([]);
    });

    it('names the way on where the file is needed: for a day that may share rows with it', async () => {
      const message = expect.stringContaining(`--from ${D1} --to ${D1}`);
      const loading = place.load([[place.shared(D2, [{ id: 'x' }])]]);
      await expect(loading).rejects.toMatchObject({ exitCode: 2, message });
    });
  });

  it('keeps a file at the end of a run that another run has committed since it began', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const late = inTwoDays();
    let lateSink: Sink | undefined;
    // It lists the file of D2, which no entry of the log names yet.
    const openBefore: Instead = async (real, ...created) => {
      lateSink = await place.open({ clock: late });
      return real(...created);
    };
    await withDisk('create', openBefore, () => place.load([[place.of(D2, [{ id: 'b' }])]]));
    await lateSink?.close();
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`]);
  });

  it('keeps a day that one listing of its files lacks', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])]]);
    async function* listShort(...[real, ...asked]: Parameters<Instead>) {
      for await (const file of real(...asked) as AsyncIterable<StoredObject>) if (!file.path.includes(D1)) yield file;
    }
    await withDisk('list', listShort, () => place.load([[place.of(D3, [{ id: 'c' }])]]));
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D3} c`]);
  });

  it('can be loaded although a purge removes an entry of the log while it is read', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }])]]);
    const sink = await place.open();
    await place.load([[place.of(D2, [{ id: 'b', df_unified_id: 'u2' }])]]);
    let isPurged = false;
    const purgeFirst: Instead = async (real, path) => {
      if (!isPurged) {
        isPurged = true;
        await place.purge(['m1']);
      }
      return real(path);
    };
    await withDisk('read', purgeFirst, () => sink.commit([place.of(D3, [{ id: 'c' }])], place.commitInfo(D1)));
    await sink.close();
    expect(await place.keys()).toEqual([`${D2} b`, `${D3} c`]);
  });

  it('has all its days for a reader between whose log and files a purge commits', async () => {
    const rows = ['m1', 'm2'].map((member, i) => ({ id: `${i}`, member, df_unified_id: `u${i}` }));
    await place.load([[place.of(D1, rows)]]);
    let isPurged = false;
    async function* purgeFirst(...[real, folder, after]: Parameters<Instead>) {
      if (!isPurged && String(after).endsWith('~')) {
        isPurged = true;
        await place.purge(['m1']);
      }
      yield* real(folder, after) as AsyncIterable<StoredObject>;
    }
    const state = await withDisk('list', purgeFirst, () => place.state());
    expect(state?.events.receipts.get(D1)).toMatchObject({ rows_stored: 1 });
  });

  it('loses no entry of its log if a listing lacks the one before it', async () => {
    for (const [day, id] of Object.entries({ [D1]: 'a', [D2]: 'b', [D3]: 'c' }))
      await place.load([[place.of(day, [{ id }])]]);
    async function* listShort(...[real, ...asked]: Parameters<Instead>) {
      for await (const file of real(...asked) as AsyncIterable<StoredObject>)
        if (file.path !== entryPath(1).slice(place.place.length + 1)) yield file;
    }
    await withDisk('list', listShort, () => place.load([[place.of(D3, [{ id: 'd' }])]]));
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D3} d`]);
  });

  it('is refused if its log has a hole, also before a stray file of an absurd number', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    writeFileSync(entryPath(99_999_999_999), '');
    await expect(place.state()).rejects.toThrow('version 2 is missing');
    rmSync(entryPath(99_999_999_999));
    rmSync(entryPath(0));
    await expect(place.state()).rejects.toThrow('version 0 is missing');
  });

  it('names a checkpoint that is damaged, without which the log is whole', async () => {
    await place.load(Array.from({ length: 6 }, (_, i) => [place.of(addDays(D1, i), [{ id: `${i}` }])]));
    const checkpoint = entryPath(5).replace('.json', '.checkpoint.parquet');
    const bytes = readFileSync(checkpoint);
    bytes[bytes.indexOf('minReaderVersion')] = 0xff;
    for (const damaged of [bytes, bytes.subarray(0, 100)]) {
      writeFileSync(checkpoint, damaged);
      await expect(place.state()).rejects.toThrow(`${checkpoint} is damaged: restore it, or move it away.`);
    }
    renameSync(checkpoint, join(place.root, 'moved'));
    expect((await place.state())?.events.receipts.size).toBe(6);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('keeps the entries behind a checkpoint until it has the next one, however old they are', async () => {
    const days = Array.from({ length: 11 }, (_, i) => [place.of(addDays(D1, i), [{ id: `${i}` }])]);
    await place.load(days.slice(0, 6));
    place.clock = { ...place.clock, now: () => Date.now() + 31 * DAY_MS };
    const refuseCheckpoint: Instead = (real, localPath, path) => {
      if (String(path).includes('.checkpoint.')) throw new Error('refused');
      return real(localPath, path);
    };
    await withDisk('moveIn', refuseCheckpoint, () => place.load(days.slice(6)));
    expect((await place.state())?.events.receipts.size).toBe(11);
    expect(JSON.parse(readFileSync(join(log(), '_last_checkpoint'), 'utf8'))).toMatchObject({ version: 5 });
  });

  it('does not grow with the square of its days: state and log of 200 days', async () => {
    const days = Array.from({ length: 200 }, (_, i) => addDays(D1, i));
    await place.load(days.slice(0, 100).map((day) => [place.of(day, [{ id: day }])]));
    const bytes = () => filesBelow(log()).reduce((sum, path) => sum + statSync(path).size, 0);
    const half = bytes();
    await place.load(days.slice(100).map((day) => [place.of(day, [{ id: day }])]));
    expect(bytes() / half).toBeLessThan(2.6);
    expect(statSync(entryPath(199)).size).toBeLessThan(2 * statSync(entryPath(99)).size);
    expect((await place.state())?.events.receipts.size).toBe(200);
    // Entries before a checkpoint go after 30 days.
    place.clock = { ...place.clock, now: () => Date.now() + 31 * DAY_MS };
    await place.load(Array.from({ length: 10 }, (_, i) => [place.of(addDays(D1, 200 + i), [{ id: 'x' }])]));
    expect(readdirSync(log()).filter((name) => name.endsWith('.json')).length).toBeLessThan(20);
    expect((await place.verify()).differences).toEqual([]);
  }, 240_000);

  it('is to be read again if somebody removes a file under its reader', async () => {
    const rows = (id: string) => [{ id, member: 'm1', df_unified_id: 'u1' }];
    await place.load([[place.of(D1, rows('a')), place.of(D2, rows('b'))]]);
    let isRemoved = false;
    const removeFirst: Instead = (real, path) => {
      if (!isRemoved) rmSync(join(place.root, String(path)));
      isRemoved = true;
      return real(path);
    };
    const message = `${place.place} was changed while it was read: run again.`;
    const finding = withDisk('localFile', removeFirst, () => place.find(['m1']));
    await expect(finding).rejects.toMatchObject({ exitCode: 3, message });
    expect(await place.find(['m1'])).toMatchObject({ rowCount: 1 });
  });
});

describe('a Delta table in a bucket', () => {
  let s3: FakeS3;
  let place: Place;
  beforeEach(async () => {
    s3 = await FakeS3.start();
    for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
    place = new Place('delta', s3);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await s3.close();
  });

  it('fails at the first request that is refused', async () => {
    s3.outcomeOf = () => ({ status: 403, code: 'AccessDenied' });
    await expect(place.state()).rejects.toThrow('403 AccessDenied');
    expect(s3.requests.map(({ what }) => what)).toEqual(['ListObjectsV2']);
  });

  const dataBytes = () =>
    [...s3.objects]
      .filter(([key]) => key.endsWith('.parquet') && !key.includes('_delta_log'))
      .map(([, { bytes }]) => bytes.length);
  const filesRead = () => s3.requests.filter(({ what, key }) => what === 'GetObject' && key.includes('event_date='));

  it('needs at most 30 requests for a daily sync into 300 days, and downloads nothing of the table', async () => {
    const days = Array.from({ length: 300 }, (_, i) => addDays('2025-01-01', i));
    for (let i = 0; i < days.length; i += 30) {
      await place.load([days.slice(i, i + 30).map((day) => place.of(day, [{ id: day, n: '1' }]))]);
    }
    const counts: number[] = [];
    for (let n = 0; n < 12; n++) {
      s3.reset();
      const [yesterday, today] = [addDays('2025-10-27', n), addDays('2025-10-28', n)];
      const batch = [place.of(yesterday, [{ id: `y${n}` }]), place.of(today, [{ id: `t${n}` }])];
      await place.load([batch]);
      counts.push(s3.requests.length);
      expect(filesRead()).toEqual([]);
    }
    // The end day is not known: each day is a commit, and its neighbours are compared.
    for (let n = 12; n < 18; n++) {
      s3.reset();
      const days = [0, 1, 2].map((more) => addDays('2025-10-27', n + more));
      await place.load(days.map((day) => [place.shared(day, [{ id: day }, { id: addDays(day, 1) }])]));
      counts.push(s3.requests.length);
    }
    expect(Math.max(...counts), counts.join()).toBeLessThanOrEqual(30);
    expect(dataBytes().length).toBeGreaterThan(300);
  }, 120_000);

  it('has a copy of one unchanged day at a time in the spool folder', async () => {
    const batches = [D1, D2, D3].map((day) => [place.of(day, [{ id: day }])]);
    await place.load(batches);
    const copyCounts: number[] = [];
    s3.onExecuted = ({ what, key }) => {
      if (what !== 'GetObject' || !key.includes('event_date=')) return;
      copyCounts.push(filesBelow(join(place.dir, 'spool')).filter((path) => path.includes('event_date=')).length);
    };
    await place.load(batches);
    expect(copyCounts).toEqual([0, 0, 0]);
  });

  it('is verified, reported and purged through copies in the spool folder alone', async () => {
    s3.versions = [];
    const rows = [
      { id: 'a', member: 'SECRET', df_unified_id: 'SECRET-u' },
      { id: 'b', member: 'm2', df_unified_id: 'u2' },
    ];
    await place.load([[place.of(D1, rows)]]);
    await place.load([[place.of(D1, rows), place.of(D2, [{ id: 'c', member: 'SECRET', df_unified_id: 'SECRET-u' }])]]);
    expect((await place.verify()).differences).toEqual([]);
    const report = await (await place.maintenance()).report();
    expect(report).toMatchObject({ rows: 3 });
    expect(await place.purge(['SECRET'])).toMatchObject({ rowsRemoved: 2 });
    expect(await place.keys()).toEqual([`${D1} b`]);
    const naming = s3.versions.filter(({ bytes }) => bytes?.includes('SECRET'));
    expect(naming).toEqual([]);
    expect(filesBelow(join(place.dir, 'spool'))).toEqual([]);
  });

  it.each([new Error('IO Error: Could not write file "/spool/x": No space left on device'), systemError('ENOSPC')])(
    'names the spool folder if the disk of that is full, by %s: a bucket has no disk',
    async (error) => {
      const refuse = (real: (...all: unknown[]) => unknown, ...all: unknown[]) =>
        String(all[0]).startsWith('COPY') ? Promise.reject(error) : real(...all);
      const loading = () => place.load([[place.of(D1, [{ id: 'a' }])]]);
      await expect(withCall(DuckDBConnection.prototype, 'run', refuse, loading)).rejects.toMatchObject({
        kind: 'transient',
        message: expect.stringMatching(
          /^The disk of the spool folder \S+spool is full( \(ENOSPC\))?: make room and run again/,
        ),
      });
    },
  );

  it.each([100, 0])('stores a day again whose object was cut to %i bytes', async (bytesLeft) => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const [key = '', object] = [...s3.objects].find(([key]) => key.includes('event_date=')) ?? [];
    if (object !== undefined) s3.objects.set(key, { ...object, bytes: object.bytes.subarray(0, bytesLeft) });
    const loading = place.load([[place.shared(D2, [{ id: 'b' }])]]);
    await expect(loading).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('is damaged') });
    expect(await place.load([[place.of(D1, [{ id: 'a' }])]])).toMatchObject([{ daysWritten: [D1] }]);
    expect(await place.keys()).toEqual([`${D1} a`]);
  });

  it('names the table of a damaged file of profiles, which is read as a copy', async () => {
    await place.loadProfiles(place.snapshot('df_external_id,df_unified_id\nm1,u1\n'));
    for (const [key, object] of s3.objects) {
      if (key.endsWith('.parquet')) s3.objects.set(key, { ...object, bytes: object.bytes.subarray(0, 100) });
    }
    const message = expect.stringContaining('run sync with user_profiles set to true');
    await expect(place.find(['m1'])).rejects.toMatchObject({ kind: 'config', message });
  });

  it('names the day of a damaged file, which is read as a copy', async () => {
    const rows = Array.from({ length: 2_000 }, (_, i) => ({ id: `${i}`, text: `${Math.sin(i)}` }));
    await place.load([[place.of(D1, rows)]]);
    for (const [key, object] of s3.objects) {
      if (key.includes('event_date=')) s3.objects.set(key, { ...object, bytes: object.bytes.fill(0, 10_000, 10_100) });
    }
    const report = (await place.maintenance()).report();
    await expect(report).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(
        /^A Parquet file of s3:\/\/bucket\/lake is damaged and cannot be read: .* --from 2026-01-01 --to 2026-01-01/,
      ),
    });
  });
});
