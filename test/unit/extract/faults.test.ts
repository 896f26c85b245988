import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { pauseAfter } from '../../../src/base/retry.ts';
import { extractWindows } from '../../../src/extract/extract.ts';
import { waitsAsOne } from '../../../src/extract/session.ts';
import { EXPORT_RETRY } from '../../../src/service/export/retry.ts';
import type { LimitHeaders } from '../../../src/service/http/headers.ts';
import {
  type FakeServiceSettings,
  type Fault,
  Fixture,
  HOUR,
  JITTER,
  planFor,
  steadyRows,
} from '../../support/extract/extraction.ts';
import { failureOf } from '../../support/failure.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 6);
const DAYS = { startDate: '2026-03-05', endDate: '2026-03-07' };
let fixture: Fixture;
const open = (serviceSettings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...serviceSettings });
  return fixture;
};
afterEach(() => fixture.close());

const truth = () =>
  ROWS.filter((r) => ['05', '06', '07'].includes(r.id.slice(17, 19)))
    .map((r) => r.id)
    .sort();
const cutRow = (csv: string) => csv.slice(0, -9);
const shortRow = (csv: string) => csv.replace(/,df_login\n/, '\n');

describe('a temporary fault', () => {
  const passing: [string, Fault][] = [
    ['a server error', { refuse: 'retry' }],
    ['a cut in a row', { body: cutRow }],
    ['a short row', { body: shortRow }],
    ['JSON after the rows', { body: (csv) => `${csv}{"result":"fail"}` }],
    ['no byte at all', { body: () => '' }],
    ['a quota refusal', { refuse: 'wait' }],
  ];
  it.each(passing)('%s is retried and nothing of it is stored', async (_, fault) => {
    await open({ fault: (_q, count) => (count === 2 ? fault : undefined) }).run(DAYS);
    expect(fixture.target.ids()).toEqual(truth());
    expect(fixture.service.sent).toBe(4);
    expect(fixture.target.receipts.map((r) => r.exports).reduce((a, b) => a + b)).toBe(4);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });
});

describe('a permanent fault', () => {
  it('is retried after growing pauses with jitter of up to two minutes', () => {
    const pauses = (random: number) =>
      [1, 2, 3, 4, 12].map((attempt) => pauseAfter(attempt, EXPORT_RETRY, () => random));
    expect(pauses(1)).toEqual([1_000, 2_000, 4_000, 8_000, 120_000]);
    expect(pauses(0)).toEqual([0, 0, 0, 0, 0]);
  });

  it('ends the run after five attempts with exit 3, and the windows before it are committed', async () => {
    open({ fault: (q) => (q.from === '2026-03-06' ? { refuse: 'retry' } : undefined) });
    const failure = await failureOf(fixture.run(DAYS));
    expect([failure.exitCode, failure.where.window, failure.where.attempt]).toEqual([3, '2026-03-06', 5]);
    expect(fixture.target.state?.from_date).toBe('2026-03-06');
    expect(fixture.events('window.retry').length).toBe(4);
    expect(fixture.clock.slept).toBe(JITTER * (1_000 + 2_000 + 4_000 + 8_000));
  });

  const failsOnce = (limits: (now: number) => Partial<LimitHeaders>) =>
    open({
      fault: (_q, count) => (count === 1 ? { refuse: 'retry', limits: limits(fixture.clock.now()) } : undefined),
    });

  it.each([
    [40_000, 40_000],
    [100, JITTER * 1_000],
    [26 * HOUR, HOUR],
    [undefined, JITTER * 1_000],
  ])('with a Retry-After of %s ms is requested again after %s ms, whatever its Reset is', async (after, pause) => {
    const retryAt = (now: number) => (after === undefined ? undefined : now + after);
    await failsOnce((now) => ({ retryAt: retryAt(now), resetAt: now + 600_000 })).run(DAYS);
    expect([fixture.clock.slept, fixture.service.sent]).toEqual([pause, 4]);
  });

  it('whose Retry-After is longer than --max-wait ends the run with exit 3; a pause of our own does not', async () => {
    failsOnce((now) => ({ retryAt: now + 40_000 })).maxWaitMs = 39_999;
    const failure = await failureOf(fixture.run(DAYS));
    expect(failure).toMatchObject({ exitCode: 3, internal: 'retry', where: { attempt: 1 } });
    expect(failure.message).toMatch(/again in 40 s: longer than the .*--max-wait/);
    expect([fixture.clock.slept, fixture.service.sent]).toEqual([0, 1]);
    fixture.close();
    failsOnce(() => ({})).maxWaitMs = 1;
    await fixture.run(DAYS);
    expect(fixture.target.ids()).toEqual(truth());
  });

  it('whose Retry-After is longer than --max-wait is refused by the whole of it, however long is still waited', async () => {
    for (const [hours, maxWaitMs] of [
      [2, 1.5 * HOUR],
      [5, HOUR / 3],
    ] as const) {
      fixture?.close();
      failsOnce((now) => ({ retryAt: now + hours * HOUR })).maxWaitMs = maxWaitMs;
      const failure = await failureOf(fixture.run(DAYS));
      expect([failure.exitCode, fixture.clock.slept]).toEqual([3, 0]);
      expect(failure.message).toContain(`may be requested again in ${hours} h: longer than`);
    }
  });

  const neverBefore = (refuse: 'retry' | 'retry_or_split') =>
    open({ fault: () => ({ refuse, limits: { retryAt: fixture.clock.now() + HOUR } }) });

  it('is waited for an hour in all, with the smaller exports that take its place', async () => {
    for (const refuse of ['retry', 'retry_or_split'] as const) {
      fixture?.close();
      neverBefore(refuse).options = { maxConcurrentExports: 1 };
      const failure = await failureOf(fixture.run({ ...DAYS, windowDays: 3, toDateInclusive: 'true' }));
      expect(failure.exitCode).toBe(3);
      expect(fixture.clock.slept - HOUR, refuse).toBeLessThan(120_000);
    }
    expect(fixture.events('window.split').length).toBeGreaterThan(3);
  });

  it('is waited for an hour in all, whatever the number of targets that want it', async () => {
    neverBefore('retry');
    const concurrency = { max: 1 };
    const sharing = { command: 'c', keep: true, refusals: new Map(), waitBudgets: new Map(), concurrency };
    for (let target = 0; target < 3; target++) {
      const plan = planFor(fixture.clock, fixture.target.prior({}), { ...DAYS, endDate: DAYS.startDate });
      const failure = await failureOf(extractWindows(plan, { ...fixture.deps(), sharing }).next());
      expect(failure.exitCode).toBe(3);
    }
    expect(fixture.clock.slept - HOUR).toBeLessThan(120_000);
  });

  it('that may mean "too big" makes the export smaller where its Retry-After is longer than --max-wait', async () => {
    const isAll = (q: { readonly eventsCondition: string }) => q.eventsCondition === 'all';
    const limits = () => ({ retryAt: fixture.clock.now() + HOUR });
    open({ fault: (q) => (isAll(q) ? { refuse: 'retry_or_split', limits: limits() } : undefined) }).maxWaitMs = 1_000;
    await fixture.run(DAYS);
    expect(fixture.target.ids()).toEqual(truth());
    expect(fixture.clock.slept).toBe(0);
  });

  it('shows the waits that its Retry-After asks for, the one that ends first', async () => {
    const shown: (number | undefined)[] = [];
    const start = failsOnce((now) => ({ retryAt: now + 40_000 })).clock.now();
    fixture.onWait = (until) => shown.push(until);
    await fixture.run(DAYS);
    expect(shown).toEqual([start + 40_000, undefined]);
    const all: (number | undefined)[] = [];
    const [one, two] = [{}, {}];
    const show = waitsAsOne((until) => all.push(until));
    for (const [until, owner] of [
      [5, undefined],
      [3, one],
      [4, two],
      [undefined, one],
      [undefined],
      [undefined, two],
    ] as const)
      show(until, owner);
    expect(all).toEqual([5, 3, 4, undefined]);
  });

  it('of an empty body exits with 3, unless it means no rows', async () => {
    open({ fault: (q) => (q.from === '2026-03-06' ? { body: () => '' } : undefined) });
    const failure = await failureOf(fixture.run(DAYS));
    expect(failure).toMatchObject({ exitCode: 3, internal: 'empty_body', where: { window: '2026-03-06', attempt: 5 } });
    expect(failure.where.file).toBeUndefined();
    expect(fixture.events('window.retry').map(({ fields }) => fields?.cause)).toEqual(Array(4).fill('empty_body'));
    fixture.options = { emptyBody: 'no_rows' };
    await fixture.run(DAYS);
    expect(fixture.target.state?.from_date).toBe('2026-03-08');
    expect(fixture.target.receipts.find((r) => r.from === '2026-03-06')).toMatchObject({
      rows: 0,
      header: [],
      bytes: 0,
    });
  });

  it('is not waited out after an abort, which rejects with its reason', async () => {
    open();
    const windows = fixture.windows(DAYS);
    await windows.next();
    fixture.controller.abort(new Error('stop'));
    await expect(windows.next()).rejects.toThrow('stop');
  });
});

describe('a body without a final line end', () => {
  it('is confirmed once by a second download, and remembered', async () => {
    await open({ finalNewline: false, endDeclared: true }).run(DAYS);
    expect(fixture.service.sent).toBe(4);
    expect(fixture.target.state).toMatchObject({ final_newline: false });
    fixture.service.requests.length = 0;
    await fixture.run({ ...DAYS, endDate: '2026-03-08' });
    expect(fixture.service.sent).toBe(2);
    expect(fixture.target.ids().length).toBe(24);
  });

  it('is truncated when the second download is complete', async () => {
    await open({ fault: (_q, count) => (count === 1 ? { body: (csv) => csv.slice(0, -3) } : undefined) }).run(DAYS);
    expect(fixture.target.ids()).toEqual(truth());
    expect([...fixture.target.rows.values()].every((line) => line.endsWith('df_login'))).toBe(true);
    expect(fixture.target.state).not.toHaveProperty('final_newline');
  });

  const rowsOf = (csv: string, count: number) => csv.split('\n').slice(0, count).join('\n');
  it('is truncated when the second download is truncated elsewhere: two different ends prove nothing', async () => {
    const cut = (rows: number): Fault => ({ body: (csv) => rowsOf(csv, rows) });
    await open({ fault: (_q, count) => (count === 1 ? cut(3) : count === 2 ? cut(5) : undefined) }).run(DAYS);
    expect(fixture.target.ids()).toEqual(truth());
    expect(fixture.service.sent).toBe(5);
    expect(fixture.target.state).not.toHaveProperty('final_newline');
  });

  it('is truncated when the second download has the same length and other rows', async () => {
    const cut = (first: number): Fault => ({
      body: (csv) => [csv.split('\n')[0], ...csv.split('\n').slice(first, first + 3)].join('\n'),
    });
    await open({ fault: (_q, count) => (count === 1 ? cut(1) : count === 2 ? cut(2) : undefined) }).run(DAYS);
    expect(fixture.target.ids()).toEqual(truth());
    expect(fixture.target.state).not.toHaveProperty('final_newline');
  });

  it('is never stored if each download is truncated elsewhere: exit 3', async () => {
    open({ fault: (_q, count) => ({ body: (csv) => rowsOf(csv, count) }) });
    const failure = await failureOf(fixture.run(DAYS));
    expect([failure.exitCode, failure.where.attempt]).toEqual([3, 5]);
    expect([fixture.target.ids(), readdirSync(fixture.spoolDir)]).toEqual([[], []]);
  });

  it('is confirmed for each export without a declared length', async () => {
    await open({ finalNewline: false }).run(DAYS);
    expect(fixture.service.sent).toBe(6);
    expect(fixture.events('window.retry')).toHaveLength(1);
  });

  it('is not stored if it is truncated, though the service never ends bodies with a line end', async () => {
    for (const endDeclared of [true, false]) {
      fixture?.close();
      await open({ finalNewline: false, endDeclared }).run(DAYS);
      let asked = 0;
      const cut: FakeServiceSettings['fault'] = (q) =>
        q.to === '2026-03-08' && asked++ % 2 === 0 ? { body: (csv) => csv.slice(0, -3) } : undefined;
      fixture.service.requests.length = 0;
      fixture.service.settings = { ...fixture.service.settings, endDeclared: false, fault: cut };
      await fixture.run({ ...DAYS, endDate: '2026-03-08' }).catch(() => {});
      expect([...fixture.target.rows.values()].every((line) => line.endsWith('df_login'))).toBe(true);
    }
  });

  it('is usual for a service that never sends one: a body with a final line end was truncated between two rows', async () => {
    await open({ finalNewline: false, endDeclared: true }).run(DAYS);
    const cut: FakeServiceSettings['fault'] = (q, count) =>
      q.to === '2026-03-08' && count === 2 ? { body: (csv) => `${rowsOf(csv, 3)}\n` } : undefined;
    fixture.service.requests.length = 0;
    fixture.service.settings = { ...fixture.service.settings, fault: cut };
    await fixture.run({ ...DAYS, endDate: '2026-03-08' });
    expect(fixture.service.sent).toBe(3);
    expect(fixture.target.ids()).toHaveLength(24);
    expect(fixture.target.state).toMatchObject({ final_newline: false });
  });

  it('is not remembered for a service whose other bodies end with a line end', async () => {
    open({ fault: ({ from }) => (from === '2026-03-05' ? { body: (csv) => csv.slice(0, -1) } : undefined) });
    await fixture.run(DAYS);
    expect(fixture.target.state).not.toHaveProperty('final_newline', false);
    expect(fixture.target.ids()).toEqual(truth());
  });
});

describe('a day that the service refuses', () => {
  it('is requested again with today in UTC', async () => {
    await open({ future: 'error' }).run({ startDate: '2026-03-08' });
    expect(fixture.target.ids()).toContain('df_login-2026-03-10-0');
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
  });

  it('shortens a window that ends in the future', async () => {
    await open({ future: 'error' }).run({ startDate: '2026-03-08', windowDays: 5, toDateInclusive: 'true' });
    expect(fixture.service.ranges).toEqual(['2026-03-08..2026-03-11', '2026-03-08..2026-03-10']);
    expect(fixture.target.receipts[0]).toMatchObject({ covers_from: '2026-03-08', covers_to: '2026-03-09' });
  });

  it('shortens a window, which completes the days that it requested, however late the answer was', async () => {
    const fault: FakeServiceSettings['fault'] = (q, count) => {
      if (q.to > '2026-03-10') return { refuse: 'invalid' };
      if (count === 2) fixture.clock.time += 72 * HOUR;
      return count === 2 ? { refuse: 'wait' } : undefined;
    };
    await open({ fault }).run({ startDate: '2026-03-08', windowDays: 5, toDateInclusive: 'true' });
    expect(fixture.service.ranges.at(-1)).toBe('2026-03-08..2026-03-10');
    expect(fixture.target.receipts[0]).toMatchObject({ covers_from: '2026-03-08', covers_to: '2026-03-10' });
    expect(fixture.target.state?.from_date).toBe('2026-03-11');
  });

  it('is left to a later run when it is today', async () => {
    await open({ future: 'error', inclusive: false }).run({ startDate: '2026-03-05' });
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
  });

  it('does not keep today from being read when it is only the excluded end of a range', async () => {
    // 16:00 UTC: it is tomorrow already in UTC+14, which the window reaches for.
    const fault: FakeServiceSettings['fault'] = (q) => (q.to > '2026-03-11' ? { refuse: 'invalid' } : undefined);
    open({ inclusive: false, fault });
    await fixture.run({ startDate: '2026-03-05', windowDays: 7, toDateInclusive: 'false' });
    expect(fixture.target.ids().filter((id) => id.includes('2026-03-10')).length).toBeGreaterThan(0);
  });

  it('on its own is read by a range, also when it has begun in the east alone', async () => {
    const fault: FakeServiceSettings['fault'] = (q) => (q.from === q.to ? { refuse: 'invalid' } : undefined);
    open({ inclusive: false, fault, rows: steadyRows('2026-03-10', '2026-03-10', 4), zoneHours: 14 });
    await fixture.run({ startDate: '2026-03-10' });
    const rows = fixture.service.selected({ from: '2026-03-11', to: '2026-03-12' });
    expect(rows.length).toBeGreaterThan(0);
    expect(fixture.target.ids()).toEqual(expect.arrayContaining(rows.map((row) => row.id)));
  });

  it('is no failure when it is today and an earlier run had an answer', async () => {
    const settings = { startDate: '2026-03-09', lookbackDays: 0 };
    const fault: FakeServiceSettings['fault'] = (q) => (q.to > '2026-03-10' ? { refuse: 'invalid' } : undefined);
    open({ inclusive: false, fault });
    await fixture.run({ ...settings, toDateInclusive: 'false' });
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
    await fixture.run({ ...settings, toDateInclusive: 'false' });
    expect(fixture.events('window.dropped').length).toBeGreaterThan(1);
  });

  it('is a configuration error when every day is refused', async () => {
    open({ fault: () => ({ refuse: 'invalid' }) });
    expect((await failureOf(fixture.run(DAYS))).exitCode).toBe(2);
  });

  it('is a configuration error when it is just over and only single days are accepted, and names the key to set', async () => {
    const rows = steadyRows('2026-03-09', '2026-03-09', 1);
    open({ rows, fault: (q) => (q.from === q.to ? undefined : { refuse: 'invalid' }) });
    const failure = await failureOf(fixture.run({ startDate: '2026-03-09', endDate: '2026-03-09' }));
    expect([failure.exitCode, failure.where.window]).toEqual([2, '2026-03-09']);
    expect(failure.message).toMatch(
      /of 2026-03-09 to 2026-03-10: .* exports 2026-03-09 alone: set to_date_inclusive\.$/,
    );
  });

  it.each([
    ['fail', 4],
    ['warn', 0],
  ] as const)('is a gap when the history is shorter: on_gap %s', async (onGap, exit) => {
    open({ historyDays: 4 });
    const run = fixture.run({ startDate: '2026-03-03', onGap });
    if (exit === 4) {
      const failure = await failureOf(run);
      expect([failure.exitCode, fixture.target.receipts.length]).toEqual([4, 0]);
      expect(failure.message).toContain('2026-03-03 to 2026-03-05');
      return;
    }
    await run;
    expect(fixture.target.state).toMatchObject({
      from_date: '2026-03-10',
      gaps: ['2026-03-03', '2026-03-04', '2026-03-05'],
    });
    expect(fixture.counts.gaps).toEqual(['2026-03-03', '2026-03-04', '2026-03-05']);
  });

  it('moves the default start, with a warning', async () => {
    await open({ historyDays: 4 }).run({ historyDays: 7 });
    expect(fixture.target.state).toMatchObject({ from_date: '2026-03-10', start_date: '2026-03-06' });
    expect(fixture.events('window.clamped').length).toBe(1);
  });
});
