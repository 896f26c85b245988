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
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import { extractWindows } from '../../../src/extract/extract.ts';
import { purgeSpools, spoolFolders } from '../../../src/extract/spool/spool-folders.ts';
import {
  at,
  type FakeServiceSettings,
  FakeTarget,
  Fixture,
  HOUR,
  planFor,
  steadyRows,
} from '../../support/extract/extraction.ts';
import { failureOf } from '../../support/failure.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 6);
const DAYS = { startDate: '2026-03-03', endDate: '2026-03-08', toDateInclusive: 'true' } as const;
const DEAD = 'r0123456789abcdef';
let fixture: Fixture;
const open = (serviceSettings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...serviceSettings });
  return fixture;
};
afterEach(() => fixture.close());

const filesIn = (): string[] =>
  readdirSync(fixture.spoolDir, { recursive: true })
    .map(String)
    .filter((n) => /\.\w+$/.test(n));
const folder = (): string => {
  const [name] = readdirSync(fixture.spoolDir).filter((n) => n.startsWith('dfinery-elt-'));
  return join(fixture.spoolDir, name);
};

describe('a download of a run that ended early', () => {
  it('is reused: no export is sent twice', async () => {
    await open().run(DAYS, {}, 2);
    const first = fixture.service.sent;
    expect(filesIn().every((name) => /\.(csv|json)$/.test(name))).toBe(true);
    await fixture.run(DAYS);
    const reused = fixture.events('window.reused').length;
    expect(reused).toBeGreaterThanOrEqual(2);
    // The lookback day was committed before: it is asked for again, as are the days never verified.
    expect([first, fixture.service.sent]).toEqual([5, 5 + 1 + (4 - reused)]);
    expect(fixture.target.ids().length).toBe(36);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('is private to its user, file and folder', async () => {
    const windows = open().windows(DAYS);
    await windows.next();
    expect(lstatSync(folder()).mode & 0o777).toBe(0o700);
    for (const name of filesIn()) expect(lstatSync(join(fixture.spoolDir, name)).mode & 0o777, name).toBe(0o600);
    await windows.return();
  });

  it('has no event name when those are hashed, nor beside its rows', async () => {
    open({ rows: steadyRows('2026-03-01', '2026-03-11', 2, 'secret') });
    const key = new HashKey(new Secret('a hash key of at least 32 characters'));
    const names = ['df_event_name', 'df_event_detail_log_id', 'df_event_log_id', 'df_unified_id'];
    fixture.options = { edits: columnEdits([], names, key) };
    const windows = fixture.windows(DAYS);
    const { value } = await windows.next();
    expect(value?.files.flatMap(({ eventNames }) => eventNames)).toEqual([]);
    await windows.return();
    expect(filesIn().length).toBeGreaterThan(0);
    for (const name of filesIn()) expect(readFileSync(join(fixture.spoolDir, name), 'utf8')).not.toContain('secret');
  });

  it('is not reused when its file was changed', async () => {
    await open().run(DAYS, {}, 1);
    for (const name of filesIn().filter((n) => n.endsWith('.csv'))) {
      const path = join(fixture.spoolDir, name);
      writeFileSync(path, readFileSync(path, 'utf8').replace('df_login', 'df_hacks'));
    }
    await fixture.run(DAYS);
    expect([...fixture.target.rows.values()].every((line) => line.endsWith('df_login'))).toBe(true);
    expect(fixture.events('window.reused')).toEqual([]);
  });

  it('is not reused by another request, zone or suppression list', async () => {
    open();
    const others = [
      [{ ...DAYS, events: ['df_login'], eventsCondition: 'include' }, {}],
      [DAYS, { timezone: 'Asia/Seoul' }],
      [
        DAYS,
        {
          suppression: { columns: [], drops: () => false, mark: { head: 'x', length: 1 }, extends: () => true },
        },
      ],
    ] as const;
    for (const [settings, options] of others) {
      fixture.target = new FakeTarget();
      fixture.options = {};
      await fixture.run(DAYS, {}, 1);
      fixture.log.length = 0;
      fixture.target = new FakeTarget();
      fixture.options = options;
      await fixture.run(settings);
      expect(fixture.events('window.reused')).toEqual([]);
    }
  });

  it('is removed by a program that has other bits of evidence, and its days are exported again', async () => {
    await open().run(DAYS, {}, 1);
    const left = filesIn();
    expect(left.length).toBeGreaterThan(0);
    vi.resetModules();
    vi.doMock('../../../src/types/evidence.ts', async (original) => ({ ...(await original()), LATER: 1 << 18 }));
    try {
      const later = await import('../../../src/extract/extract.ts');
      const windows = later.extractWindows(planFor(fixture.clock, fixture.target.prior(), DAYS), fixture.deps());
      for await (const window of windows) {
        expect(left.filter((name) => existsSync(join(fixture.spoolDir, name)))).toEqual([]);
        await fixture.target.commit(window);
      }
    } finally {
      vi.doUnmock('../../../src/cells/types/evidence.ts');
      vi.resetModules();
    }
    expect(fixture.events('window.reused')).toEqual([]);
    expect(fixture.target.ids().length).toBe(36);
  });

  it('is not reused while its run is alive', async () => {
    const windows = open().windows(DAYS);
    const { value } = await windows.next();
    await fixture.run(DAYS);
    expect(fixture.events('window.reused')).toEqual([]);
    expect(fixture.target.ids().length).toBe(36);
    expect(value?.files.every(({ path }) => existsSync(path))).toBe(true);
    await windows.return();
  });

  it('is not reused for a committed window', async () => {
    await open().run({ ...DAYS, endDate: '2026-03-03' });
    // The commit was done, the file still there: as after a kill in between.
    const windows = fixture.windows({ ...DAYS, endDate: '2026-03-04' });
    const { value } = await windows.next();
    if (value) await fixture.target.commit(value);
    await windows.return();
    await fixture.run({ ...DAYS, endDate: '2026-03-04' });
    expect(fixture.service.ranges.filter((r) => r.startsWith('2026-03-03')).length).toBe(3);
  });

  it('is not reused when late rows would be missed for good', async () => {
    open();
    await fixture.run({ ...DAYS, startDate: '2026-03-09', endDate: '2026-03-09' }, {}, 0);
    fixture.clock.time += HOUR;
    await fixture.run({ ...DAYS, startDate: '2026-03-09', endDate: '2026-03-09' }, {}, 0);
    expect(fixture.events('window.reused').length).toBe(1);
    fixture.clock.time += 48 * HOUR;
    await fixture.run({ ...DAYS, startDate: '2026-03-09', endDate: '2026-03-09' });
    expect(fixture.events('window.reused').length).toBe(1);
  });

  it('is not reused when late rows of its first day would be missed for good', async () => {
    const occurred = at('2026-03-05T12:00:00Z');
    const late = { id: 'late', event: 'df_login', occurred, arrived: at('2026-03-09T01:00:00Z') };
    open({ rows: [...ROWS, late], selects: 'occurred' });
    const days = { ...DAYS, startDate: '2026-03-05', endDate: '2026-03-07', windowDays: 3, lookbackDays: 3 };
    fixture.clock.time = at('2026-03-08T16:00:00Z');
    await fixture.run(days, {}, 0);
    fixture.clock.time += 48 * HOUR;
    await fixture.run(days);
    // From now on a look back of three days begins behind the first of them.
    expect(fixture.target.state?.from_date).toBe('2026-03-08');
    expect(fixture.target.ids()).toContain('late');
  });

  it('is not kept for a day that was not over when it was read', async () => {
    const today = { startDate: '2026-03-10', endDate: '2026-03-10', toDateInclusive: 'true' } as const;
    await open().run(today, {}, 0);
    expect([fixture.service.sent, filesIn()]).toEqual([1, []]);
  });

  it('is reused under settled only when its days had been over long enough', async () => {
    const occurred = at('2026-03-07T12:00:00Z');
    const late = { id: 'late', event: 'df_login', occurred, arrived: at('2026-03-08T14:00:00Z') };
    open({ rows: [...ROWS, late], selects: 'occurred' });
    const days = { ...DAYS, startDate: '2026-03-07', endDate: '2026-03-07', settleHours: 3 };
    // The day is over everywhere since noon.
    fixture.clock.time = at('2026-03-08T13:00:00Z');
    await fixture.run(days, { delivery: 'fresh' }, 0);
    fixture.clock.time = at('2026-03-08T16:00:00Z');
    await fixture.run(days, { delivery: 'settled' });
    expect(fixture.target.state?.from_date).toBe('2026-03-08');
    expect(fixture.target.ids()).toContain('late');
  });
});

describe('leftovers of other runs', () => {
  const leave = (name: string, text = 'x', ageMs = 0) => {
    const path = join(folder(), name);
    writeFileSync(path, text);
    const then = (fixture.clock.time - ageMs) / 1000;
    utimesSync(path, then, then);
    return path;
  };

  it('are removed when their run is dead, and left while it is alive', async () => {
    await open().run(DAYS, {}, 1);
    const dead = [
      leave(`${DEAD}.lease`, ownerText({ pid: DEAD_PID, host: 'elsewhere' }), HOUR),
      leave(`${DEAD}-000001.part`),
    ];
    const lease = leave('rfedcba9876543210.lease');
    // Silence is measured by the clock of the file system.
    writeFileSync(lease, ownerText({ pid: DEAD_PID, host: 'elsewhere' }));
    const living = [lease, leave('rfedcba9876543210-000001.part')];
    const old = [leave('malformed-1.csv', 'x', 8 * 24 * HOUR)];
    const young = [leave('malformed-2.csv', 'x', 6 * 24 * HOUR)];
    await fixture.run(DAYS);
    expect([...dead, ...old].filter(existsSync)).toEqual([]);
    expect([...living, ...young].every(existsSync)).toBe(true);
  });

  it('are removed after seven days, and by a purge at once', async () => {
    await open().run(DAYS, {}, 0);
    expect(filesIn().length).toBeGreaterThan(0);
    expect(await purgeSpools(await spoolFolders(fixture.spoolDir))).toEqual([]);
    expect(filesIn()).toEqual([]);
    await fixture.run(DAYS, {}, 0);
    fixture.clock.time += 8 * 24 * HOUR;
    await fixture.run({ ...DAYS, startDate: '2026-03-15', endDate: '2026-03-15' });
    expect(filesIn()).toEqual([]);
  });
});

describe('an unusable spool folder', () => {
  it('is named when it is not a folder', async () => {
    open();
    const path = join(fixture.spoolDir, 'file');
    writeFileSync(path, '');
    const plan = planFor(fixture.clock, fixture.target.prior(), DAYS);
    const failure = await failureOf(extractWindows(plan, { ...fixture.deps(), spoolDir: path }).next());
    expect([failure.exitCode, failure.kind]).toEqual([2, 'config']);
    expect(failure.message).toContain(path);
  });

  it('is refused when it is a symbolic link', async () => {
    await open().run(DAYS, {}, 0);
    const target = folder();
    fixture.close();
    mkdirSync(fixture.spoolDir);
    symlinkSync(tmpdir(), target);
    expect((await failureOf(fixture.run(DAYS))).message).toContain('is a link');
  });
});
