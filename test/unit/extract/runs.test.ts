import { existsSync, readdirSync } from 'node:fs';
import { Ajv } from 'ajv';
import { afterEach, describe, expect, it } from 'vitest';
import receiptSchema from '../../../schemas/receipt.json' with { type: 'json' };
import stateSchema from '../../../schemas/state.json' with { type: 'json' };
import { isDay } from '../../../src/base/days.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import { type FakeServiceSettings, FakeTarget, Fixture, HOUR, steadyRows } from '../../support/extract/extraction.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 4);
const DAYS = { startDate: '2026-03-04', endDate: '2026-03-07', toDateInclusive: 'true' } as const;
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...settings });
  return fixture;
};
afterEach(() => fixture.close());
const ranges = () => fixture.service.ranges.map((range) => range.replaceAll('2026-03-', ''));
const events = () => fixture.log.map(({ event }) => event);

describe('a run', () => {
  it('begins with the warnings of its plan', async () => {
    await open({ historyDays: 99 }).run({ startDate: '2026-02-01', endDate: '2026-02-03', onGap: 'warn' });
    expect(events().slice(0, 2)).toEqual(['plan.gap', 'plan.retention_limit']);
  });

  it('without days to read opens nothing and requests nothing', async () => {
    open();
    await fixture.run({ ...DAYS, endDate: '2026-03-03' });
    expect([fixture.service.sent, readdirSync(fixture.spoolDir)]).toEqual([0, []]);
    await fixture.windows({ ...DAYS, endDate: '2026-03-03' }).next();
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('requests nothing more once its consumer has left', async () => {
    open();
    fixture.options = { maxConcurrentExports: 2 };
    const windows = fixture.windows(DAYS);
    await windows.next();
    await windows.return(undefined);
    expect(fixture.service.sent).toBeLessThanOrEqual(2);
    expect(fixture.service.busy).toBe(0);
  });

  it('requests nothing more once a window has failed', async () => {
    open({ fault: ({ from }) => (from === '2026-03-04' ? { refuse: 'config' } : undefined) });
    fixture.options = { maxConcurrentExports: 2 };
    await expect(fixture.run(DAYS)).rejects.toMatchObject({ exitCode: 2 });
    expect(fixture.service.sent).toBe(2);
  });

  it('requests nothing more once a window after stored ones has failed', async () => {
    open({ fault: ({ from }) => (from === '2026-03-05' ? { refuse: 'config' } : undefined) });
    fixture.options = { maxConcurrentExports: 2 };
    await expect(fixture.run({ ...DAYS, startDate: '2026-03-04', endDate: '2026-03-09' })).rejects.toMatchObject({
      exitCode: 2,
    });
    expect(fixture.service.ranges).toEqual(['2026-03-04..2026-03-04', '2026-03-05..2026-03-05']);
    expect(fixture.target.state?.from_date).toBe('2026-03-05');
  });

  it('removes the files of a window when the next one is requested', async () => {
    open();
    const windows = fixture.windows(DAYS);
    const first = await windows.next();
    const paths = first.value?.files.map(({ path }) => path) ?? [];
    expect(paths.map(existsSync)).toEqual([true]);
    await windows.next();
    expect(paths.map(existsSync)).toEqual([false]);
    await windows.return(undefined);
  });

  it('removes unused downloads of earlier runs if it reads all days, and not if days are named', async () => {
    open();
    await fixture.run(DAYS, {}, 0);
    const left = () =>
      readdirSync(fixture.spoolDir, { recursive: true }).filter((name) => /\.csv$/.test(String(name))).length;
    expect(left()).toBe(3);
    await fixture.run(DAYS, { from: '2026-03-07', to: '2026-03-07' });
    expect(left()).toBe(3);
    await fixture.run({ ...DAYS, startDate: '2026-03-07' });
    expect(left()).toBe(0);
  });

  it('fails when an export has no system columns', async () => {
    const strange = (csv: string) => csv.replaceAll(/^[^,]*,/gm, '');
    open({ fault: () => ({ body: strange }) });
    await expect(fixture.run(DAYS)).rejects.toMatchObject({ exitCode: 3 });
  });

  it('ends with a configuration error if every request is refused, unless one was answered before', async () => {
    const fault: FakeServiceSettings['fault'] = () => ({ refuse: 'invalid' });
    const today = { startDate: '2026-03-11', toDateInclusive: 'true' } as const;
    open({ fault });
    await expect(fixture.run(today)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('2026-03-11, which is not over everywhere yet'),
    });
    fixture.target = new FakeTarget();
    fixture.target.state = { version: 1, from_date: '2026-03-11', start_date: '2026-03-11', last_receipt: 'r' };
    await fixture.run(today);
    await expect(fixture.run(today, { fullRefresh: true })).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe('clocks of service and machine that are', () => {
  it.each([
    [HOUR, 0],
    [-HOUR, 0],
    [HOUR + 1_000, 1],
    [-HOUR - 1_000, 1],
  ])('%i ms apart cause %i warnings', async (clockAhead, warnings) => {
    open({ clockAhead });
    await fixture.run(DAYS);
    expect(fixture.events('clock.apart')).toHaveLength(warnings);
    if (warnings === 0) return;
    const now = fixture.clock.now();
    expect(fixture.events('clock.apart')).toMatchObject([
      {
        message: expect.stringContaining('are 1 h apart'),
        fields: { machine: new Date(now).toISOString(), service: new Date(now + clockAhead).toISOString() },
      },
    ]);
  });
});

describe('a range that reaches into the future', () => {
  it('is requested through tomorrow, then today, then in parts, of which the days that are over are read', async () => {
    const fault: FakeServiceSettings['fault'] = ({ to }) => (to > '2026-03-09' ? { refuse: 'invalid' } : undefined);
    open({ fault });
    // It is the 11th in UTC+14, the 10th in UTC and in UTC-12, where the 9th is the last day that is over.
    await fixture.run({ startDate: '2026-03-08', windowDays: 9, toDateInclusive: 'true' });
    expect(ranges()).toEqual(['08..11', '08..10', '08..09', '10..11', '10..10']);
    expect(fixture.target.state).toMatchObject({ from_date: '2026-03-10' });
    expect(fixture.target.state).not.toHaveProperty('max_window_days');
  });

  it('is a configuration error if it is refused, however few of its days are requested', async () => {
    open({ fault: () => ({ refuse: 'invalid' }) });
    const work = fixture.run({ startDate: '2026-03-08', windowDays: 9, toDateInclusive: 'true' });
    await expect(work).rejects.toMatchObject({ exitCode: 2, where: { window: '2026-03-08' } });
    expect(ranges()).toEqual(['08..11', '08..10', '08..09', '08..08']);
  });

  it('is requested through yesterday, too, in a morning of UTC', async () => {
    const fault: FakeServiceSettings['fault'] = ({ to }) => (to > '2026-03-09' ? { refuse: 'invalid' } : undefined);
    open({ fault });
    fixture.clock.time = Date.parse('2026-03-10T11:00:00Z');
    await fixture.run({ startDate: '2026-03-08', windowDays: 9, toDateInclusive: 'true' });
    expect(ranges()).toEqual(['08..11', '08..10', '08..09']);
    expect(fixture.target.receipts).toMatchObject([{ covers_from: '2026-03-08', covers_to: '2026-03-08' }]);
    expect(fixture.target.state?.from_date).toBe('2026-03-09');
  });

  it('is a configuration error if it is refused although it is over', async () => {
    open({ fault: () => ({ refuse: 'invalid' }) });
    const work = fixture.run({ ...DAYS, endDate: '2026-03-04' });
    await expect(work).rejects.toMatchObject({ exitCode: 2, where: { window: '2026-03-04' } });
    expect(ranges()).toEqual(['04..04']);
  });

  it('completes the days before its end if the end is excluded', async () => {
    const fault: FakeServiceSettings['fault'] = ({ to }) => (to > '2026-03-11' ? { refuse: 'invalid' } : undefined);
    open({ inclusive: false, fault });
    await fixture.run({ startDate: '2026-03-08', windowDays: 9, toDateInclusive: 'false' });
    expect(ranges()).toEqual(['08..12', '08..11']);
    expect(fixture.target.receipts).toMatchObject([{ covers_from: '2026-03-08', covers_to: '2026-03-09' }]);
  });

  it('is left to a later run if it is today alone and today is refused', async () => {
    const fault: FakeServiceSettings['fault'] = ({ to }) => (to > '2026-03-10' ? { refuse: 'invalid' } : undefined);
    open({ inclusive: false, fault });
    await fixture.run({ startDate: '2026-03-09', toDateInclusive: 'false' });
    expect(ranges()).toEqual(['09..10', '10..11', '11..12', '11..11'].slice(0, fixture.service.sent));
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
    expect(fixture.events('window.dropped').length).toBeGreaterThan(0);
  });
});

describe('today at a service that takes neither future days nor a day on its own', () => {
  it('is left to a later run, which has the days before it', async () => {
    open({ singleDays: 'refused', future: 'error' });
    await fixture.run({ startDate: '2026-03-08', windowDays: 2, toDateInclusive: 'true' });
    expect(ranges()).toEqual(['08..09', '10..11', '10..10']);
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
  });
});

describe('a range that is too long for one export', () => {
  it('is halved, the larger half first, until it fits, and the shortest failing length is remembered', async () => {
    open({ most: 9, rows: steadyRows('2026-02-28', '2026-03-09', 4) });
    fixture.options = { maxConcurrentExports: 1 };
    await fixture.run({ startDate: '2026-03-01', endDate: '2026-03-09', windowDays: 5, toDateInclusive: 'true' });
    // The later days of the same run are asked for in no more days at once.
    expect([...new Set(ranges())]).toEqual(['01..05', '01..03', '01..02', '03..03', '04..05', '06..07', '08..09']);
    expect(fixture.target.state).toMatchObject({ max_window_days: 2, from_date: '2026-03-10' });
    expect(fixture.target.ids()).toHaveLength(36);
  });
});

describe('configured columns that no export had', () => {
  const key = new HashKey(new Secret('a hash key of at least 32 characters'));

  it('are named once, without those that some export had', async () => {
    open();
    fixture.options = { edits: columnEdits(['phone', 'df_api_version'], ['df_unified_id', 'mail'], key) };
    await fixture.run(DAYS);
    expect(fixture.events('columns.unseen')).toMatchObject([{ level: 'warn', fields: { columns: 'phone, mail' } }]);
  });

  it('are not named when all were there, or no header arrived', async () => {
    open();
    fixture.options = { edits: columnEdits(['df_api_version'], [], undefined) };
    await fixture.run(DAYS);
    fixture.target = new FakeTarget();
    fixture.options = { edits: columnEdits(['phone'], [], undefined), emptyBody: 'no_rows' };
    fixture.service.settings = { ...fixture.service.settings, fault: () => ({ body: () => '' }) };
    await fixture.run(DAYS);
    expect(fixture.events('columns.unseen')).toEqual([]);
  });
});

describe('the output of a run', () => {
  const ajv = new Ajv({ strict: false, formats: { date: isDay, 'date-time': true } });

  it('matches its schemas, and the counts say what happened', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-11', 6) });
    await fixture.run({ startDate: '2026-03-08' });
    expect(ajv.validate(stateSchema, fixture.target.state), ajv.errorsText()).toBe(true);
    for (const receipt of fixture.target.receipts)
      expect(ajv.validate(receiptSchema, receipt), ajv.errorsText()).toBe(true);
    expect(new Set(fixture.target.receipts.map((r) => r.id)).size).toBe(4);
    expect(fixture.counts).toEqual({
      exports: 4,
      bytes: fixture.target.receipts.reduce((sum, r) => sum + r.bytes, 0),
      singleDaysInclusive: true,
      gaps: [],
    });
  });

  it('warns of invalid UTF-8 with the row and column of the first cell', async () => {
    const broken = (csv: string) => Buffer.from(csv.replaceAll('u-df_login', '\xff'), 'latin1');
    const rows = steadyRows('2026-03-08', '2026-03-08', 2);
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows, fault: () => ({ body: broken }) });
    await fixture.run({ startDate: '2026-03-08', endDate: '2026-03-08' });
    const fields = { window: '2026-03-08', cells: 2, row: 2, column: 'df_unified_id' };
    expect(fixture.events('window.invalid_utf8')).toMatchObject([{ level: 'warn', fields }]);
  });

  it('warns of a re-read with fewer rows', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-11', 6) });
    const days = { startDate: '2026-03-08', endDate: '2026-03-08' };
    await fixture.run(days);
    for await (const window of fixture.windows(days, {}, { rowsOf: () => undefined }))
      await fixture.target.commit(window);
    expect(fixture.events('window.fewer_rows')).toEqual([]);
    for await (const window of fixture.windows(days, {}, { rowsOf: () => 7 })) await fixture.target.commit(window);
    const fields = { window: '2026-03-08', rows: 6, before: 7 };
    expect(fixture.events('window.fewer_rows')).toMatchObject([{ level: 'warn', fields }]);
    for await (const window of fixture.windows(days, {}, { rowsOf: () => 6 })) await fixture.target.commit(window);
    expect(fixture.events('window.fewer_rows').length).toBe(1);
  });
});
