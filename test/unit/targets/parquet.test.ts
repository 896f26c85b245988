import fs, {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { HOUR_MS } from '../../../src/base/clock.ts';
import { addDays } from '../../../src/base/days.ts';
import { configError } from '../../../src/base/errors.ts';
import { HashKey } from '../../../src/base/hash-key.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { literal } from '../../../src/base/sql.ts';
import { Engine } from '../../../src/engine/session/engine.ts';
import { EVENTS, USER_PROFILES } from '../../../src/table/tables.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { filesBelow, Place } from '../../support/targets/place.ts';
import { query } from '../../support/targets/query.ts';

const [D1, D2, D3] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const RUN = { began: 'x', ended: 'y', exitCode: 3, cause: 'why', version: '1', rows: 0, days: 0, exports: 1, bytes: 5 };

describe('a Parquet folder', () => {
  let place: Place;
  beforeEach(() => {
    place = new Place('parquet');
  });

  const fileOf = (day: string) => join(place.place, `events/event_date=${day}/data.parquet`);
  const profilesFile = () => join(place.place, 'user_profiles/data.parquet');
  const stateFile = () => join(place.place, '_dfinery.json');
  const lockFile = () => join(place.place, '_dfinery/lock');
  const state = () => JSON.parse(readFileSync(stateFile(), 'utf8'));
  const earlierClock = () => ({ ...place.clock, now: () => place.clock.now() - HOUR_MS });
  /** Lets memory not suffice for some statements. */
  const shortenMemory = (isTooLarge: (sql: string, engine: Engine) => boolean) => {
    const real = Engine.prototype.rows;
    return vi.spyOn(Engine.prototype, 'rows').mockImplementation(async function (this: Engine, sql, values) {
      if (isTooLarge(sql, this)) throw new Error('Out of Memory Error: none is left');
      return real.call(this, sql, values);
    });
  };

  /** Stops a commit, as a kill would, once it has renamed or unlinked this path. */
  const stoppedAfter = async (call: 'rename' | 'unlink', path: string, committing: () => Promise<unknown>) => {
    const loseLock = async (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      await real(...all);
      if (all.at(-1) === path) writeFileSync(lockFile(), ownerText());
    };
    await expect(withCall(fs.promises, call, loseLock, committing)).rejects.toMatchObject({ exitCode: 3 });
    rmSync(lockFile());
  };

  it('has one file a day and one state, and nothing else that a reader sees', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])]]);
    const names = filesBelow(place.place).map((path) => path.slice(place.place.length + 1));
    expect(names).toEqual([
      '_dfinery.json',
      `events/event_date=${D1}/data.parquet`,
      `events/event_date=${D2}/data.parquet`,
    ]);
    expect(filesBelow(place.place).every((path) => (statSync(path).mode & 0o777) === 0o600)).toBe(true);
  });

  it('has no file of a day whose rows all lie under the day after', async () => {
    for (const day of [D2, D1]) await place.load([[place.shared(day, [{ id: 'a' }])]]);
    expect([existsSync(fileOf(D1)), await place.keys()]).toEqual([false, [`${D2} a`]]);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('has its own days below a folder that is called like another day', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1' }])]]);
    const folder = join(place.dir, `event_date=${D3}`);
    renameSync(join(place.place, '..'), folder);
    const moved = await place.target.maintenance(place.options({ address: join(folder, 'lake') }));
    expect((await moved.verify()).differences).toEqual([]);
  });

  it('is read where nothing can be written', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1' }])]]);
    const readOnly = (real: (path: unknown) => unknown, path: unknown) => {
      if (String(path).startsWith(place.place)) throw systemError('EROFS');
      return real(path);
    };
    const reading = async () => [(await place.verify()).differences, (await place.find(['m1'])).rowCount];
    expect(await withCall(fs.promises, 'mkdtemp', readOnly, reading)).toEqual([[], 1]);
  });

  it.each(['parquet', 'delta'] as const)(
    'is refused by a run of %s if one of another target fills it first',
    async (name) => {
      const delta = new Place('delta');
      const sinks = [await place.open(), await delta.open({ address: place.place })];
      const [late, early] = name === 'parquet' ? sinks : sinks.reverse();
      await early.commit([place.of(D1, [{ id: 'a' }])], place.commitInfo(D1));
      await expect(late.commit([place.of(D1, [{ id: 'b' }])], place.commitInfo(D1))).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringContaining('did not write'),
      });
      for (const sink of sinks) await sink.close();
      const target = name === 'parquet' ? delta.target : place.target;
      expect((await (await target.maintenance(place.options())).verify()).differences).toEqual([]);
    },
  );

  it('names its state if that is gone, and leaves the files', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    rmSync(stateFile());
    const isNamed = { exitCode: 2, message: expect.stringContaining('_dfinery.json is gone: restore it') };
    await expect(place.load([[place.of(D2, [{ id: 'b' }])]])).rejects.toMatchObject(isNamed);
    expect(readdirSync(join(place.place, 'events'))).toEqual([`event_date=${D1}`]);
  });

  it('loses what a killed run left of its state', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    writeFileSync(join(place.place, '._dfinery.json.0123456789ab.tmp'), '{');
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    expect(readdirSync(place.place).sort()).toEqual(['_dfinery', '_dfinery.json', 'events']);
  });

  it('has the same columns, in order and type, in all files, also if memory suffices for one thread alone', async () => {
    await place.load([[place.of(D1, [{ id: 'a', n: '1' }])]]);
    const rows = shortenMemory(
      (sql, engine) => sql.startsWith('COPY') && sql.includes(fileOf(D1)) && !engine.isLowOnMemory,
    );
    await place.load([[place.of(D2, [{ id: 'b', a: 'x', n: '1.5' }])]]);
    rows.mockRestore();
    const schema = (day: string) => query(':memory:', `DESCRIBE SELECT * FROM '${fileOf(day)}'`);
    expect(await schema(D1)).toEqual(await schema(D2));
    expect(await place.read('SELECT n, a FROM events ORDER BY _key')).toEqual([
      { n: 1, a: null },
      { n: 1.5, a: 'x' },
    ]);
  });

  it('gives an independent reader every value and type', async () => {
    await place.load([
      [place.of(D1, [{ id: 'a', n: '9007199254740993', t: '2026-01-05', l: '["x","y"]', s: 'null' }])],
    ]);
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(fileOf(D1)), compressors });
    expect(rows).toMatchObject([{ _key: 'a', n: 9007199254740993n, t: new Date('2026-01-05'), l: ['x', 'y'] }]);
  });

  it('is read, verified and mended where a run with an early clock was killed amid its new columns', async () => {
    await place.load([
      [place.of(D1, [{ id: 'a', member: 'm1', n: '1.0' }]), place.of(D2, [{ id: 'b', member: '', n: '2.0' }])],
    ]);
    const loading = () => place.load([[place.of(D3, [{ id: 'c', n: 'x', more: '5' }])]], { clock: earlierClock() });
    await stoppedAfter('rename', fileOf(D1), loading);
    expect((await place.verify()).differences).toEqual([]);
    expect(await place.find(['m1'])).toMatchObject({ rowCount: 2 });
    expect(await place.find(['2'], 'n')).toMatchObject({ rowCount: 2 });
    expect(await place.report()).toMatchObject({ rows: 2 });
    await loading();
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
    const changes = (await place.state())?.events.changes.filter(({ day }) => day === D3);
    const recorded = changes?.map(({ sourceName, change }) => `${sourceName} ${change}`);
    expect(recorded).toEqual(['n widened', 'more added']);
    expect(await place.read('SELECT n, more FROM events ORDER BY 1')).toEqual([
      { n: '1', more: null },
      { n: '2', more: null },
      { n: 'x', more: '5' },
    ]);
  });

  describe('whose files are not as its state says', () => {
    const warnings = () => place.log.filter(({ event }) => event === 'files.damaged').map(({ message }) => message);
    const copyOf = (day: string) => join(place.dir, `copy-${day}.parquet`);
    beforeEach(async () => {
      await place.load([[place.of(D1, [{ id: 'a', member: 'm1' }]), place.of(D2, [{ id: 'b' }])]]);
      cpSync(fileOf(D1), copyOf(D1), { preserveTimestamps: true });
    });

    /** Replaces the file of the first day: by an older one, that of another day, one written anew, or no Parquet. */
    const harm = async (how: string) => {
      if (how === 'of another program') {
        const rows = await query(
          ':memory:',
          `SELECT decode(key) AS k, decode(value) AS v FROM parquet_kv_metadata('${copyOf(D1)}')`,
        );
        const metadata = rows.map(({ k, v }) => `${literal(String(k))}: ${literal(String(v))}`).join(', ');
        const other = `SELECT * REPLACE ('m2' AS member) FROM read_parquet('${copyOf(D1)}', hive_partitioning = false)`;
        await query(':memory:', `COPY (${other}) TO '${fileOf(D1)}' (FORMAT parquet, KV_METADATA {${metadata}})`);
      } else if (how === 'an older copy') {
        await place.load([[place.of(D1, [{ id: 'a' }, { id: 'new' }])]]);
        cpSync(copyOf(D1), fileOf(D1));
      } else if (how === 'of another day') {
        await place.load([[place.of(D2, [{ id: 'b', member: 'm2' }])]]);
        cpSync(fileOf(D2), fileOf(D1));
      } else writeFileSync(fileOf(D1), 'damaged');
    };

    it('takes a copy of a file for the file, with the receipt of the state', async () => {
      rmSync(fileOf(D1));
      cpSync(copyOf(D1), fileOf(D1));
      const receipt = (await place.state())?.events.receipts.get(D1);
      await place.load([[place.of(D3, [{ id: 'c' }])]]);
      expect((await place.state())?.events.receipts.get(D1)).toEqual(receipt);
      expect(state().files[0].modified).toBe(statSync(fileOf(D1)).mtimeMs);
      expect([warnings(), (await place.verify()).differences]).toEqual([[], []]);
    });

    it.each(['an older copy', 'of another program', 'of another day', 'no Parquet'])(
      'leaves a file that is %s, warns, and loads other days, until its own is read again',
      async (how) => {
        await harm(how);
        const bytes = readFileSync(fileOf(D1));
        await place.load([[place.of(D3, [{ id: 'c', more: '1' }])], [place.of('2026-01-04', [{ id: 'd' }])]]);
        expect(warnings()).toEqual([expect.stringContaining(`--from ${D1} --to ${D1}`)]);
        expect(readFileSync(fileOf(D1))).toEqual(bytes);
        const events = (await place.state())?.events;
        expect([events?.receipts.get(D1)?.pruned, events?.exportState?.from_date]).toEqual([undefined, '2026-01-05']);
        expect((await place.verify()).differences).toMatchObject([{ message: expect.stringContaining(D1) }]);
        expect((await place.purge(['nobody'])).unreached).toEqual([expect.stringContaining(D1)]);
        await place.load([[place.of(D1, [{ id: 'again' }])]]);
        expect(await place.keys()).toEqual([`${D1} again`, `${D2} b`, `${D3} c`, '2026-01-04 d']);
        expect([warnings().length, (await place.verify()).differences]).toEqual([1, []]);
      },
    );

    it.each([
      ['is read again without rows', () => place.load([[place.of(D1, [])]])],
      ['is pruned', () => place.prune(D2, true)],
    ])('removes a damaged file once its day %s', async (_, remove) => {
      await harm('no Parquet');
      await remove();
      expect([await place.keys(), (await place.verify()).differences, warnings()]).toEqual([[`${D2} b`], [], []]);
    });

    it('warns of a damaged file that a prune has left', async () => {
      await harm('no Parquet');
      await place.prune(D1, true);
      expect(warnings()).toEqual([expect.stringContaining(`--from ${D1} --to ${D1}`)]);
    });

    it('prunes a pruned day anew whose old file came back', async () => {
      await place.prune(D2, true);
      cpSync(copyOf(D1), fileOf(D1));
      const receiptBefore = (await place.state())?.events.receipts.get(D1);
      expect(await place.prune(D2, false)).toEqual({ days: [D1], rows: 0 });
      expect(await place.prune(D2, true)).toEqual({ days: [D1], rows: 0 });
      expect([await place.keys(), (await place.verify()).differences]).toEqual([[`${D2} b`], []]);
      expect((await place.state())?.events.receipts.get(D1)).toEqual(receiptBefore);
    });

    it('is not called damaged if memory does not suffice to read a file', async () => {
      await harm('an older copy');
      const rows = shortenMemory((sql) => sql.includes('parquet_kv_metadata'));
      await expect(place.verify()).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('memory') });
      rows.mockRestore();
    });

    it('takes a damaged file for whole again once its copy is back, and gives it the columns of later days', async () => {
      await harm('no Parquet');
      const later = () => place.load([[place.of(D3, [{ id: 'c', more: '1' }])]]);
      await later();
      cpSync(copyOf(D1), fileOf(D1), { preserveTimestamps: true });
      expect((await place.verify()).differences).toEqual([]);
      await later();
      expect(await query(':memory:', `SELECT more FROM '${fileOf(D1)}'`)).toEqual([{ more: null }]);
    });

    it.each([
      ['a column', { more: 'x' }],
      ['a wider type', { n: 'x' }],
    ])('leaves files with %s that an older state lacks, and takes them once the state has it', async (_, cells) => {
      await place.load([[place.of(D3, [{ id: 'c', n: '1' }])]]);
      const older = readFileSync(stateFile());
      await place.load([[place.of(D1, [{ id: 'a', ...cells }])]]);
      const rows = () => place.read(`SELECT * FROM events WHERE event_date <= '${D3}' ORDER BY _key`);
      const rowsBefore = await rows();
      writeFileSync(stateFile(), older);
      await place.load([[place.of('2026-01-04', [{ id: 'd' }])]]);
      expect(warnings()).toEqual([expect.stringContaining(`--from ${D1} --to ${D3}`)]);
      expect((await place.verify()).differences).toMatchObject([{ message: expect.stringContaining(D1) }]);
      await place.load([[place.of('2026-01-04', [{ id: 'd', ...cells }])]]);
      expect([await rows(), (await place.verify()).differences]).toEqual([rowsBefore, []]);
    });

    it.each(['cut off', 'an older copy'])('names profiles that are %s until a snapshot replaces them', async (how) => {
      const path = profilesFile();
      const profilesOf = (...people: string[]) => place.snapshot(['df_unified_id', ...people, ''].join('\n'));
      const named = expect.stringContaining('user_profiles is damaged');
      await place.loadProfiles(profilesOf('old', 'person'));
      cpSync(path, copyOf(D2));
      await place.loadProfiles(profilesOf('new'));
      const written = readFileSync(path);
      if (how === 'cut off') truncateSync(path, 100);
      else cpSync(copyOf(D2), path);
      // Each of these stores what it found of the folder.
      for (const n of [1, 2]) expect((await place.purge([`nobody-${n}`])).unreached).toEqual([named]);
      await place.load([[place.of(D3, [{ id: 'c' }])]]);
      expect(warnings()).toContainEqual(named);
      expect((await place.verify()).differences).toMatchObject([{ message: named }]);
      const damaged = readFileSync(path);
      writeFileSync(path, written);
      expect((await place.verify()).differences).toEqual([]);
      writeFileSync(path, damaged);
      expect((await place.state())?.user_profiles).toBeUndefined();
      await place.loadProfiles(profilesOf('next'));
      expect(await place.readProfiles('SELECT df_unified_id AS u FROM user_profiles')).toEqual([{ u: 'next' }]);
      expect((await place.verify()).differences).toEqual([]);
      expect((await place.purge(['nobody'])).unreached).toEqual([]);
    });

    it('takes no copy of profiles that is put back after they were removed and a sync ran', async () => {
      await place.loadProfiles(place.snapshot('df_unified_id\nold\n'));
      renameSync(profilesFile(), copyOf(D2));
      await place.load([[place.of(D3, [{ id: 'c' }])]]);
      expect([(await place.state())?.user_profiles, (await place.verify()).differences]).toEqual([undefined, []]);
      cpSync(copyOf(D2), profilesFile());
      const named = expect.stringContaining('user_profiles is damaged, or older');
      expect((await place.state())?.user_profiles).toBeUndefined();
      expect((await place.purge(['nobody'])).unreached).toEqual([named]);
      const loading = () => place.loadProfiles(place.snapshot('df_unified_id\nnew\n'));
      await stoppedAfter('rename', stateFile(), loading);
      expect((await place.state())?.user_profiles).toBeUndefined();
      await loading();
      expect(await place.readProfiles('SELECT df_unified_id AS u FROM user_profiles')).toEqual([{ u: 'new' }]);
      expect((await place.verify()).differences).toEqual([]);
    });

    it('is verified by hash, whatever the time of a file, beside the lock of a killed run', async () => {
      const { atimeMs, mtimeMs } = statSync(fileOf(D1));
      const bytes = readFileSync(fileOf(D1));
      bytes[bytes.length >> 1] ^= 1;
      writeFileSync(fileOf(D1), bytes);
      utimesSync(fileOf(D1), atimeMs / 1_000, mtimeMs / 1_000);
      const sleep = vi.fn(place.clock.sleep);
      const maintenance = await place.target.maintenance(
        place.options({ lockWaitMs: 1, clock: { ...place.clock, sleep } }),
      );
      const isNamed = { differences: [{ message: expect.stringContaining(D1) }] };
      writeFileSync(lockFile(), ownerText({ pid: DEAD_PID }));
      expect(await maintenance.verify()).toMatchObject(isNamed);
      // A user who may read the days alone cannot look at the lock.
      rmSync(lockFile());
      mkdirSync(lockFile());
      expect(await maintenance.verify()).toMatchObject(isNamed);
      expect(sleep).not.toHaveBeenCalled();
    });
  });

  it.each(['lstatSync', 'createReadStream'] as const)('names a file that cannot be read: %s', async (call) => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const refuse = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (all[0] === fileOf(D1)) throw systemError('EACCES');
      return real(...all);
    };
    await withCall(fs, call, refuse, async () => {
      const message = expect.stringContaining(`${fileOf(D1)} cannot be used (EACCES)`);
      await expect(place.verify()).rejects.toMatchObject({ exitCode: 2, message });
    });
  });

  it('names each file and link of others, and leaves it, also in the folder of a day that goes', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])]]);
    await place.loadProfiles(place.snapshot('df_unified_id\nu1\n'));
    const names = [
      `events/event_date=${D1}/.copy.tmp`,
      `events/event_date=${D1}/mine.parquet`,
      'events/event_date=2026-13-45/data.parquet',
      'events/other.parquet',
      'user_profiles/.copy.tmp',
      'user_profiles/copy.parquet',
    ];
    mkdirSync(join(place.place, 'events/event_date=2026-13-45'));
    for (const name of names) {
      const isLink = name === 'events/other.parquet';
      if (isLink) symlinkSync('/dev/null', join(place.place, name));
      else writeFileSync(join(place.place, name), 'mine');
    }
    const preview = async () => (await place.peopleOperations()).previewPurge({ ids: ['m1'], byColumn: 'member' });
    expect((await preview()).foreignNames).toEqual(names);
    const seen = names.filter((name) => name.endsWith('.parquet'));
    expect((await place.verify()).differences.map(({ message }) => message.split(' ')[0])).toEqual(seen);
    await place.prune(D3, true);
    expect((await preview()).foreignNames).toEqual(names);
    const folders = [`event_date=${D1}`, 'event_date=2026-13-45', 'other.parquet'];
    expect(readdirSync(join(place.place, 'events')).sort()).toEqual(folders);
  });

  // The people are found in the older files, and their rows are read from the newer; or only the state is the older one.
  it.each([
    ['files are', fs, 'createWriteStream'],
    ['files with a new column are', fs.promises, 'readdir'],
  ])('gives no row of two versions, if its %s replaced while it is read', async (_, system, call) => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }])]]);
    const newer = [
      { id: 'b', member: 'm1', df_unified_id: 'u2', more: '1' },
      { id: 'x', member: 'm9', df_unified_id: 'u1', more: '' },
    ];
    const [older, copy] = [join(place.dir, 'older'), join(place.dir, 'newer')];
    cpSync(place.place, older, { recursive: true, preserveTimestamps: true });
    await place.load([[place.of(D1, newer)]]);
    renameSync(place.place, copy);
    renameSync(older, place.place);
    const replace = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (existsSync(copy) && (call !== 'readdir' || all[0] === join(place.place, 'events'))) {
        cpSync(copy, place.place, { recursive: true });
        rmSync(copy, { recursive: true });
      }
      return real(...all);
    };
    const people = await place.peopleOperations();
    const keys: unknown[] = [];
    const readKeys = async () => {
      const asked = { ids: ['m1'], byColumn: 'member' };
      for await (const row of people.rows(asked)) keys.push(JSON.parse(row).row._key);
    };
    const message = expect.stringContaining('was changed while it was read: run again');
    await expect(withCall(system, call, replace, readKeys)).rejects.toMatchObject({ exitCode: 3, message });
    expect(keys).toEqual([]);
    await readKeys();
    expect(keys).toEqual(['b']);
  });

  it.each([
    ['no JSON', '{'],
    ['another version', JSON.stringify({ v: 2 })],
    ['a day that leads elsewhere', 'day'],
  ])('refuses a state with %s, and changes nothing', async (_, text) => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    const bad = { ...state(), events: { ...state().events, days: [{ ...state().events.days[0], day: '../../x' }] } };
    writeFileSync(stateFile(), text === 'day' ? JSON.stringify(bad) : text);
    await expect(place.load([[place.of(D2, [{ id: 'b' }])]])).rejects.toMatchObject({ exitCode: 2 });
    expect(readdirSync(join(place.place, 'events'))).toEqual([`event_date=${D1}`]);
  });

  it('is left as it is once another run has taken over its lock, after any step', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    for (let steps = 1, isDone = false; !isDone; steps++) {
      expect(steps).toBeLessThan(20);
      let done = 0;
      const rename = async (real: (...all: unknown[]) => unknown, from: unknown, to: unknown) => {
        await real(from, to);
        if (++done === steps) writeFileSync(lockFile(), ownerText());
      };
      // A new column: the state, the file of the first day, that of the second, and the state again.
      const committing = () => place.load([[place.of(D2, [{ id: 'b', [`c${steps}`]: '1' }])]]);
      isDone = await withCall(fs.promises, 'rename', rename, committing).then(
        () => true,
        (error) => {
          expect(error).toMatchObject({ exitCode: 3 });
          return false;
        },
      );
      expect(done).toBe(steps);
      rmSync(lockFile());
    }
    expect((await place.verify()).differences).toEqual([]);
  });

  it.each([
    ['events before the first file', EVENTS, stateFile, [D2, 1]],
    ['events before the cursor', EVENTS, () => fileOf(D2), [D2, 2]],
    ['profiles before their file', USER_PROFILES, stateFile, [undefined, 1]],
    ['profiles before the state', USER_PROFILES, profilesFile, [undefined, 1]],
  ])('knows that files may be hashed once the first run that hashes was killed: %s', async (_, table, path, result) => {
    const hashKey = new HashKey(new Secret('k'.repeat(32)));
    const commit = async (day: string, key?: HashKey) => {
      const columns = ['member', 'df_external_id'];
      const commitInfo = place.commitInfo(D1, key && { columns, key_check: key.keyCheck });
      const { filtersHash: filters } = commitInfo.fingerprints;
      const id = key?.hashOf('m1') ?? 'm1';
      const profiles = place.snapshot(`df_unified_id,df_external_id\nu1,${id}\n`, { filters });
      const download = table === EVENTS ? place.of(day, [{ id: day, member: id }], { filters }) : profiles;
      const sink = await place.open({ loadsProfiles: true });
      await sink.commit([download], commitInfo, table).finally(() => sink.close());
    };
    await commit(D1);
    await stoppedAfter('rename', path(), () => commit(D2, hashKey));
    const query = { ids: ['m1'], ...(table === EVENTS ? { byColumn: 'member' } : { searchesProfiles: true }) };
    const people = await place.peopleOperations();
    await expect(people.find(query)).rejects.toMatchObject({ exitCode: 2 });
    const { rowCount } = await people.find({ ...query, hashKey });
    expect([(await place.state())?.events.exportState?.from_date, rowCount]).toEqual(result);
  });

  it('knows which columns the files hash that a killed first run left', async () => {
    const key = new HashKey(new Secret('k'.repeat(32)));
    const days = [D1, D2].map((day) => place.of(day, [{ id: day, member: key.hashOf('m1') }]));
    const commitInfo = place.commitInfo(D1, { columns: ['member'], key_check: key.keyCheck });
    const sink = await place.open();
    await stoppedAfter('rename', fileOf(D1), () => sink.commit(days, commitInfo));
    await sink.close();
    expect((await place.state())?.events.exportState).toMatchObject({ from_date: D1, start_date: D1 });
    const people = await place.peopleOperations();
    const found = await people.find({ ids: ['m1'], byColumn: 'member', hashKey: key });
    expect(found.rowCount).toBe(1);
    await expect(people.find({ ids: ['m1'], byColumn: 'member', hashKey: undefined })).rejects.toMatchObject({
      exitCode: 2,
    });
  });

  it('takes another column_types where a run was killed before its first file', async () => {
    const days = [place.of(D1, [{ id: 'a', n: 'x' }])];
    const sink = await place.open();
    await stoppedAfter('rename', stateFile(), () => sink.commit(days, place.commitInfo(D1)));
    await sink.close();
    await place.load([days], { columnTypes: new Map([['n', 'long']]) });
    expect(await place.read('SELECT n, _rescued FROM events')).toEqual([{ n: null, _rescued: '{"n":"x"}' }]);
  });

  it('counts no day as removed whose last rows a killed purge took', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1' }]), place.of(D2, [{ id: 'b' }])]]);
    await stoppedAfter('unlink', fileOf(D1), () => place.purge(['m1']));
    await place.load([[place.of(D3, [{ id: 'c' }])]]);
    expect(place.log.filter(({ event }) => event === 'days.removed')).toEqual([]);
    expect(state().events.days[0]).toMatchObject({ day: D1, rows_stored: 0 });
    expect(state().events.days[0]).not.toHaveProperty('pruned');
  });

  it('takes the file that a killed run wrote last, also if the clock was set back before', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    await stoppedAfter('rename', fileOf(D1), () =>
      place.load([[place.of(D1, [{ id: 'b' }])]], { clock: earlierClock() }),
    );
    expect((await place.verify()).differences).toEqual([]);
    expect(await place.report()).toMatchObject({ rows: 1 });
  });

  it('loses a day that a killed run was to remove, also if that run widened a column', async () => {
    await place.load([[place.of(D1, [{ id: 'a', n: '1' }]), place.of(D2, [{ id: 'b', n: '2' }])]]);
    const columnTypes = new Map([['n', 'double' as const]]);
    const lastRows = [
      { id: 'c', n: '1.5' },
      { id: 'd', n: 'x' },
    ];
    const loadAgain = () => place.load([[place.of(D1, []), place.of(D3, lastRows)]], { columnTypes });
    await stoppedAfter('rename', stateFile(), loadAgain);
    expect((await place.verify()).differences).toEqual([]);
    await loadAgain();
    expect(await place.keys()).toEqual([`${D2} b`, `${D3} c`, `${D3} d`]);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('takes no more statements and reads of files for a day after 40 days than after 3', async () => {
    const rows = vi.spyOn(Engine.prototype, 'rows');
    const callsOf = async (...days: string[]) => {
      let reads = 0;
      const read = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
        reads++;
        return real(...all);
      };
      rows.mockClear();
      await withCall(fs, 'createReadStream', read, () => place.load([days.map((day) => place.of(day, [{ id: day }]))]));
      return [rows.mock.calls.length, reads];
    };
    await callsOf(D1, D2, D3);
    const early = await callsOf(addDays(D1, 3));
    await callsOf(...Array.from({ length: 36 }, (_, i) => addDays(D1, 4 + i)));
    expect(await callsOf(addDays(D1, 40))).toEqual(early);
    rows.mockRestore();
    expect(early[1]).toBeGreaterThan(0);
    expect(statSync(stateFile()).size).toBeLessThan(41 * 1_000);
  });

  it('says why it cannot be read or purged, also if the folder of the run cannot be removed', async () => {
    await place.load([[place.of(D1, [{ id: 'a', member: 'm1' }])]]);
    const busy = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (/dfinery-spool-\w{6}$/.test(String(all[0]))) throw systemError('EBUSY');
      return real(...all);
    };
    const failing = (work: () => Promise<unknown>) => withCall(fs.promises, 'rm', busy, work);
    const refusal = () => Promise.reject(configError('the list is older'));
    await expect(failing(() => place.purge(['m1'], 'member', refusal))).rejects.toThrow('the list is older');
    const onOpen = () => place.open({ timezone: 'Asia/Tokyo' });
    await expect(failing(onOpen)).rejects.toThrow(/^timezone is/);
  });

  it('records a run that was stopped between files and state of a commit, beside a damaged file', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'c' }])]]);
    const state = readFileSync(stateFile());
    const stop = new AbortController();
    const sink = await place.open({ signal: stop.signal });
    await place.load([[place.of(D1, [{ id: 'b' }])]]);
    writeFileSync(stateFile(), state);
    writeFileSync(fileOf(D2), 'x');
    stop.abort();
    await sink.recordRun(RUN);
    await sink.close();
    expect(await place.state()).toMatchObject({ lastRun: RUN });
  });

  it('records a run that was stopped amid its new columns, and leaves the other files to the next run', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])]]);
    const loading = () => place.load([[place.of(D3, [{ id: 'c', more: 'x' }])]]);
    await stoppedAfter('rename', fileOf(D1), loading);
    const fileBefore = readFileSync(fileOf(D2));
    const sink = await place.open();
    await sink.recordRun(RUN);
    await sink.close();
    expect(await place.state()).toMatchObject({ lastRun: RUN });
    expect(readFileSync(fileOf(D2)).equals(fileBefore)).toBe(true);
    await loading();
    expect(state().files.map((file: object) => Object.hasOwn(file, 'other_columns'))).toEqual([false, false, false]);
    expect((await place.verify()).differences).toEqual([]);
  });
});
