import { expect, it } from 'vitest';
import { addDays, dayAt, daysOf, startOf } from '../../../src/base/days.ts';
import { type FakeRow, type Fault, Fixture, HOUR } from '../../support/extract/extraction.ts';
import fc from '../../support/property.ts';

const START = '2026-03-03';
const FIRST_RUN = '2026-03-08T05:00:00Z';
const LAST = '2026-03-20';
const RUNS = Number(process.env.EXTRACT_RUNS ?? 15);
const NAMES = ['df_login', 'df_logout', 'own'];

interface Step {
  readonly hours: number;
  readonly commits: number;
  readonly faultEvery: number;
  readonly mapped: number | null;
  /** The process dies instead of ending. */
  readonly kill: boolean;
  /** The last window was committed, and the process died before it could take note. */
  readonly unnoticed: boolean;
}

const serviceSettings = fc.record({
  inclusive: fc.boolean(),
  selects: fc.constantFrom('occurred' as const, 'arrived' as const),
  zoneHours: fc.integer({ min: -12, max: 14 }),
  future: fc.constantFrom('empty' as const, 'error' as const),
  finalNewline: fc.boolean(),
  historyDays: fc.constant(60),
  most: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 6),
  singleDays: fc.constantFrom(
    'as_ranges' as const,
    'as_ranges' as const,
    'whole' as const,
    'empty' as const,
    'refused' as const,
  ),
});

const setup = fc.record({
  serviceSettings,
  delivery: fc.constantFrom('fresh' as const, 'settled' as const),
  perDay: fc.array(fc.constantFrom(0, 0, 1, 2, 4, 8), { minLength: 22, maxLength: 22 }),
  late: fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 5, maxLength: 5 }),
  windowDays: fc.integer({ min: 1, max: 4 }),
  concurrent: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(
    fc.record<Step>({
      hours: fc.integer({ min: 0, max: 40 }),
      commits: fc.integer({ min: 0, max: 6 }),
      faultEvery: fc.constantFrom(0, 0, 2, 3, 7),
      mapped: fc.option(fc.integer({ min: 0, max: 8 }), { freq: 4 }),
      kill: fc.boolean(),
      unnoticed: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  ),
});

type Setup = typeof setup extends fc.Arbitrary<infer T> ? T : never;

function rowsOf({ perDay, late, delivery }: Setup): FakeRow[] {
  return perDay.flatMap((count, d) =>
    Array.from({ length: count }, (_, i) => {
      const occurred = startOf(addDays('2026-03-01', d)) + Math.floor(((i + 0.3) * 24 * HOUR) / count);
      const delay = (i + d) % 3 === 0 ? late[(i * 7 + d) % late.length] : 0;
      const arrived = occurred + (delivery === 'settled' ? Math.min(delay, 3) : delay) * HOUR;
      return { id: `${d}-${i}`, event: NAMES[(i + d) % NAMES.length], occurred, arrived };
    }),
  );
}

const FAULTS: readonly Fault[] = [
  { refuse: 'retry' },
  { refuse: 'wait' },
  { body: (csv) => csv.slice(0, -4) },
  { body: (csv) => `${csv}{"result":"fail"}` },
  { body: () => '' },
];

async function drive(fixture: Fixture, given: Setup): Promise<void> {
  const settings = { startDate: START, windowDays: given.windowDays, historyDays: 60 };
  const run = async (step: Step) => {
    const { hours, faultEvery, mapped } = step;
    fixture.clock.time += hours * HOUR;
    fixture.service.settings = {
      ...fixture.service.settings,
      fault: (_, n) => (faultEvery > 0 && n % faultEvery === 1 ? FAULTS[n % FAULTS.length] : undefined),
    };
    const day = mapped === null || given.delivery === 'settled' ? undefined : addDays(START, mapped);
    const isOver = day === undefined || day < dayAt(fixture.clock.now(), -12);
    await once(fixture, given, settings, step, isOver ? day : undefined);
  };
  for (const step of given.steps) await run(step);
  // Four runs that are left in peace: each day is over, looked back at, and final.
  for (let i = 0; i < 4; i++) await run(PEACE);
}

const PEACE: Step = {
  hours: 25,
  commits: Number.POSITIVE_INFINITY,
  faultEvery: 0,
  mapped: null,
  kill: false,
  unnoticed: false,
};

async function once(
  fixture: Fixture,
  { delivery }: Setup,
  settings: object,
  { commits, kill, unnoticed }: Step,
  day: string | undefined,
): Promise<void> {
  const windows = fixture.windows(settings, { delivery, from: day, to: day });
  let left = commits;
  try {
    for (;;) {
      const { value: window } = await windows.next();
      if (window === undefined || (left === 0 && !unnoticed)) break;
      const before = fixture.target.state?.from_date ?? START;
      await fixture.target.commit(window);
      check(fixture, before);
      if (left-- === 0) break;
    }
  } catch (error) {
    if ((error as { exitCode?: unknown }).exitCode !== 3) throw error;
  } finally {
    if (kill) await fixture.kill(windows);
    else await windows.return();
  }
}

/** What must hold after every commit: the cursor only grows, stays behind the days that are over, and every day before it is there. */
function check(fixture: Fixture, before: string): void {
  const cursor = fixture.target.state?.from_date ?? '';
  expect(cursor >= before, `cursor ${cursor} after ${before}`).toBe(true);
  expect(cursor <= dayAt(fixture.clock.now(), -12), `cursor ${cursor} in the future`).toBe(true);
  for (const row of fixture.service.settings.rows) {
    const day = fixture.service.dayOf(row);
    if (day < START || day >= cursor || row.arrived > startOf(addDays(day, 1)) + 12 * HOUR) continue;
    expect(fixture.target.rows.has(row.id), `row ${row.id} of ${day} missing before ${cursor}`).toBe(true);
  }
}

it('committed rows are the rows of the service, for any service and any interruption', async () => {
  await fc.assert(
    fc.asyncProperty(setup, async (given) => {
      // Where no row may come twice, few rows a day prove nothing of a service that gives no single days.
      const singleDays = given.delivery === 'settled' ? 'as_ranges' : given.serviceSettings.singleDays;
      const fixture = new Fixture(FIRST_RUN, { ...given.serviceSettings, singleDays, rows: rowsOf(given) });
      fixture.options = { maxConcurrentExports: given.concurrent };
      try {
        await drive(fixture, given);
        const cursor = fixture.target.state?.from_date ?? START;
        expect(cursor).toBe(
          addDays(dayAt(fixture.clock.now() - (given.delivery === 'settled' ? 3 : 0) * HOUR, -12), 0),
        );
        const complete = new Set(daysOf(START, addDays(cursor, -2)).filter((day) => day <= LAST));
        const wanted = fixture.service.settings.rows.filter((row) => complete.has(fixture.service.dayOf(row)));
        for (const row of wanted) expect(fixture.target.rows.has(row.id), `row ${row.id}`).toBe(true);
        if (given.delivery === 'settled')
          expect(new Set(fixture.target.appended).size).toBe(fixture.target.appended.length);
      } finally {
        fixture.close();
      }
    }),
    { numRuns: RUNS },
  );
});
