import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { type FakeServiceSettings, Fixture, HOUR, steadyRows } from '../../support/extract/extraction.ts';

const NOW = '2026-03-10T16:00:00Z';
const ROWS = steadyRows('2026-03-01', '2026-03-11', 6);
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings> = {}, now = NOW) => {
  fixture = new Fixture(now, { rows: ROWS, ...settings });
  return fixture;
};
afterEach(() => fixture.close());

describe('a service that includes the end day', () => {
  it('is proved by the first export and costs one export a day', async () => {
    await open().run({ startDate: '2026-03-05' });
    expect(fixture.service.ranges).toEqual(
      ['05', '06', '07', '08', '09', '10', '11'].map((d) => `2026-03-${d}..2026-03-${d}`),
    );
    expect(fixture.target.state).toMatchObject({ from_date: '2026-03-10', to_date_inclusive: true });
    expect(fixture.target.ids()).toEqual(
      fixture.service
        .selected({ from: '2026-03-05', to: '2026-03-11' })
        .map((r) => r.id)
        .sort(),
    );
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('is asked again for the lookback and for days that were not over, and nothing else', async () => {
    await open().run({ startDate: '2026-03-01' });
    fixture.service.requests.length = 0;
    fixture.clock.time += 24 * HOUR;
    await fixture.run({ startDate: '2026-03-01' });
    expect(fixture.service.ranges.map((r) => r.slice(8, 10))).toEqual(['09', '10', '11', '12']);
    expect(fixture.target.state?.from_date).toBe('2026-03-11');
  });

  it('is asked for several days at once, after the first alone', async () => {
    await open().run({ startDate: '2026-03-01', windowDays: 4 });
    expect(fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''))).toEqual([
      '01..01',
      '02..06',
      '06..09',
      '10..11',
    ]);
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
  });

  it('is read with at most the allowed number of windows in memory', async () => {
    open();
    fixture.options = { maxConcurrentExports: 2 };
    for await (const window of fixture.windows({ startDate: '2026-03-01' })) {
      const files = readdirSync(fixture.spoolDir, { recursive: true }).filter((n) => /\.(csv|part)$/.test(String(n)));
      expect(files.length).toBeLessThanOrEqual(2);
      await fixture.target.commit(window);
    }
    expect(fixture.service.busiest).toBeLessThanOrEqual(2);
    expect(fixture.target.receipts.map((r) => r.from)).toEqual([...fixture.target.receipts.map((r) => r.from)].sort());
  });
});

describe('a service that excludes the end day', () => {
  it('is proved with three exports more than days', async () => {
    await open({ inclusive: false }).run({ startDate: '2026-03-05', endDate: '2026-03-09' });
    expect(fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''))).toEqual([
      '05..05',
      '05..06',
      '06..06',
      '06..07',
      '05..07',
      '07..08',
      '08..09',
      '09..10',
    ]);
    expect(fixture.target.state).toMatchObject({ from_date: '2026-03-10', to_date_inclusive: false });
    expect(fixture.target.ids()).toEqual(
      ROWS.filter((r) => r.id.slice(9, 19) >= '2026-03-05' && r.id.slice(9, 19) <= '2026-03-09')
        .map((r) => r.id)
        .sort(),
    );
  });

  it.each([
    ['settled', {}],
    ['fresh', { fullRefresh: true }],
  ] as const)('gives each row once: %s %o', async (delivery, more) => {
    await open({ inclusive: false }).run({ startDate: '2026-03-05', endDate: '2026-03-09' }, { delivery, ...more });
    expect(new Set(fixture.target.appended).size).toBe(fixture.target.appended.length);
    expect(fixture.target.appended.length).toBe(5 * 6);
    expect(fixture.service.sent).toBe(9);
  });
});

describe('a service that proves neither', () => {
  const sparse = steadyRows('2026-03-01', '2026-03-11', 1);
  it.each(
    [1, 4].flatMap((windowDays) =>
      [true, false].flatMap((inclusive) =>
        (['settled', 'fresh'] as const).map((delivery) => ({ inclusive, delivery, windowDays })),
      ),
    ),
  )('loses no row, and gives none twice when each must come once: %o', async (how) => {
    const { inclusive, delivery, windowDays } = how;
    const days = { startDate: '2026-03-02', endDate: '2026-03-08', windowDays };
    await open({ inclusive, rows: sparse }).run(days, { delivery });
    for (const day of ['02', '05', '08']) expect(fixture.target.ids()).toContain(`df_login-2026-03-${day}-0`);
    if (delivery === 'settled') expect(fixture.target.appended.length).toBe(7);
    expect(fixture.target.state?.from_date).toBe('2026-03-09');
  });

  it('completes days without rows', async () => {
    await open({ rows: [] }).run({ startDate: '2026-03-08' }, { delivery: 'settled' });
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
  });
});
