import { appendFileSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { literal } from '../../../src/base/sql.ts';
import { EXTERNAL_ID } from '../../../src/cells/header.ts';
import type { PeopleQuery } from '../../../src/engine/people/people.ts';
import { USER_PROFILES } from '../../../src/table/tables.ts';
import { writeModels } from '../../../src/targets/duckdb/models/write-models.ts';
import { record } from '../../support/recorder.ts';
import { filesBelow, Place, TARGET_NAMES } from '../../support/targets/place.ts';
import { query } from '../../support/targets/query.ts';

const D1 = '2026-01-01';
const EVENTS = [
  { id: 'a', df_unified_id: 'u1', member: 'm1' },
  { id: 'b', df_unified_id: 'u2' },
];
const csv = (...lines: readonly string[]) => `${lines.join('\n')}\n`;
const FIRST = csv('df_external_id,df_unified_id,plan,age', '007,u1,Erna,7', ',u2,,8', '1e3,u3,"a ""b"",\nc",9');
const isProfile = (path: string) => /user_profiles.*\.parquet$/.test(path);
const VALUES = 'df_unified_id AS u, df_external_id AS e, plan, age::VARCHAR AS age';

describe.each(TARGET_NAMES)('the table user_profiles of %s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });

  it('holds every cell of the snapshot, with both ids as text, and no day', async () => {
    expect(await place.loadProfiles(place.snapshot(FIRST, { requested_at: '2026-01-05T06:07:08.000Z' }))).toBe(3);
    await place.load([[place.of(D1, EVENTS)]]);
    expect(await place.readProfiles(`SELECT ${VALUES} FROM user_profiles ORDER BY u`)).toEqual([
      { u: 'u1', e: '007', plan: 'Erna', age: '7' },
      { u: 'u2', e: null, plan: null, age: '8' },
      { u: 'u3', e: '1e3', plan: 'a "b",\nc', age: '9' },
    ]);
    const [row] = await place.readProfiles('SELECT * FROM user_profiles ORDER BY df_unified_id');
    expect(Object.keys(row).slice(0, 5)).toEqual(['_key', '_rescued', '_loaded_at', 'df_unified_id', 'df_external_id']);
    expect(await place.readProfiles('SELECT DISTINCT _loaded_at::VARCHAR AS t FROM user_profiles')).toEqual([
      { t: expect.stringContaining('2026-01-05 06:07:08') },
    ]);
    expect(await place.keys()).toHaveLength(2);
    expect(await place.verify()).toMatchObject({ differences: [] });
  });

  it('fixes the service and the hash_key of the place, also where no day was stored', async () => {
    const hashed = (key: string) => place.commitInfo(D1, { columns: ['df_unified_id'], key_check: key.repeat(16) });
    const sink = await place.open({ loadsProfiles: true });
    await sink.commit([place.snapshot(FIRST)], hashed('a'), USER_PROFILES);
    const day = place.of(D1, EVENTS);
    await expect(sink.commit([day], hashed('b'))).rejects.toThrow('hashed under another hash_key');
    const fingerprints = { ...hashed('a').fingerprints, serviceHash: '1'.repeat(64) };
    await expect(sink.commit([day], { ...hashed('a'), fingerprints })).rejects.toThrow('belong to another service');
    expect((await sink.commit([day], hashed('a'))).daysWritten).toEqual([D1]);
    await sink.close();
  });

  it('is replaced whole, and its types widen and never narrow', async () => {
    await place.loadProfiles(place.snapshot(FIRST));
    await place.loadProfiles(place.snapshot(csv('df_unified_id,age,"Größe""x"""', 'u1,7.5,한글', 'u9,8,')));
    const read = 'SELECT df_unified_id AS u, age, typeof(age) AS t, "Größe""x""" AS g';
    expect(await place.readProfiles(`${read} FROM user_profiles ORDER BY 1`)).toEqual([
      { u: 'u1', age: 7.5, t: 'DOUBLE', g: '한글' },
      { u: 'u9', age: 8, t: 'DOUBLE', g: null },
    ]);
    await place.loadProfiles(place.snapshot(FIRST));
    expect(await place.readProfiles('SELECT typeof(age) AS t, count(*) AS n FROM user_profiles GROUP BY 1')).toEqual([
      { t: 'DOUBLE', n: '3' },
    ]);
    expect((await place.state())?.user_profiles?.receipts.get('2026-01-05')).toMatchObject({ rows: 3, rows_stored: 3 });
    expect(await place.verify()).toMatchObject({ differences: [] });
  });

  it('keeps the name of an attribute that is called as the event name', async () => {
    await place.loadProfiles(place.snapshot(csv('df_unified_id,event_name', 'u1,login')));
    expect(await place.readProfiles('SELECT event_name FROM user_profiles')).toEqual([{ event_name: 'login' }]);
  });

  it('fixes the time zone of the place, also before its first day', async () => {
    await place.loadProfiles(place.snapshot(FIRST));
    const opening = (loadsProfiles: boolean) => place.open({ loadsProfiles, timezone: 'America/New_York' });
    for (const loadsProfiles of [true, false])
      await expect(opening(loadsProfiles)).rejects.toThrow(/^timezone is America/);
    await (await place.peopleOperations()).purge({ ids: ['007'], searchesProfiles: true }, async () => 0);
    await expect(opening(false)).rejects.toThrow(/^timezone is America/);
  });

  it('gives the model users the attributes of the first profile of a person', async () => {
    if (name !== 'duckdb') return;
    await place.load([[place.of(D1, EVENTS)]]);
    await writeModels(place.options());
    await place.loadProfiles(place.snapshot(csv('df_unified_id,plan,events', 'u1,gold,x', 'u1,basic,y')));
    expect(await query(place.place, 'SELECT df_unified_id AS u, events, plan FROM analytics.users ORDER BY 1')).toEqual(
      [
        { u: 'u1', events: '1', plan: 'gold' },
        { u: 'u2', events: '1', plan: null },
      ],
    );
  });

  it.each<[string, string | undefined]>([
    ['that is the first', undefined],
    ['that replaces another', FIRST],
  ])('a load %s leaves the old snapshot whole or the new one, wherever it is killed', async (_, old) => {
    await place.load([[place.of(D1, EVENTS)]]);
    if (old !== undefined) await place.loadProfiles(place.snapshot(old));
    const second = place.snapshot(csv('df_unified_id,age,member', 'u1,7.5,m1', 'u9,8,m9'));
    const third = place.snapshot(csv('df_unified_id,age', 'u5,1'));
    const ids = async () => {
      const rows = await place
        .readProfiles('SELECT df_unified_id AS u FROM user_profiles ORDER BY 1')
        .catch((error) => {
          if (/No files found|user_profiles does not exist|ENOENT/.test(String(error))) return [];
          throw error;
        });
      return rows.map(({ u }) => u);
    };
    const before = await ids();
    const { cuts } = await record({ folder: dirname(place.root) }, () => place.loadProfiles(second));
    expect(cuts.length).toBeGreaterThan(3);
    for (const cut of cuts) {
      cut.restore();
      const seen = await ids();
      expect(cut.isDone ? [['u1', 'u9']] : [before, ['u1', 'u9']], cut.name).toContainEqual(seen);
      expect((await place.verify()).differences, cut.name).toEqual([]);
      await place.loadProfiles(third);
      expect(await ids(), cut.name).toEqual(['u5']);
      expect(await place.keys(), cut.name).toHaveLength(2);
      expect((await place.verify()).differences, cut.name).toEqual([]);
    }
  });

  it('numbers rows of one id, and takes names that differ in capitals', async () => {
    await place.loadProfiles(place.snapshot(csv('df_unified_id,Tag,tag', 'u1,x,1', 'u1,y,2', 'u2,z,3')));
    expect(await place.readProfiles('SELECT _key AS k, "Tag" AS a, tag_2 AS b FROM user_profiles ORDER BY 1')).toEqual([
      { k: 'u1', a: 'x', b: '1' },
      { k: 'u1#2', a: 'y', b: '2' },
      { k: 'u2', a: 'z', b: '3' },
    ]);
  });

  it('keeps the snapshot that was requested last, whoever commits it last', async () => {
    const early = place.snapshot(csv('df_unified_id', 'old'), { requested_at: '2026-01-05T00:00:00.000Z' });
    await place.loadProfiles(place.snapshot(FIRST, { requested_at: '2026-01-05T01:00:00.000Z' }));
    expect(await place.loadProfiles(early)).toBeUndefined();
    expect(await place.readProfiles('SELECT count(*) AS n FROM user_profiles')).toEqual([{ n: '3' }]);
  });

  it('can be empty', async () => {
    await place.loadProfiles(place.snapshot(csv('df_unified_id')));
    expect((await place.state())?.user_profiles?.receipts.get('2026-01-05')?.rows_stored).toBe(0);
    expect(await place.verify()).toMatchObject({ differences: [] });
  });

  it('differs if somebody else changed its rows', async () => {
    await place.load([[place.of(D1, EVENTS)]]);
    await place.loadProfiles(place.snapshot(FIRST));
    if (name === 'duckdb') await query(place.place, "DELETE FROM user_profiles WHERE df_unified_id = 'u1'");
    else for (const path of place.files().filter(isProfile)) appendFileSync(path, 'x');
    expect((await place.verify()).differences).not.toEqual([]);
  });

  it('of somebody else is refused before anything is loaded, and no way of a case', async () => {
    await place.load([[place.of(D1, EVENTS)]]);
    const rows = "SELECT 'u1' AS df_unified_id, 'm1' AS df_external_id";
    if (name === 'duckdb') await query(place.place, `CREATE TABLE user_profiles AS ${rows}`);
    else {
      mkdirSync(join(place.root, 'user_profiles'));
      await query(':memory:', `COPY (${rows}) TO ${literal(join(place.root, 'user_profiles/data.parquet'))}`);
    }
    const bytes = () =>
      place
        .files()
        .filter(isProfile)
        .map((path) => readFileSync(path).toString('hex'));
    const before = bytes();
    await expect(place.open({ loadsProfiles: true })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('user_profiles'),
    });
    expect(await found({ ids: ['m1'], searchesProfiles: true })).toMatchObject({ personCount: 0 });
    await purge({ ids: ['m1'], searchesProfiles: true });
    expect(bytes()).toEqual(before);
    if (name === 'duckdb') expect(await query(place.place, 'FROM user_profiles')).toHaveLength(1);
  });

  const found = async (asked: PeopleQuery) => (await place.peopleOperations()).find(asked);
  const purge = async (asked: PeopleQuery) => (await place.peopleOperations()).purge(asked, async () => 1);

  it('tells whose an id is, as exact text, and both tables lose the person', async () => {
    const snapshot = place.snapshot(FIRST);
    // Files of both tables may have one day.
    await place.load([[place.of(snapshot.receipt.day, EVENTS)]]);
    await place.loadProfiles(snapshot);
    const asked = { ids: ['007', '7'], searchesProfiles: true };
    expect(await found(asked)).toMatchObject({ personCount: 1, rowCount: 2, rowCountById: new Map([['007', 2]]) });
    expect(await purge(asked)).toMatchObject({ rowsRemoved: 2, unreached: [] });
    expect(await place.keys()).toEqual([`${snapshot.receipt.day} b`]);
    expect(await place.readProfiles('SELECT df_unified_id AS u FROM user_profiles ORDER BY 1')).toEqual([
      { u: 'u2' },
      { u: 'u3' },
    ]);
    expect(await place.verify()).toMatchObject({ differences: [] });
    for (const path of place.files()) expect(readFileSync(path).includes('Erna'), path).toBe(false);
  });

  it('ends by its purge a first load of events that began before: it may bring people back', async () => {
    await place.loadProfiles(place.snapshot(FIRST));
    const sink = await place.open({ lockWaitMs: 10_000 });
    await purge({ ids: ['007'], searchesProfiles: true });
    const committing = sink.commit([place.of(D1, EVENTS)], place.commitInfo(D1));
    await expect(committing).rejects.toMatchObject({ kind: 'transient', message: expect.stringContaining('purged') });
    await sink.close();
  });

  it('loses whom rows of events name, and shows the rows of both tables', async () => {
    await place.load([[place.of(D1, EVENTS)]]);
    await place.loadProfiles(place.snapshot(FIRST));
    const rows: unknown[] = [];
    for await (const row of (await place.peopleOperations()).rows({ ids: ['m1'], byColumn: 'member' }))
      rows.push(JSON.parse(row));
    expect(rows).toEqual([
      { table: 'events', row: expect.objectContaining({ _key: 'a' }) },
      { table: 'user_profiles', row: expect.objectContaining({ _key: 'u1', [EXTERNAL_ID]: '007', plan: 'Erna' }) },
    ]);
    expect(await purge({ ids: ['m1'], byColumn: 'member' })).toMatchObject({ rowsRemoved: 2 });
    expect((await place.state())?.user_profiles?.receipts.get('2026-01-05')?.rows_stored).toBe(2);
  });
});

describe('the table user_profiles of a Delta place', () => {
  let place: Place;
  beforeEach(async () => {
    place = new Place('delta');
    await place.load([[place.of(D1, EVENTS)]]);
  });

  const profiles = (...path: readonly string[]) => join(place.root, 'user_profiles', ...path);
  const dataFiles = () => filesBelow(profiles()).filter((path) => path.endsWith('.parquet'));
  const FIRST_ENTRY = ['_delta_log', `${'0'.repeat(20)}.json`];
  const preview = async () => (await place.peopleOperations()).previewPurge({ ids: ['m1'], byColumn: 'member' });

  it.each([
    ['garbage', () => writeFileSync(profiles(...FIRST_ENTRY), 'garbage')],
    ['missing', () => rmSync(profiles(...FIRST_ENTRY))],
  ])('fails an erasure if an entry of its log is %s, as that of events would', async (_, damage) => {
    await place.loadProfiles(place.snapshot(FIRST));
    await place.loadProfiles(place.snapshot(FIRST));
    damage();
    const isRefused = { exitCode: 2, message: expect.stringContaining('user_profiles/_delta_log') };
    await expect(preview()).rejects.toMatchObject(isRefused);
    await expect(place.purge(['m1'])).rejects.toMatchObject(isRefused);
    expect(await place.keys()).toHaveLength(2);
  });

  it.each([
    ['log was lost', () => rmSync(profiles('_delta_log'), { recursive: true })],
    ['file was removed', () => dataFiles().map((path) => rmSync(path))],
  ])('loses every byte in an erasure once its %s, also that of a load that was killed', async (_, remove) => {
    await place.loadProfiles(place.snapshot(FIRST));
    remove();
    writeFileSync(profiles('part-00000000-0000-4000-8000-000000000000.parquet'), 'Erna');
    await place.purge(['m1']);
    expect(dataFiles()).toEqual([]);
  });

  it('of somebody else is named by an erasure, with files beside the days', async () => {
    mkdirSync(profiles('_delta_log'), { recursive: true });
    writeFileSync(profiles(...FIRST_ENTRY), 'garbage');
    const others = ['events/copy.parquet', 'user_profiles/part-00000-c000.snappy.parquet'];
    for (const path of others) writeFileSync(join(place.root, path), 'Erna');
    expect((await preview()).foreignNames).toEqual(others);
    await place.purge(['m1']);
    for (const path of others) expect(readFileSync(join(place.root, path), 'utf8')).toBe('Erna');
    expect(readFileSync(profiles(...FIRST_ENTRY), 'utf8')).toBe('garbage');
  });

  it('is not made by a run that began before people were purged', async () => {
    const { DiskStorage } = await import('../../../src/storage/disk.ts');
    const store = DiskStorage.prototype.moveIn;
    const put = vi.spyOn(DiskStorage.prototype, 'moveIn').mockImplementationOnce(async function (
      this: InstanceType<typeof DiskStorage>,
      file,
      path,
    ) {
      await place.purge(['m1'], 'member', async () => 1);
      return store.call(this, file, path);
    });
    await expect(place.loadProfiles(place.snapshot(FIRST))).rejects.toMatchObject({ exitCode: 3 });
    put.mockRestore();
    expect(dataFiles()).toEqual([]);
  });

  it('can be loaded anew once its damaged file is removed, as the failure says', async () => {
    await place.loadProfiles(place.snapshot(FIRST));
    const [path] = dataFiles();
    truncateSync(path, 100);
    const message = `${path} is damaged and cannot be read: restore it, or remove it and run sync with user_profiles set to true. `;
    await expect(preview()).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
    const [{ message: difference }] = (await place.verify()).differences;
    expect(difference).toMatch(
      / is not the file that was written: .* remove it and sync with user_profiles set to true$/,
    );
    rmSync(path);
    await place.loadProfiles(place.snapshot(FIRST));
    expect((await preview()).findings.rowCount).toBeGreaterThan(0);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('names a file of which bytes were changed, wherever they are', async () => {
    await place.loadProfiles(place.snapshot(FIRST));
    const [path] = dataFiles();
    const bytes = readFileSync(path);
    for (let at = bytes.length - 9; at > bytes.length / 2; at -= 97) {
      const changed = Buffer.from(bytes);
      changed.writeUInt16LE(changed.readUInt16LE(at) ^ 0xffff, at);
      writeFileSync(path, changed);
      const failure = await preview().then(
        () => undefined,
        (error) => error,
      );
      if (failure !== undefined) expect(failure, `byte ${at}`).toMatchObject({ exitCode: 2 });
    }
  });
});
