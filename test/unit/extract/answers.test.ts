import { describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import type { ExportSettings } from '../../../src/extract/export-settings.ts';
import { Extraction } from '../../../src/extract/extraction.ts';
import type { PlanInput } from '../../../src/extract/which-days.ts';
import { NOTHING_STORED } from '../../../src/table/commit.ts';
import { Load } from '../../../src/targets/load.ts';
import { at, Fixture, HOUR, planFor, type ServiceSettings, steadyRows } from '../../support/extract/extraction.ts';
import { type Fault, type FaultRule, refusal } from '../../support/service/faults.ts';

const NOW = '2026-01-20T14:00:00Z';
const START = '2026-01-15';
const SETTINGS = { startDate: START, toDateInclusive: 'true' } as const;
const rows = steadyRows('2026-01-01', '2026-01-31', 4);

let fixture: Fixture;

const start = async (settings: ServiceSettings = {}): Promise<Fixture> => {
  fixture = await Fixture.start(NOW, { rows, ...settings });
  return fixture;
};
type RunArguments = readonly [settings?: Partial<ExportSettings>, more?: Partial<PlanInput>];
/** One run against a service. */
const run = async (service: ServiceSettings, ...[settings = SETTINGS, more]: RunArguments): Promise<Fixture> =>
  (await start(service)).run(settings, more);
const failure = async (service: ServiceSettings, ...[settings = SETTINGS, more]: RunArguments) =>
  (await start(service)).failure(settings, more);

/** The service answers requests of one day in its own way; others as ever. */
const onDay = (day: Day, fault: Fault | ((nth: number) => Fault | undefined)): FaultRule => {
  let nth = 0;
  return ({ from }) => {
    if (from !== day) return undefined;
    return typeof fault === 'function' ? fault(++nth) : fault;
  };
};
const body = (change: (csv: string) => string | Uint8Array): Fault => ({ kind: 'body', change });
const NO_BYTE = body(() => '');
const requestsOf = (day: Day) => fixture.requests.filter(({ from }) => from === day).length;
const without = (count: number) => (csv: string) => {
  const lines = csv.trimEnd().split('\n');
  return `${lines.slice(0, lines.length - count).join('\n')}\n`;
};

describe('the last line', () => {
  it('without a line end is downloaded once more, and then this is how the service ends its files', async () => {
    const { target } = await run({ format: { final_newline: false } }, { ...SETTINGS, lookbackDays: 0 });
    expect(target.state?.final_newline).toBe(false);
    expect(target.days.size).toBe(6);
    // The first download of a run goes alone; the others already know.
    expect(fixture.requests.length).toBe(7);
    await fixture.run({ ...SETTINGS, lookbackDays: 0 });
    expect(fixture.requests.length).toBe(8);
  });

  it('is not learnt from a header alone, which may have a line end where the last row has none', async () => {
    const joined = body((csv) => (csv.trimEnd().includes('\n') ? csv.trimEnd() : csv));
    await run({ rows: rows.filter(({ id }) => !id.includes('01-17')), fault: () => joined });
    expect(fixture.target.state?.final_newline).toBe(false);
    expect(fixture.requests.length).toBe(7);
    expect(requestsOf('2026-01-17')).toBe(1);
  });

  it('is accepted with another body of a day that is not over: it may have grown', async () => {
    const fault = onDay('2026-01-20', (nth) => body((csv) => (nth === 1 ? csv : without(1)(csv)).trimEnd()));
    await run({ fault });
    expect(fixture.target.days.get('2026-01-20')?.length).toBeGreaterThan(0);
    expect(requestsOf('2026-01-20')).toBe(2);
  });

  it('that was cut twice, and not at the same byte, does not cost a row', async () => {
    const cut = (nth: number) => (nth < 3 ? body((csv) => csv.slice(0, -2 - nth)) : undefined);
    const { target } = await run({ fault: onDay('2026-01-17', cut) });
    expect(target.days.get('2026-01-17')).toHaveLength(4);
    expect(requestsOf('2026-01-17')).toBe(3);
    expect(target.state).not.toHaveProperty('final_newline');
  });

  it('that each download cuts elsewhere fails its day as not complete', async () => {
    const cut = (nth: number) => body((csv) => csv.slice(0, -2 - nth));
    const error = await failure({ fault: onDay('2026-01-17', cut) });
    expect(error).toMatchObject({ exitCode: 3, message: expect.stringMatching(/2026-01-17.*not complete/) });
    expect(fixture.target.days.has('2026-01-17')).toBe(false);
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(4);
  });
});

describe('a day without rows', () => {
  const gap = rows.filter(({ id }) => !id.includes('01-17'));

  it.each(['header', '204', '404', 'zero_bytes', 'list'] as const)('answered with %s is empty', async (empty) => {
    const { target } = await run({ rows: gap, days: { empty } });
    expect(target.receipts.get('2026-01-17')).toMatchObject({ rows: 0, is_over: true });
    expect(target.state).toMatchObject({ from_date: '2026-01-20' });
    expect(requestsOf('2026-01-17')).toBe(empty === 'header' ? 1 : 2);
    expect(fixture.events('day.empty_answer')).toHaveLength(empty === 'header' ? 0 : 1);
  });

  it.each([
    ['204', { days: { empty: '204' } }],
    ['zero bytes', { days: { empty: 'zero_bytes' } }],
    ['404 or zero bytes', { days: { empty: '404' }, fault: onDay('2026-01-17', NO_BYTE) }],
  ] as const)('proves nothing where every day is answered with %s: exit 3', async (_, service) => {
    const error = await failure({ rows: [], ...service });
    expect(error.exitCode).toBe(3);
    expect(fixture.requests.length).toBeLessThanOrEqual(12);
    expect(fixture.target.state).toBeUndefined();
  });

  it('ends a first run whose newest seven days are answered with 404, without another export', async () => {
    const error = await failure({ rows: [], days: { empty: '404' } }, { ...SETTINGS, startDate: '2025-12-25' });
    expect(error.exitCode).toBe(2);
    expect(error.message).toMatch(/404.*2026-01-13 to 2026-01-19.*base_url/);
    expect(fixture.requests.length).toBe(14);
  });

  it('has its rows if only the first of two answers was empty', async () => {
    const fault = onDay('2026-01-17', (nth) => (nth === 1 ? NO_BYTE : undefined));
    await run({ fault });
    expect(fixture.target.days.get('2026-01-17')).toHaveLength(4);
  });

  it('is not known to be one if the two answers are of different kinds', async () => {
    const fault = onDay('2026-01-17', (nth) => (nth === 1 ? NO_BYTE : refusal(404)));
    expect(await failure({ fault })).toMatchObject({ exitCode: 3, message: expect.stringMatching(/and then.*404/) });
    expect(fixture.target.days.has('2026-01-17')).toBe(false);
  });

  it('is empty however many come before the first day with rows', async () => {
    const late = rows.filter(({ id }) => id.includes('01-18'));
    await run({ rows: late, days: { empty: 'zero_bytes' } }, { ...SETTINGS, startDate: '2026-01-12' });
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(4);
    expect(fixture.target.receipts.get('2026-01-12')).toMatchObject({ rows: 0, is_over: true });
  });

  it('is not stored before a first run has seen a day as CSV, but by the next run', async () => {
    const settings = { ...SETTINGS, startDate: '2026-01-05' };
    const early = rows.filter(({ id }) => id.includes('01-08'));
    const error = await failure({ rows: early, days: { empty: '204' } }, settings);
    expect(error.exitCode).toBe(3);
    expect(error.message).toMatch(/^2026-01-05.*answered with 204/);
    expect(fixture.ranges.slice(0, 2)).toEqual(['2026-01-19..2026-01-19', '2026-01-19..2026-01-19']);
    expect(fixture.target.days.get('2026-01-08')).toHaveLength(4);
    await fixture.run(settings);
    expect(fixture.target.state?.from_date).toBe('2026-01-20');
  });

  it('never replaces rows by such an answer, but two replace rows of other filters', async () => {
    await run({ days: { empty: '404' } });
    fixture.serve({ rows: [] });
    const error = await fixture.failure(SETTINGS);
    expect(error.exitCode).toBe(3);
    expect(error.message).toMatch(/stored rows stay/);
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(4);
    await fixture.run({ ...SETTINGS, events: ['own_event'], eventsCondition: 'include' }, { fullRefresh: true });
    expect(fixture.target.days.get('2026-01-19')).toEqual([]);
    expect(fixture.events('day.empty_answer')).toHaveLength(5);
  });

  it('is empty if the place holds none of the rows that it had', async () => {
    await run({ days: { empty: '404' } });
    fixture.target.days.set('2026-01-19', []);
    fixture.serve({ rows: rows.filter(({ id }) => !id.includes('01-19')) });
    await fixture.run(SETTINGS);
    expect(fixture.target.receipts.get('2026-01-19')).toMatchObject({ rows: 0, is_over: true });
  });

  it('is empty once the end day is known, although rows of the next day came with it before', async () => {
    const few = rows.filter(({ id }) => !id.includes('01-19'));
    await run({ days: { empty: '404' }, rows: few }, { startDate: START });
    expect(fixture.target.receipts.get('2026-01-19')).toMatchObject({ to_date: '2026-01-20' });
    fixture.clock.time += 24 * HOUR;
    await fixture.run({ startDate: START });
    expect(fixture.target.receipts.get('2026-01-19')).toMatchObject({ to_date: '2026-01-19', rows: 0 });
  });

  it('never replaces rows that came with another to_date', async () => {
    await run({ days: { empty: '404' } }, { startDate: START, toDateInclusive: 'false' });
    fixture.serve({ rows: [] });
    expect((await fixture.failure(SETTINGS)).exitCode).toBe(3);
    fixture.serve({ days: { empty: 'header' } });
    await fixture.run(SETTINGS);
    expect(fixture.target.days.get('2026-01-19')).toEqual([]);
  });

  it('has its rows if only the first of two answers with another to_date was a header', async () => {
    await run({}, { startDate: START, toDateInclusive: 'false' });
    const header = body((csv) => csv.slice(0, csv.indexOf('\n') + 1));
    fixture.serve({ fault: onDay('2026-01-19', (nth) => (nth === 1 ? header : undefined)) });
    await fixture.run(SETTINGS);
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(4);
  });

  it('replaces rows by two headers alone', async () => {
    await run({});
    fixture.serve({ rows: gap.filter(({ id }) => !id.includes('01-19')) });
    await fixture.run(SETTINGS);
    expect(fixture.target.days.get('2026-01-19')).toEqual([]);
    expect(fixture.target.receipts.get('2026-01-19')).toMatchObject({ exports: 2 });
    expect(fixture.events('day.fewer_rows')).toHaveLength(1);
  });
});

describe('a day that has fewer rows than are stored', () => {
  const again = async (fault: FaultRule) => {
    await run({});
    fixture.serve({ fault });
    fixture.forgetRequests();
  };

  it('is downloaded once more, and the whole one is taken', async () => {
    await again(onDay('2026-01-19', (nth) => (nth === 1 ? body(without(2)) : undefined)));
    await fixture.run(SETTINGS);
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(4);
    expect(requestsOf('2026-01-19')).toBe(2);
  });

  it('is taken with a warning if two downloads agree', async () => {
    await again(onDay('2026-01-19', body(without(1))));
    await fixture.run(SETTINGS);
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(3);
    expect(fixture.events('day.fewer_rows')).toHaveLength(1);
  });

  it.each([
    [1, 2],
    [3, 1],
  ])('keeps the stored rows if downloads lack %i and %i: exit 3, other days are loaded', async (first, second) => {
    await again(onDay('2026-01-19', (nth) => body(without(nth === 1 ? first : second))));
    fixture.clock.time += 24 * HOUR;
    const error = await fixture.failure(SETTINGS);
    expect(error.exitCode).toBe(3);
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(4);
    expect(fixture.target.days.get('2026-01-20')).toHaveLength(4);
  });

  it('that is not over keeps the stored rows with a warning', async () => {
    await again(onDay('2026-01-20', (nth) => body(without(nth))));
    await fixture.run(SETTINGS);
    expect(fixture.target.days.get('2026-01-20')).toHaveLength(2);
    expect(fixture.events('day.open')).toHaveLength(1);
  });

  it('counts the rows of people on the suppression list, who were loaded before', async () => {
    await again(() => undefined);
    const suppression = { has: (id: Buffer) => id.toString() === 'u-df_login-2026-01-19-1' };
    const plan = planFor(fixture.clock, fixture.target.prior(), SETTINGS);
    const deps = fixture.deps();
    const extraction = new Extraction(plan, { ...deps, scannerOptions: { ...deps.scannerOptions, suppression } });
    for await (const batch of extraction.batches()) await fixture.target.commit(batch);
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(3);
    expect(fixture.target.receipts.get('2026-01-19')).toMatchObject({ rows: 4, suppressed: 1 });
    expect(requestsOf('2026-01-19')).toBe(1);
  });

  it('counts no suppressed rows of a day that the place leaves out for a later download', async () => {
    const suppression = { has: () => true };
    await start();
    const deps = fixture.deps();
    const load = new Load({ ...deps, scannerOptions: { ...deps.scannerOptions, suppression } });
    await load.loadAll(planFor(fixture.clock, fixture.target.prior(), SETTINGS), {
      kind: 'stateful',
      state: undefined,
      commit: async () => NOTHING_STORED,
      recordRun: async () => {},
      close: async () => {},
    });
    expect(load.result.suppressedRows).toBe(0);
    expect(fixture.events('day.committed')).toEqual([]);
  });
});

describe('a full refresh with other filters', () => {
  const both = [...rows, ...steadyRows('2026-01-01', '2026-01-31', 4, 'own_event')];
  const other = { ...SETTINGS, events: ['df_login'], eventsCondition: 'include' } as const;

  it('compares no rows with those of other filters: one export a day', async () => {
    await run({ rows: both });
    fixture.forgetRequests();
    await fixture.run(other, { fullRefresh: true });
    expect(fixture.requests.length).toBe(6);
    expect(fixture.target.days.get('2026-01-17')).toHaveLength(4);
  });
});

describe('a day that is not over', () => {
  it.each<[string, Fault]>([
    ['500', refusal(500)],
    ['400', refusal(400)],
    ['exceed_date_range_limit', refusal(400, { message: 'exceed_date_range_limit' })],
    ['401', refusal(401)],
    ['a broken body', body(() => 'no export')],
    ['cells between semicolons', body((csv) => csv.replaceAll(',', ';'))],
  ])('never fails a run: %s', async (_, fault) => {
    const { target } = await run({ fault: onDay('2026-01-20', fault) });
    expect(target.state).toMatchObject({ from_date: '2026-01-20' });
    expect(target.state).not.toHaveProperty('gaps');
    expect(fixture.events('day.open')).toHaveLength(1);
    expect(requestsOf('2026-01-20')).toBeLessThanOrEqual(3);
  });

  it.each([
    [500, 3],
    [401, 2],
  ] as const)('fails a run that loaded nothing else: %i with exit %i', async (status, exitCode) => {
    await start({ fault: onDay('2026-01-20', refusal(status)) });
    expect(await fixture.failure({ ...SETTINGS, startDate: '2026-01-20' })).toMatchObject({ exitCode });
  });

  it('stays open if its download began before it was over, however late that ends', async () => {
    const waitsAWhile = () => {
      fixture.clock.time += 2 * HOUR;
      return undefined;
    };
    await start({ fault: onDay('2026-01-20', waitsAWhile) });
    fixture.clock.time = at('2026-01-21T11:00:00Z');
    await fixture.run(SETTINGS);
    const requested_at = '2026-01-21T11:00:00.000Z';
    expect(fixture.target.receipts.get('2026-01-20')).toMatchObject({ rows: 4, is_over: false, requested_at });
    expect(fixture.target.state?.from_date).toBe('2026-01-20');
  });

  it('is counted as open if the caller named it', async () => {
    await run({}, SETTINGS, { from: '2026-01-20', to: '2026-01-20' });
    expect(fixture.extraction?.results.openDays).toEqual(['2026-01-20']);
  });
});

it('a limit that stays fails its day with the 50th refusal, whatever else is attempted between', async () => {
  const fault = onDay('2026-01-17', (nth) => refusal(nth === 30 ? 503 : 429));
  const error = await failure({ fault });
  expect(error).toMatchObject({ exitCode: 3, message: expect.stringMatching(/2026-01-17: .* for the 50th time/) });
  expect(requestsOf('2026-01-17')).toBe(51);
});

it('a service that is away for twenty seconds costs no day', async () => {
  await start();
  const backAt = fixture.clock.time + 20_000;
  fixture.serve({ fault: onDay('2026-01-17', () => (fixture.clock.time < backAt ? refusal(503) : undefined)) });
  const { target } = await fixture.run(SETTINGS);
  expect(target.days.get('2026-01-17')).toHaveLength(4);
});

describe('a broken body', () => {
  it('that another download mends costs one more export', async () => {
    const fault = onDay('2026-01-17', (nth) => (nth === 1 ? body((csv) => csv.replace(',u-', '')) : undefined));
    await run({ fault });
    expect(fixture.target.days.get('2026-01-17')).toHaveLength(4);
    expect(requestsOf('2026-01-17')).toBe(2);
  });

  it('that breaks in another row each time is downloaded again, and each request is counted', async () => {
    const cutRow = (nth: number) => (csv: string) =>
      csv
        .split('\n')
        .map((line, i) => (i === nth ? line.replace(',u-', '') : line))
        .join('\n');
    await run({ fault: onDay('2026-01-17', (nth) => (nth < 3 ? body(cutRow(nth)) : undefined)) });
    expect(fixture.target.days.get('2026-01-17')).toHaveLength(4);
    expect(fixture.target.receipts.get('2026-01-17')).toMatchObject({ exports: 3 });
  });

  it.each<[string, (csv: string) => string]>([
    ['a row that is too short', (csv) => csv.replace(',u-', '')],
    ['columns missing', () => 'a,df_unified_id\n1,2\n'],
  ])('fails its day alone once it came twice: %s', async (_, change) => {
    const error = await failure({ fault: onDay('2026-01-17', body(change)) });
    expect(error.exitCode).toBe(3);
    expect(error.message).toContain('2026-01-17');
    expect(requestsOf('2026-01-17')).toBe(2);
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(4);
    expect(fixture.target.state?.from_date).toBe('2026-01-17');
  });
});

describe('a body that can never be read', () => {
  it.each<[string, (csv: string) => string | Uint8Array]>([
    ['another encoding', (csv) => Buffer.from(`\uFEFF${csv}`, 'utf16le')],
    ['broken line ends', (csv) => csv.replaceAll('\n', '\r')],
  ])('fails its day alone, with exit 2, and names load, however many days are of the kind: %s', async (_, change) => {
    const error = await failure({ fault: ({ from }) => (from <= '2026-01-17' ? body(change) : undefined) });
    expect(error.exitCode).toBe(2);
    expect(error.message).toMatch(/^2026-01-15: .*load … --day 2026-01-15/);
    expect(requestsOf('2026-01-17')).toBe(1);
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(4);
    expect(fixture.target.state?.from_date).toBe('2026-01-15');
  });

  it('has the exit code of the run, also after a day that may pass', async () => {
    const broken = body((csv) => csv.replaceAll('\n', '\r'));
    const fault: FaultRule = ({ from }) => ({ '2026-01-16': refusal(503), '2026-01-17': broken })[from];
    const error = await failure({ fault });
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/^2026-01-17: /)]);
    expect(fixture.events('day.failed').map(({ fields }) => fields)).toMatchObject([{ day: '2026-01-16' }]);
  });
});

describe('a day that is too large', () => {
  const many = [...rows, ...steadyRows('2026-01-17', '2026-01-17', 30, 'own_event')];
  const isTooBig: ServiceSettings['isTooBig'] = (_, count) => count > 32;

  it('is requested in parts by event name, and stored whole', async () => {
    const { target } = await run({ rows: many, isTooBig });
    expect(target.days.get('2026-01-17')).toHaveLength(34);
    expect(target.receipts.get('2026-01-17')).toMatchObject({ rows: 34 });
    // A row has more than 90 bytes: those of all parts count.
    expect(target.receipts.get('2026-01-17')?.bytes).toBeGreaterThan(34 * 90);
    expect(target.state?.from_date).toBe('2026-01-20');
    const parts = fixture.requests.filter(({ events }) => events.length > 0);
    expect(parts.at(-1)?.condition).toBe('exclude');
  });

  it('is stored whole by a service that refuses names without events', async () => {
    const isRefused = (name: string) => name !== 'df_login' && name !== 'own_event';
    const fault: FaultRule = ({ events }) => ([...events.names].some(isRefused) ? refusal(400) : undefined);
    const { target } = await run({ rows: many, isTooBig, fault });
    expect(target.days.get('2026-01-17')).toHaveLength(34);
  });

  it('is requested without the events that the user excludes', async () => {
    const left = ['df_refund', 'left_out'].flatMap((name) => steadyRows('2026-01-17', '2026-01-17', 2, name));
    await start({ rows: [...many, ...left], isTooBig });
    await fixture.run({ ...SETTINGS, events: ['df_refund', 'left_out'], eventsCondition: 'exclude' });
    expect(fixture.target.days.get('2026-01-17')).toHaveLength(34);
    expect(fixture.target.days.get('2026-01-17')?.join()).not.toMatch(/df_refund|left_out/);
  });

  it('with a single name that is too large is named, and the other days are loaded', async () => {
    const filter = { events: ['own_event', 'df_login'], eventsCondition: 'include' } as const;
    const error = await failure({ rows: many, isTooBig: (_, count) => count > 20 }, { ...SETTINGS, ...filter });
    expect(error.exitCode).toBe(3);
    expect(error.message).toMatch(/own_event of 2026-01-17/);
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(4);
  });

  it('fails if the service refuses every name of the filter: that is no day without rows', async () => {
    const fault: FaultRule = ({ from, events }) =>
      from === '2026-01-17' ? refusal(events.names.size > 1 ? 500 : 400) : undefined;
    const filter = { events: ['df_login', 'own_event'], eventsCondition: 'include' } as const;
    const error = await failure({ fault }, { ...SETTINGS, ...filter });
    expect(error).toMatchObject({ exitCode: 3, message: expect.stringMatching(/of every name of 2026-01-17/) });
    expect(fixture.target.receipts.has('2026-01-17')).toBe(false);
  });

  it.each([204, 404])('keeps its stored rows if every part is answered with %i', async (status) => {
    await run({});
    fixture.serve({
      fault: ({ from, events }) =>
        from === '2026-01-19' ? refusal(events.condition === 'all' ? 500 : status) : undefined,
    });
    const error = await fixture.failure(SETTINGS);
    expect(error).toMatchObject({ exitCode: 3, message: expect.stringMatching(/2026-01-19.*nothing of the day/) });
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(4);
  });

  it.each([
    ['404', refusal(404)],
    ['zero bytes', NO_BYTE],
  ])('has the rows of a part that was answered once with %s', async (_, fault) => {
    let emptyAnswers = 0;
    await start({
      rows: many,
      isTooBig,
      fault: ({ from, events }) =>
        from === '2026-01-17' && events.condition === 'exclude' && emptyAnswers++ === 0 ? fault : undefined,
    });
    await fixture.run(SETTINGS);
    expect([emptyAnswers, fixture.target.days.get('2026-01-17')?.length]).toEqual([2, 34]);
  });

  it('fails if its first part fails in the same way', async () => {
    const error = await failure({ fault: onDay('2026-01-17', refusal(500)) });
    expect(error.exitCode).toBe(3);
    expect(error.message).toMatch(/df_start_session of 2026-01-17 cannot be exported.*load … --day 2026-01-17/);
    expect(requestsOf('2026-01-17')).toBe(6);
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(4);
  });

  it('is requested in parts by a first run whose every day is too large', async () => {
    const events = ['df_login', 'df_logout', 'own_event'];
    const large = events.flatMap((event) => steadyRows(START, '2026-01-20', 6, event));
    const { target } = await run({ rows: large, isTooBig: (_, count) => count > 6 });
    expect(target.days.get(START)).toHaveLength(18);
    expect(target.state?.from_date).toBe('2026-01-20');
  });
});

describe('days that are no longer exported', () => {
  const late = async (settings: object) => {
    await run({});
    fixture.clock.time += 40 * 24 * HOUR;
    fixture.serve({ rows: steadyRows('2026-01-01', '2026-03-05', 2) });
    fixture.forgetRequests();
    return { ...SETTINGS, ...settings };
  };

  it('are gaps under on_gap fail: all others are loaded, exit 4 names them, and the cursor stays', async () => {
    const settings = await late({});
    const error = await fixture.failure(settings);
    expect(error.exitCode).toBe(4);
    expect(error.message).toContain('2026-01-20 to 2026-01-29');
    expect(error.message).toContain('load … --day 2026-01-20');
    expect(fixture.target.days.get('2026-01-30')).toHaveLength(2);
    expect(fixture.target.state?.from_date).toBe('2026-01-20');
    // The newest of them shows that those before it are lost, too.
    expect(fixture.requests.filter(({ from }) => from < '2026-01-30')).toHaveLength(1);
  });

  it('are named also by a run that cannot store the day behind them', async () => {
    const settings = await late({});
    const batches = fixture.batches(settings);
    await batches.next();
    await batches.return();
    expect(fixture.events('day.failed')).toMatchObject([
      { message: expect.stringContaining('2026-01-20 to 2026-01-29') },
    ]);
  });

  it('are recorded under on_gap warn, and the cursor goes on', async () => {
    const settings = await late({ onGap: 'warn' });
    await fixture.run(settings);
    expect(fixture.target.state?.gaps).toHaveLength(10);
    expect(fixture.target.state?.from_date).toBe('2026-03-01');
    await fixture.run(settings);
    expect(fixture.extraction?.results.gaps).toEqual([]);
    expect(fixture.target.state?.gaps).toHaveLength(10);
  });

  it('are named under on_gap warn also by a run that gives up behind them', async () => {
    const settings = await late({ onGap: 'warn' });
    fixture.serve({ fault: ({ from }) => (from > '2026-02-10' ? refusal(503) : undefined) });
    await fixture.failure(settings);
    expect(fixture.target.state?.gaps).toHaveLength(10);
    expect(fixture.events('day.gap')).toMatchObject([
      { message: expect.stringMatching(/no longer exports 2026-01-20 to 2026-01-29: reading goes on/) },
    ]);
  });

  it('decide the exit code also of a run that gives up, since three other days failed', async () => {
    const settings = await late({});
    fixture.serve({ fault: ({ from }) => (from > '2026-02-10' ? refusal(503) : undefined) });
    const error = await fixture.failure(settings);
    expect(error).toMatchObject({ exitCode: 4, message: expect.stringContaining('2026-01-20') });
    expect(fixture.events('day.failed')).toHaveLength(3);
  });

  it('decide the exit code also if no later day proves that the service exports days', async () => {
    const named = { from: '2026-01-15', to: '2026-01-19' };
    const error = await failure({ rows: [], days: { history_days: 3, empty: '204' } }, SETTINGS, named);
    expect(error).toMatchObject({ exitCode: 4, message: expect.stringContaining('2026-01-15') });
    expect(fixture.target.state).toBeUndefined();
    expect(fixture.events('day.failed')).toMatchObject([
      { message: expect.stringMatching(/^2026-01-17 to 2026-01-19: .*answered with 204/) },
    ]);
  });

  it('are no gaps while the service still exports them, even beyond history_days', async () => {
    const settings = await late({});
    fixture.serve({ days: { history_days: 90 } });
    await fixture.run(settings);
    expect(fixture.target.state?.from_date).toBe('2026-03-01');
  });

  it('only shorten a first run, with a warning', async () => {
    const { target } = await run({ days: { history_days: 3 } }, { startDate: '2026-01-10', toDateInclusive: 'true' });
    expect(target.state).toMatchObject({ start_date: '2026-01-17', from_date: '2026-01-20' });
    expect(target.state).not.toHaveProperty('gaps');
    expect(fixture.events('plan.shortened')).toHaveLength(1);
  });

  it('end a run with exit 4 if the caller named them, and the others are loaded', async () => {
    const named = { from: '2026-01-16', to: '2026-01-17' };
    const error = await failure({ days: { history_days: 3 } }, { onGap: 'warn' }, named);
    expect(error.exitCode).toBe(4);
    expect(fixture.target.days.has('2026-01-17')).toBe(true);
  });
});

describe('an implausible day', () => {
  const usual = steadyRows('2025-12-20', '2026-01-31', 120);
  const few = usual.filter(({ id }) => !id.includes('2026-01-18') || id.endsWith('-1'));
  const settings = { startDate: '2025-12-25', toDateInclusive: 'true' } as const;

  it('is warned about and read again until it is whole', async () => {
    await run({ rows: few }, settings);
    expect(fixture.extraction?.results.implausibleDays).toEqual(['2026-01-18']);
    expect(fixture.target.state).toMatchObject({ from_date: '2026-01-20' });
    fixture.serve({ rows: usual });
    fixture.clock.time += 24 * HOUR;
    await fixture.run(settings);
    expect(fixture.events('plan.read_again')).toMatchObject([
      { message: expect.stringMatching(/far fewer rows.*2026-01-18/) },
    ]);
    expect(fixture.target.days.get('2026-01-18')).toHaveLength(120);
  });
});

describe('a run warns', () => {
  it('if the oldest day that it looked back at gained rows, and names lookback_days', async () => {
    const settings = { ...SETTINGS, lookbackDays: 2 };
    await run({}, settings);
    const late = ['17', '18'].map((day) => ({ ...steadyRows(`2026-01-${day}`, `2026-01-${day}`, 1, 'late')[0] }));
    fixture.serve({ rows: [...rows, late[0]] });
    await fixture.run(settings);
    expect(fixture.events('day.late_rows')).toEqual([]);
    fixture.serve({ rows: [...rows, ...late] });
    await fixture.run(settings);
    expect(fixture.events('day.late_rows')).toMatchObject([
      { message: expect.stringMatching(/2026-01-18 has 1 row more.*lookback_days/) },
    ]);
    // Today, which is not over, gains rows as a rule.
    fixture.serve({ rows: [...rows, ...late, ...steadyRows('2026-01-20', '2026-01-20', 9, 'more')] });
    fixture.clock.time += HOUR;
    await fixture.run({ ...settings, lookbackDays: 0 });
    expect(fixture.events('day.late_rows')).toHaveLength(1);
  });

  it('if its clock is more than an hour wrong, and ends with exit 2 above twelve', async () => {
    await run({ clockAhead: 1.1 * HOUR });
    expect(fixture.events('clock.apart')).toHaveLength(1);
    const error = await failure({ clockAhead: -12.1 * HOUR });
    expect(error.exitCode).toBe(2);
    expect(error.message).toMatch(/2026-01-20T14:00.*2026-01-20T01:54/);
    expect(fixture.target.state).toBeUndefined();
  });

  it.each<[string, FaultRule]>([
    ['', () => undefined],
    [', also if it gives up behind them', ({ from }) => (from > '2026-01-16' ? refusal(503) : undefined)],
  ])('of the days that it loads without rows%s', async (_, fault) => {
    await start({ rows: rows.filter(({ id }) => !id.includes('01-15') && !id.includes('01-16')), fault });
    await fixture.run(SETTINGS).catch(() => {});
    expect(fixture.events('day.empty')).toMatchObject([{ message: 'Days without rows: 2026-01-15 to 2026-01-16.' }]);
  });
});
