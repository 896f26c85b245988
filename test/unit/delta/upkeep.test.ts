import { existsSync, linkSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Day } from '../../../src/base/days.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { FaultyStorage } from '../../support/targets/faulty-storage.ts';
import { compactDelta, purgeDelta, tryPurgeDelta, verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const HOUR = 3_600_000;
const ID = '01234567-89ab-cdef-0123-456789abcdef';
const OTHER = ID.replaceAll('0', '9');
const at = (path: string) => join(fixture.root, path);
const window = (day: Day, ...ids: string[]) =>
  fixture.window(day, csvOf(ids.map((id) => ({ id, df_unified_id: `u-${id}`, df_items_x: '1', ...on(day) }))));
const logged = (name: string) => fixture.log.filter(({ event }) => event === name);
const open = async (retentionMs: number) => (await fixture.openLake({ retentionMs })).close();

/** A file that was written so long ago. */
function put(path: string, ageMs: number): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), 'x');
  const then = (Date.now() - ageMs) / 1_000;
  utimesSync(at(path), then, then);
}

describe('leftovers of a dead run', () => {
  it('are removed when older than the retention and an hour, and nothing else is', async () => {
    await fixture.store([window(first, 'a')]);
    const live = fixture.files();
    const mine = (day: string) => `events/event_date=${day}/part-${ID}.parquet`;
    const rubbish = [
      mine(first),
      mine('__HIVE_DEFAULT_PARTITION__'),
      `events/event_date=${first}/.${ID}.tmp`,
      'events/_delta_log/.00000000000000000001.json.0123456789ab.tmp',
      `_dfinery/probe/${ID}`,
      `_dfinery/probe/${OTHER}/trial`,
      '_dfinery/runs/.x.json.0123456789ab.tmp',
    ];
    const theirs = [`_dfinery/probe/${OTHER}/other`, '_dfinery/notes', 'events/notes', `elsewhere/.${ID}.tmp`];
    for (const path of [...rubbish, ...theirs]) put(path, 1.5 * HOUR);
    await open(2 * HOUR);
    expect(fixture.files()).toEqual([...live, ...rubbish, ...theirs].sort());
    expect(logged('files.removed')).toEqual([]);
    await open(0);
    expect(fixture.files()).toEqual([...live, ...theirs].sort());
    expect(logged('files.removed')).toMatchObject([{ fields: { files: rubbish.length } }]);
    for (const path of rubbish) put(path, 0.5 * HOUR);
    await open(0);
    expect(fixture.files()).toEqual([...live, ...rubbish, ...theirs].sort());
  });

  it('stay with a warning when they cannot be removed, and the run continues', async () => {
    await fixture.store([window(first, 'a')]);
    const path = `events/event_date=${first}/part-${ID}.parquet`;
    put(path, 2 * HOUR);
    const storage = new FaultyStorage(fixture.root, (change) => (change.includes(ID) ? 'dies before' : 'normal'));
    await (await fixture.openLake({ storage, retentionMs: HOUR })).close();
    expect(logged('files.rubbish')).toMatchObject([{ level: 'warn' }]);
    expect(existsSync(at(path))).toBe(true);
  });
});

describe('a file that left a table', () => {
  it('is removed by the time in the log, whatever its name and age', async () => {
    await fixture.store([window(first, 'a')]);
    const files = ['theirs.parquet', 'young.parquet', 'unknown.parquet'];
    for (const path of files) put(`events/${path}`, 0);
    const remove = (path: string, deletionTimestamp?: number) =>
      JSON.stringify({ remove: { path, deletionTimestamp } });
    const now = Date.now();
    writeFileSync(
      at('events/_delta_log/00000000000000000001.json'),
      [remove(files[0], now - 1.5 * HOUR), remove(files[1], now - 0.5 * HOUR), remove(files[2])].join('\n'),
    );
    const left = () => files.filter((path) => existsSync(at(`events/${path}`)));
    await open(2 * HOUR);
    expect(left()).toEqual(files.slice(0, 2));
    await open(HOUR);
    expect(left()).toEqual(files.slice(1, 2));
  });
});

describe('the folder of a new table', () => {
  it.each(['events/notes.txt', `event_items/event_date=${first}/mine.parquet`])(
    'is refused when it has foreign files: %s',
    async (path) => {
      put(path, 0);
      await expect(fixture.openLake()).rejects.toMatchObject({
        kind: 'config',
        message: expect.stringMatching(/holds files that this program did not write/),
      });
      rmSync(at(path));
      put(`${path.split('/')[0]}/event_date=${first}/part-${ID}.parquet`, 0);
      await fixture.store([window(first, 'a')], { tables: ['events', 'event_items'] });
      expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
    },
  );
});

describe('the commits of a Delta table', () => {
  const kinds = (version: number) => fixture.entry('events', version).flatMap((line) => Object.keys(line));

  it('have an operation and a time in whole milliseconds', async () => {
    const clock = { ...systemClock, now: () => 1_770_000_000_000.75 };
    await fixture.store([window(first, 'a'), window(first, 'a')], { clock });
    const now = 1_770_000_000_000;
    expect(fixture.actions('events', 1, 'commitInfo')).toMatchObject([
      {
        timestamp: now,
        operation: 'WRITE',
        operationParameters: { window: '2' },
        readVersion: 0,
        isBlindAppend: false,
      },
    ]);
    expect(fixture.actions('events', 1, 'txn')).toEqual([{ appId: 'dfinery-elt', version: 2, lastUpdated: now }]);
    expect(fixture.actions('events', 1, 'add')).toMatchObject([{ modificationTime: now }]);
    expect(fixture.actions('events', 1, 'remove')).toMatchObject([{ deletionTimestamp: now, dataChange: true }]);
    expect(fixture.actions('events', 0, 'metaData')).toMatchObject([{ createdTime: now }]);
  });

  it('write properties of the table only when they change, and keep foreign ones', async () => {
    const load = (retentionMs: number) => fixture.store([window(first, 'a')], { retentionMs });
    await load(1_500);
    const [before] = fixture.actions('events', 0, 'metaData');
    const retention = { 'delta.deletedFileRetentionDuration': 'interval 2 seconds' };
    expect(before.configuration).toEqual(retention);
    await load(2_000);
    expect(kinds(1)).not.toContain('metaData');
    const configuration = { ...retention, theirs: 'x' };
    fixture.append('events', 2, { metaData: { ...before, configuration } });
    await load(2_000);
    expect(kinds(3)).not.toContain('metaData');
    await load(3_000);
    expect(fixture.actions('events', 4, 'metaData')).toEqual([
      { ...before, configuration: { ...configuration, 'delta.deletedFileRetentionDuration': 'interval 3 seconds' } },
    ]);
    fixture.append('events', 5, { metaData: { ...before, configuration: {} } });
    await fixture.store([window(first, 'b'), fixture.window(second, csvOf([{ id: 'c', ...on(first) }]))], {
      retentionMs: 3_000,
    });
    fixture.append('events', 8, {
      metaData: { ...before, configuration: { ...retention, [Object.keys(retention)[0]]: 'x' } },
    });
    await compactDelta(fixture.lakeOptions);
    expect(fixture.actions('events', 9, 'metaData')).toMatchObject([
      { configuration: { 'delta.deletedFileRetentionDuration': 'interval 86400 seconds' } },
    ]);
  });

  it('are valid although their checkpoint could not be written', async () => {
    await fixture.store([window(first, 'a')]);
    for (let version = 1; version < 100; version++) fixture.append('events', version, { commitInfo: {} });
    const storage = new FaultyStorage(fixture.root, (change) =>
      change.includes('.checkpoint.parquet') ? 'answer lost' : 'normal',
    );
    await fixture.store([window(second, 'b')], { storage });
    expect(logged('delta.checkpoint')).toMatchObject([{ level: 'warn', fields: { version: 100 } }]);
    expect(await fixture.read('SELECT _key FROM events ORDER BY 1')).toEqual([{ _key: 'a' }, { _key: 'b' }]);
  });
});

describe('a purge of a file with a second hard link', () => {
  const removal = { column: 'df_event_detail_log_id', ids: ['a'] };
  const live = (table: string) => [...fixture.replay(table).files.keys()].map((path) => `${table}/${path}`);
  const refused = async (message: RegExp) => {
    const before = fixture.files();
    const failure = { kind: 'config', message: expect.stringMatching(message) };
    await expect(tryPurgeDelta(fixture.lakeOptions, removal)).rejects.toMatchObject(failure);
    await expect(purgeDelta(fixture.lakeOptions, removal)).rejects.toMatchObject(failure);
    expect(fixture.files()).toEqual(before);
  };

  it('is refused while a file to be removed has one, in any table and version', async () => {
    await fixture.store([window(first, 'a', 'b'), window(first, 'a', 'b', 'c')], { tables: ['events', 'event_items'] });
    const [current, items] = [live('events')[0], live('event_items')[0]];
    const old = fixture.files().find((path) => /^events\/event_date.*part-/.test(path) && path !== current);
    const other = join(fixture.dir, 'other');
    for (const path of [current, items, String(old)]) {
      linkSync(at(path), other);
      await refused(/has 1 more name \(hard links\)/);
      rmSync(other);
    }
    linkSync(at('events/_delta_log/00000000000000000000.json'), other);
    expect(await tryPurgeDelta(fixture.lakeOptions, removal)).toMatchObject({
      found: { rows: 1 },
      foreignTables: [],
    });
    expect(await purgeDelta(fixture.lakeOptions, removal)).toMatchObject({ rows: 2, rowsRemoved: 1 });
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('continues when a file that stays has one', async () => {
    await fixture.store([window(first, 'a'), window(second, 'b')]);
    const [, stays] = live('events').sort();
    linkSync(at(stays), join(fixture.dir, 'other'));
    expect(await purgeDelta(fixture.lakeOptions, removal)).toMatchObject({ rows: 1, rowsRemoved: 1 });
  });

  it('is refused when a file lies outside the table', async () => {
    await fixture.store([window(first, 'a', 'b')]);
    const [path] = live('events');
    renameSync(at(path), join(fixture.dir, 'elsewhere'));
    symlinkSync(join(fixture.dir, 'elsewhere'), at(path));
    await refused(/leads to one elsewhere/);
  });
});
