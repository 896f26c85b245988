import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { HAS_MODES } from '../../support/modes.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';
import { query } from '../../support/targets/query.ts';

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;
const LISTED = 3;
const person = (id: string, member: string) => ({ id, member, df_unified_id: `u-${member}` });

describe.each(TARGET_NAMES)('a purge of %s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });

  const purge = async (onFound: () => Promise<number>) =>
    (await place.peopleOperations()).purge({ ids: ['m1'], byColumn: 'member' }, onFound);

  const naming = (text: string) => place.files().filter((path) => readFileSync(path).includes(text));

  it('removes people with every byte of theirs', async () => {
    const rows = [
      { id: 'a', member: 'SECRET-member', df_unified_id: 'SECRET-u' },
      { id: 'b', member: '', df_unified_id: 'SECRET-u' },
      { id: 'c', member: 'other', df_unified_id: 'u2' },
    ];
    await place.load([
      [place.of(D1, rows)],
      [place.of(D1, [...rows, { id: 'd', member: 'more', df_unified_id: 'u3' }])],
    ]);
    await place.load([[place.of(D2, [{ id: 'e', member: 'SECRET-member', df_unified_id: 'SECRET-u' }])]]);
    expect(await place.find(['SECRET-member'])).toMatchObject({ personCount: 1, rowCount: 3 });
    expect(await place.purge(['SECRET-member'])).toMatchObject({ rowsRemoved: 3, unreached: [] });
    expect(await place.keys()).toEqual([`${D1} c`, `${D1} d`]);
    expect(naming('SECRET')).toEqual([]);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('removes what killed runs left of them', async () => {
    await place.load([[place.of(D1, [person('a', 'm1'), person('b', 'm2')])]]);
    const run = '_dfinery/tmp/dfinery-spool-abcdef';
    const left =
      name === 'duckdb'
        ? [
            '.events.duckdb.0123456789ab.tmp',
            'events.duckdb.rewriting',
            'events.duckdb.tmp-0123456789ab/duckdb_temp_storage-0.tmp',
          ]
        : [`lake/${run}/engine.tmp/x`, `lake/${run}/run.lock`];
    if (name === 'delta') left.push(`lake/events/event_date=${D1}/part-00000000-0000-4000-8000-000000000000.parquet`);
    const folder = dirname(place.root);
    const long = new Date(Date.now() - 120_000);
    for (const path of left.map((file) => join(folder, file))) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(path, path.endsWith('.lock') ? ownerText({ pid: DEAD_PID }) : 'SECRET of a killed run');
      utimesSync(path, long, long);
    }
    await place.purge(['m1']);
    expect(naming('SECRET')).toEqual([]);
    expect(await place.keys()).toEqual([`${D1} b`]);
  });

  if (name !== 'duckdb')
    it.runIf(HAS_MODES)('names the folder of a run that others may use', async () => {
      await place.load([[place.of(D1, [person('a', 'm1')])]]);
      const folder = join(place.root, '_dfinery/tmp/dfinery-spool-abcdef');
      mkdirSync(folder);
      chmodSync(folder, 0o755);
      expect((await place.purge(['m1'])).unreached).toEqual([expect.stringContaining(folder)]);
      expect(existsSync(folder)).toBe(true);
    });

  it('keeps the length of the suppression list over later loads', async () => {
    await place.load([[place.of(D1, [person('a', 'm1'), person('b', 'm2')])]]);
    await purge(async () => LISTED);
    expect((await place.state())?.suppressionLength).toBe(LISTED);
    await place.load([[place.of(D2, [person('c', 'm3')])]]);
    expect((await place.state())?.suppressionLength).toBe(LISTED);
    expect((await place.verify()).differences).toEqual([]);
  });

  it.each([LISTED + 1, LISTED - 1])('ends a run that began before it and its list of %i people', async (listed) => {
    const day = [person('a', 'm1'), person('b', 'm2')];
    await place.load([[place.of(D1, day)]]);
    await purge(async () => LISTED);
    const sink = await place.open({ lockWaitMs: 10_000 });
    await purge(async () => listed);
    const committing = sink.commit([place.of(D1, day)], place.commitInfo(D1));
    await expect(committing).rejects.toMatchObject({ kind: 'transient', message: expect.stringContaining('purged') });
    await sink.close();
    expect(await place.keys()).toEqual([`${D1} b`]);
  });

  it('removes nothing if the ledger or the list cannot be written', async () => {
    await place.load([[place.of(D1, [person('a', 'm1')])]]);
    const failing = purge(() => Promise.reject(new Error('no ledger')));
    await expect(failing).rejects.toThrow();
    expect(await place.keys()).toEqual([`${D1} a`]);
  });

  it('warns of days whose files are gone: another folder may hold them', async () => {
    if (name === 'duckdb') return;
    await place.load([[place.of(D1, [person('a', 'm1')]), place.of(D2, [person('b', 'm2')])]]);
    renameSync(join(place.root, `events/event_date=${D1}`), join(place.dir, 'unmounted'));
    expect((await place.find(['m1'])).warnings).toEqual([expect.stringContaining(`the files of ${D1} are gone`)]);
  });

  it('of all rows of a day does not make the day pruned', async () => {
    await place.load([[place.of(D1, [person('a', 'm1')]), place.of(D2, [person('b', 'm2')])]]);
    await purge(async () => 0);
    const receipt = (await place.state())?.events.receipts.get(D1);
    expect([receipt?.rows, receipt?.rows_stored, receipt?.pruned]).toEqual([1, 0, undefined]);
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });
});

describe('a purge of a DuckDB file with tables of others', () => {
  let place: Place;
  beforeEach(async () => {
    place = new Place('duckdb');
    await place.load([[place.of(D1, [person('a', 'm1'), person('b', 'm2')])]]);
  });

  const preview = async () => (await place.peopleOperations()).previewPurge({ ids: ['m1'], byColumn: 'member' });

  it('is not missed by a load that has just opened the former file', async () => {
    const { run } = DuckDBConnection.prototype;
    let isReplaced = false;
    const attach = vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (
      this: DuckDBConnection,
      sql,
      ...more
    ) {
      const done = await run.call(this, sql, ...more);
      if (isReplaced || !sql.startsWith(`ATTACH '${place.place}' AS main_file (TYPE duckdb)`)) return done;
      isReplaced = true;
      copyFileSync(place.place, `${place.place}.new`);
      renameSync(`${place.place}.new`, place.place);
      return done;
    });
    try {
      await place.load([[place.of(D2, [person('c', 'm3')])]], { lockWaitMs: 10_000 });
    } finally {
      attach.mockRestore();
    }
    expect(isReplaced).toBe(true);
    expect(await place.keys()).toEqual([`${D1} a`, `${D1} b`, `${D2} c`]);
  });

  it('keeps them, with their indexes, and names them before', async () => {
    await place.loadProfiles(place.snapshot('df_unified_id\nu9\n'));
    await query(place.place, 'CREATE SCHEMA s; CREATE TABLE s.mine AS SELECT 1 AS x; CREATE INDEX i ON s.mine (x)');
    await query(place.place, 'DROP VIEW event_items; CREATE TABLE event_items AS SELECT * FROM events');
    expect(await preview()).toMatchObject({ findings: { personCount: 1 }, foreignNames: ['event_items', 's.mine'] });
    expect((await place.keys()).length).toBe(2);
    await place.purge(['m1']);
    expect(await place.keys()).toEqual([`${D1} b`]);
    expect(await place.read('SELECT x FROM s.mine')).toEqual([{ x: 1 }]);
  });

  it('says in the plan that it cannot write one anew', async () => {
    await query(place.place, 'CREATE TABLE mine (x INTEGER PRIMARY KEY, parent INTEGER REFERENCES mine (x))');
    await query(place.place, 'INSERT INTO mine VALUES (1, NULL); INSERT INTO mine VALUES (2, 1)');
    const refusal = expect.stringMatching(/cannot be written anew.*\(mine\)/);
    await expect(preview()).rejects.toMatchObject({ exitCode: 2, message: refusal });
    expect(await place.purge(['m1'])).toMatchObject({ rowsRemoved: 1, unreached: [refusal] });
  });
});
