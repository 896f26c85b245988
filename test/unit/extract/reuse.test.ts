import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Failure } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { purgeSpools } from '../../../src/extract/spool/run-folder.ts';
import { spoolFolders } from '../../../src/extract/spool/spool.ts';
import { columnEdits } from '../../../src/schema/column-edits.ts';
import { HashKey } from '../../../src/schema/hash-key.ts';
import { at, Bench, FakeTarget, type FakeWorld, HOUR, steadyRows } from '../../support/extract/extraction.ts';
import { DEAD_PID, holderText } from '../../support/processes/holder.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 6);
const DAYS = { startDate: '2026-03-03', endDate: '2026-03-08', toDateInclusive: 'true' } as const;
const DEAD = 'r0123456789abcdef';
let bench: Bench;
const open = (world: Partial<FakeWorld> = {}) => {
  bench = new Bench('2026-03-10T16:00:00Z', { rows: ROWS, ...world });
  return bench;
};
afterEach(() => bench.close());

const filesIn = (): string[] =>
  readdirSync(bench.spoolDir, { recursive: true })
    .map(String)
    .filter((n) => /\.\w+$/.test(n));
const folder = (): string => {
  const [name] = readdirSync(bench.spoolDir).filter((n) => n.startsWith('dfinery-elt-'));
  return join(bench.spoolDir, name);
};

describe('a run that ends early', () => {
  it('spends no export twice [R14]', async () => {
    await open().run(DAYS, {}, 2);
    const first = bench.service.sent;
    expect(filesIn().every((name) => /\.(csv|json)$/.test(name))).toBe(true);
    await bench.run(DAYS);
    const reused = bench.events('window.reused').length;
    expect(reused).toBeGreaterThanOrEqual(2);
    // The lookback day was committed before: it is asked for again, as are the days never verified.
    expect([first, bench.service.sent]).toEqual([5, 5 + 1 + (4 - reused)]);
    expect(bench.target.ids().length).toBe(36);
    expect(readdirSync(bench.spoolDir)).toEqual([]);
  });

  it('keeps files and folder to itself [R57]', async () => {
    const windows = open().windows(DAYS);
    await windows.next();
    expect(lstatSync(folder()).mode & 0o777).toBe(0o700);
    for (const name of filesIn()) expect(lstatSync(join(bench.spoolDir, name)).mode & 0o777, name).toBe(0o600);
    await windows.return();
  });

  it('keeps no name of an event where that is hashed, nor beside its rows [R486]', async () => {
    open({ rows: steadyRows('2026-03-01', '2026-03-11', 2, 'secret') });
    const key = new HashKey(new Secret('a hash key of at least 32 characters'));
    const names = ['df_event_name', 'df_event_detail_log_id', 'df_event_log_id', 'df_unified_id'];
    bench.options = { edits: columnEdits([], names, key) };
    const windows = bench.windows(DAYS);
    const { value } = await windows.next();
    expect(value?.files.flatMap(({ eventNames }) => eventNames)).toEqual([]);
    await windows.return();
    expect(filesIn().length).toBeGreaterThan(0);
    for (const name of filesIn()) expect(readFileSync(join(bench.spoolDir, name), 'utf8')).not.toContain('secret');
  });

  it('does not read a file that was changed [R14]', async () => {
    await open().run(DAYS, {}, 1);
    for (const name of filesIn().filter((n) => n.endsWith('.csv'))) {
      const path = join(bench.spoolDir, name);
      writeFileSync(path, readFileSync(path, 'utf8').replace('df_login', 'df_hacks'));
    }
    await bench.run(DAYS);
    expect([...bench.target.rows.values()].every((line) => line.endsWith('df_login'))).toBe(true);
    expect(bench.events('window.reused')).toEqual([]);
  });

  it('leaves nothing to another question, zone or suppression list [R14]', async () => {
    open();
    const others = [
      [{ ...DAYS, events: ['df_login'], eventsCondition: 'include' }, {}],
      [DAYS, { timezone: 'Asia/Seoul' }],
      [DAYS, { suppression: { isSuppressed: () => false, digest: 'another' } }],
    ] as const;
    for (const [settings, options] of others) {
      bench.target = new FakeTarget();
      bench.options = {};
      await bench.run(DAYS, {}, 1);
      bench.log.length = 0;
      bench.target = new FakeTarget();
      bench.options = options;
      await bench.run(settings);
      expect(bench.events('window.reused')).toEqual([]);
    }
  });

  it('leaves nothing to a run beside it while it lives [R480]', async () => {
    const windows = open().windows(DAYS);
    const { value } = await windows.next();
    await bench.run(DAYS);
    expect(bench.events('window.reused')).toEqual([]);
    expect(bench.target.ids().length).toBe(36);
    expect(value?.files.every(({ path }) => existsSync(path))).toBe(true);
    await windows.return();
  });

  it('is not used for a window that was committed', async () => {
    await open().run({ ...DAYS, endDate: '2026-03-03' });
    // The commit was done, the file still there: as after a kill in between.
    const windows = bench.windows({ ...DAYS, endDate: '2026-03-04' });
    const { value } = await windows.next();
    if (value) await bench.target.commit(value);
    await windows.return();
    await bench.run({ ...DAYS, endDate: '2026-03-04' });
    expect(bench.service.ranges.filter((r) => r.startsWith('2026-03-03')).length).toBe(3);
  });

  it('is not used once late rows would be missed for good', async () => {
    open();
    await bench.run({ ...DAYS, startDate: '2026-03-09', endDate: '2026-03-09' }, {}, 0);
    bench.clock.time += HOUR;
    await bench.run({ ...DAYS, startDate: '2026-03-09', endDate: '2026-03-09' }, {}, 0);
    expect(bench.events('window.reused').length).toBe(1);
    bench.clock.time += 48 * HOUR;
    await bench.run({ ...DAYS, startDate: '2026-03-09', endDate: '2026-03-09' });
    expect(bench.events('window.reused').length).toBe(1);
  });

  it('is not used where late rows of the first of its days would be missed for good [R480]', async () => {
    const occurred = at('2026-03-05T12:00:00Z');
    const late = { id: 'late', event: 'df_login', occurred, arrived: at('2026-03-09T01:00:00Z') };
    open({ rows: [...ROWS, late], selects: 'occurred' });
    const days = { ...DAYS, startDate: '2026-03-05', endDate: '2026-03-07', windowDays: 3, lookbackDays: 3 };
    bench.clock.time = at('2026-03-08T16:00:00Z');
    await bench.run(days, {}, 0);
    bench.clock.time += 48 * HOUR;
    await bench.run(days);
    // From now on a look back of three days begins behind the first of them.
    expect(bench.target.state?.from_date).toBe('2026-03-08');
    expect(bench.target.ids()).toContain('late');
  });

  it('keeps nothing of a day that was not over when it was read', async () => {
    const today = { startDate: '2026-03-10', endDate: '2026-03-10', toDateInclusive: 'true' } as const;
    await open().run(today, {}, 0);
    expect([bench.service.sent, filesIn()]).toEqual([1, []]);
  });

  it('is used for a settled delivery only where its days had been over for that long when it was read [R480]', async () => {
    const occurred = at('2026-03-07T12:00:00Z');
    const late = { id: 'late', event: 'df_login', occurred, arrived: at('2026-03-08T14:00:00Z') };
    open({ rows: [...ROWS, late], selects: 'occurred' });
    const days = { ...DAYS, startDate: '2026-03-07', endDate: '2026-03-07', settleHours: 3 };
    // The day is over everywhere since noon.
    bench.clock.time = at('2026-03-08T13:00:00Z');
    await bench.run(days, { delivery: 'fresh' }, 0);
    bench.clock.time = at('2026-03-08T16:00:00Z');
    await bench.run(days, { delivery: 'settled' });
    expect(bench.target.state?.from_date).toBe('2026-03-08');
    expect(bench.target.ids()).toContain('late');
  });
});

describe('what other runs left', () => {
  const leave = (name: string, text = 'x', ageMs = 0) => {
    const path = join(folder(), name);
    writeFileSync(path, text);
    const then = (bench.clock.time - ageMs) / 1000;
    utimesSync(path, then, then);
    return path;
  };

  it('is removed when the run is dead, and left alone while it lives', async () => {
    await open().run(DAYS, {}, 1);
    const dead = [
      leave(`${DEAD}.lease`, holderText({ pid: DEAD_PID, host: 'elsewhere' }), HOUR),
      leave(`${DEAD}-000001.part`),
    ];
    const lease = leave('rfedcba9876543210.lease');
    // Silence is measured by the clock of the file system.
    writeFileSync(lease, holderText({ pid: DEAD_PID, host: 'elsewhere' }));
    const living = [lease, leave('rfedcba9876543210-000001.part')];
    const old = [leave('malformed-1.csv', 'x', 8 * 24 * HOUR)];
    const young = [leave('malformed-2.csv', 'x', 6 * 24 * HOUR)];
    await bench.run(DAYS);
    expect([...dead, ...old].filter(existsSync)).toEqual([]);
    expect([...living, ...young].every(existsSync)).toBe(true);
  });

  it('of verified files goes after seven days, and by purge at once [R57]', async () => {
    await open().run(DAYS, {}, 0);
    expect(filesIn().length).toBeGreaterThan(0);
    expect(await purgeSpools(await spoolFolders(bench.spoolDir), bench.clock.now())).toBeGreaterThan(0);
    expect(filesIn()).toEqual([]);
    await bench.run(DAYS, {}, 0);
    bench.clock.time += 8 * 24 * HOUR;
    await bench.run({ ...DAYS, startDate: '2026-03-15', endDate: '2026-03-15' });
    expect(filesIn()).toEqual([]);
  });
});

describe('a spool folder that cannot be used', () => {
  const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
    const error = await work.then(
      () => undefined,
      (e: unknown) => e,
    );
    if (error instanceof Failure) return error;
    throw error ?? new Error('nothing was thrown');
  };

  it('is named: not a folder', async () => {
    open();
    const path = join(bench.spoolDir, 'file');
    writeFileSync(path, '');
    const failure = await failureOf(
      (async () => {
        for await (const _ of (await import('../../../src/extract/extract.ts')).extractWindows(
          (await import('../../support/extract/extraction.ts')).planFor(bench.clock, bench.target.prior(), DAYS),
          { ...bench.deps(), spoolDir: path },
        ));
      })(),
    );
    expect([failure.exitCode, failure.kind]).toEqual([2, 'config']);
    expect(failure.message).toContain(path);
  });

  it('is refused when it is a link [R57]', async () => {
    await open().run(DAYS, {}, 0);
    const target = folder();
    bench.close();
    mkdirSync(bench.spoolDir);
    symlinkSync(tmpdir(), target);
    expect((await failureOf(bench.run(DAYS))).message).toContain('is a link');
  });
});
