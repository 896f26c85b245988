import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { daysOf } from '../../../src/base/days.ts';
import type { Window } from '../../../src/extract/window.ts';
import { type FakeServiceSettings, FakeTarget, Fixture, HOUR, steadyRows } from '../../support/extract/extraction.ts';
import { failureOf } from '../../support/failure.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 4);
let fixture: Fixture;
const open = (serviceSettings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...serviceSettings });
  return fixture;
};
afterEach(() => fixture.close());

const PROVED = { toDateInclusive: 'true' } as const;
const ranges = () => fixture.service.ranges.map((range) => range.replaceAll('2026-03-', ''));

describe('expired days of a range', () => {
  it('at its beginning are found one by one, and the others are read', async () => {
    open({ historyDays: 4 });
    await fixture.run({ startDate: '2026-03-04', endDate: '2026-03-09', windowDays: 4, onGap: 'warn', ...PROVED });
    expect(ranges()).toEqual(expect.arrayContaining(['04..07', '05..07', '06..07', '08..09']));
    expect(fixture.target.state).toMatchObject({ from_date: '2026-03-10', gaps: ['2026-03-04', '2026-03-05'] });
    expect(fixture.target.ids()).toHaveLength(16);
    expect(fixture.events('window.gap')).toMatchObject([
      { level: 'warn', message: expect.stringContaining('2026-03-04 to 2026-03-05') },
    ]);
  });

  it('up to its last are all named', async () => {
    open({ historyDays: 2 });
    const settings = { startDate: '2026-03-04', endDate: '2026-03-08', windowDays: 3, onGap: 'warn' } as const;
    await fixture.run({ ...settings, ...PROVED });
    expect(fixture.target.state?.gaps).toEqual(daysOf('2026-03-04', '2026-03-07'));
  });

  it('stay in the state, in order, whatever is read after them', async () => {
    open({ historyDays: 4 });
    const settings = { startDate: '2026-03-03', onGap: 'warn', lookbackDays: 0, ...PROVED } as const;
    await fixture.run(settings, { from: '2026-03-05', to: '2026-03-07' });
    expect(fixture.target.state?.gaps).toEqual(['2026-03-05']);
    await fixture.run(settings, { from: '2026-03-03', to: '2026-03-07' });
    expect(fixture.target.state?.gaps).toEqual(['2026-03-03', '2026-03-04', '2026-03-05']);
    expect(fixture.counts.gaps).toEqual(['2026-03-03', '2026-03-04']);
    await fixture.run({ ...settings, endDate: '2026-03-08' });
    expect(fixture.target.state).toMatchObject({
      gaps: ['2026-03-03', '2026-03-04', '2026-03-05'],
      from_date: '2026-03-09',
    });
  });

  it('after stored windows end a run under on_gap fail, which says what is stored', async () => {
    let isGone = false;
    open({ fault: ({ from }) => (isGone && from > '2026-03-05' ? { refuse: 'gone' } : undefined) });
    fixture.options = { maxConcurrentExports: 1 };
    isGone = true;
    const failure = await failureOf(fixture.run({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED }));
    expect(failure).toMatchObject({
      exitCode: 4,
      message: expect.stringContaining('What was stored before them is complete'),
    });
    expect(fixture.target.state?.from_date).toBe('2026-03-06');
    fixture.close();
    open({ fault: () => ({ refuse: 'gone' }) });
    const first = await failureOf(fixture.run({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED }));
    expect(first.message).toContain('Nothing was changed');
  });

  it('between others end a run under on_gap fail before any later window is stored', async () => {
    open({ fault: ({ from }) => (from === '2026-03-05' ? { refuse: 'gone' } : undefined) });
    const failure = await failureOf(fixture.run({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED }));
    expect(failure).toMatchObject({ exitCode: 4, message: expect.stringContaining('2026-03-05') });
    expect(fixture.target.receipts.map(({ from }) => from)).toEqual(['2026-03-04']);
    expect(fixture.target.state).toMatchObject({ from_date: '2026-03-05' });
    expect(fixture.target.state).not.toHaveProperty('gaps');
  });

  it('before a default start are not gaps: the start moves past them and no further', async () => {
    open({ historyDays: 4 });
    await fixture.run({ historyDays: 6, ...PROVED });
    expect(fixture.target.state).toMatchObject({ start_date: '2026-03-06', from_date: '2026-03-10' });
    expect(fixture.target.state).not.toHaveProperty('gaps');
    expect(fixture.events('window.clamped')).toMatchObject([
      { message: expect.stringContaining('2026-03-04 to 2026-03-05') },
    ]);
    expect(fixture.events('window.gap')).toEqual([]);
  });
});

describe('a range of more days than the service exports at once', () => {
  const SETTINGS = { startDate: '2026-03-04', endDate: '2026-03-09', windowDays: 6, ...PROVED } as const;
  const limited = (refuse: 'gone' | 'invalid', most: number): FakeServiceSettings['fault'] => {
    return ({ from, to }) => (daysOf(from, to).length > most ? { refuse } : undefined);
  };

  it.each([
    ['gone', ['04..09', '04..04', '04..06', '07..09']],
    ['invalid', ['04..09', '04..06', '07..09']],
  ] as const)('is no gap and no configuration error, but requested in parts: %s', async (refuse, requests) => {
    for (const onGap of ['warn', 'fail'] as const) {
      open({ fault: limited(refuse, 3) });
      await fixture.run({ ...SETTINGS, onGap });
      expect(ranges()).toEqual(requests);
      expect(fixture.target.ids()).toHaveLength(24);
      expect(fixture.target.state).toMatchObject({ from_date: '2026-03-10', max_window_days: 3 });
      expect(fixture.target.state).not.toHaveProperty('gaps');
      expect(readdirSync(fixture.spoolDir)).toEqual([]);
      fixture.close();
    }
    open();
  });

  it('is asked for as single days if need be, and the days that are gone are still found', async () => {
    open({ historyDays: 4, fault: limited('gone', 1) });
    await fixture.run({ ...SETTINGS, onGap: 'warn' });
    expect(fixture.target.ids()).toHaveLength(16);
    expect(fixture.target.state).toMatchObject({ gaps: ['2026-03-04', '2026-03-05'], max_window_days: 1 });
  });

  it('costs no further request for days that are older than the configured history', async () => {
    open({ historyDays: 4 });
    await fixture.run({ ...SETTINGS, historyDays: 4, onGap: 'warn' });
    expect(ranges()).toEqual(['04..04', '06..09']);
  });

  it('is a configuration error that names the day that is refused on its own', async () => {
    open({ fault: () => ({ refuse: 'invalid' }) });
    const failure = await failureOf(fixture.run(SETTINGS));
    expect(failure).toMatchObject({ exitCode: 2, message: expect.stringContaining('of 2026-03-04: the fake says') });
    expect(ranges()).toEqual(['04..09', '04..06', '04..05', '04..04']);
  });

  it('that ends in the future is not taken for too long', async () => {
    open({
      zoneHours: -8,
      future: 'error',
      fault: ({ to }) => (to > '2026-03-10' ? { refuse: 'invalid' } : undefined),
    });
    fixture.target.state = { version: 1, from_date: '2026-03-10', start_date: '2026-03-10', to_date_inclusive: true };
    await fixture.run({ startDate: '2026-03-10', windowDays: 3, lookbackDays: 0 });
    expect(fixture.target.ids()).toHaveLength(2);
    expect(fixture.target.state).not.toHaveProperty('max_window_days');
  });
});

describe('the start of a state', () => {
  it.each([4, 5])('moves past expired days, also with %i days of history', async (historyDays) => {
    open({ historyDays: 4 });
    await fixture.run({ historyDays, ...PROVED });
    expect(fixture.target.state?.start_date).toBe('2026-03-06');
  });

  it('stays when a later day has expired', async () => {
    open({ fault: ({ from }) => (from === '2026-03-07' ? { refuse: 'gone' } : undefined) });
    await fixture.run({ historyDays: 6, ...PROVED }, { fullRefresh: true });
    expect(fixture.target.state).toMatchObject({ start_date: '2026-03-04', from_date: '2026-03-07' });
  });
});

describe('the state of a run', () => {
  const keysOf = async (settings: object, serviceSettings: Partial<FakeServiceSettings> = {}): Promise<string[]> => {
    const windows: Window[] = [];
    open(serviceSettings);
    for await (const window of fixture.windows({ startDate: '2026-03-08', endDate: '2026-03-08', ...settings })) {
      windows.push(window);
      await fixture.target.commit(window);
    }
    return Object.keys(windows.at(-1)?.state ?? {}).filter((key) => !['question', 'service'].includes(key));
  };

  it('holds what was found out about the service and nothing else', async () => {
    const always = ['version', 'from_date', 'start_date', 'last_receipt'];
    expect((await keysOf({})).sort()).toEqual([...always, 'to_date_inclusive'].sort());
    fixture.close();
    expect((await keysOf({}, { rows: [] })).sort()).toEqual([...always].sort());
    fixture.close();
    expect((await keysOf(PROVED)).sort()).toEqual([...always].sort());
    fixture.close();
    const found = await keysOf(PROVED, { finalNewline: false });
    expect(found.sort()).toEqual([...always, 'final_newline'].sort());
  });

  it('keeps what an earlier run found out', async () => {
    open({ finalNewline: false, endDeclared: true });
    fixture.target.state = {
      version: 1,
      from_date: '2026-03-08',
      start_date: '2026-03-08',
      to_date_inclusive: true,
      final_newline: false,
      max_window_days: 1,
      name_groups: 4,
    };
    await fixture.run({ startDate: '2026-03-08', endDate: '2026-03-09', windowDays: 5 });
    expect(ranges()).toEqual(['08..08', '09..09']);
    expect(fixture.target.state).toMatchObject({ final_newline: false, max_window_days: 1, name_groups: 4 });
  });
});

describe('the usual end of bodies', () => {
  it('is confirmed by the remaining days when one expires meanwhile', async () => {
    const asked = new Set<string>();
    let gone: string | undefined;
    const fault: FakeServiceSettings['fault'] = ({ from }) => {
      if (!asked.has(from)) return void asked.add(from);
      gone ??= from;
      return gone === from ? { refuse: 'gone' } : undefined;
    };
    open({ finalNewline: false, fault });
    await fixture.run({ startDate: '2026-03-04', endDate: '2026-03-07', onGap: 'warn', ...PROVED });
    expect(fixture.target.state).toMatchObject({ gaps: [gone], final_newline: false, from_date: '2026-03-08' });
    expect(fixture.target.ids()).toHaveLength(12);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('leaves one file of a confirmed body', async () => {
    open({ finalNewline: false });
    fixture.options = { maxConcurrentExports: 1 };
    const windows = fixture.windows({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED });
    await windows.next();
    const files = readdirSync(fixture.spoolDir, { recursive: true }).filter((name) =>
      /\.(csv|part)$/.test(String(name)),
    );
    expect(files).toHaveLength(1);
    await windows.return(undefined);
  });
});

describe('a download of a dead run', () => {
  it('is logged as reused, with its days and rows', async () => {
    open();
    await fixture.run({ startDate: '2026-03-04', endDate: '2026-03-06', windowDays: 3, ...PROVED }, {}, 0);
    fixture.clock.time += HOUR;
    await fixture.run({ startDate: '2026-03-04', endDate: '2026-03-06', windowDays: 3, ...PROVED });
    expect(fixture.events('window.reused')).toMatchObject([
      { level: 'info', fields: { window: '2026-03-04..2026-03-06', rows: 12 } },
    ]);
    expect(fixture.target.receipts).toMatchObject([{ exports: 0, rows: 12 }]);
    expect(fixture.service.sent).toBe(1);
  });

  it('is not reused with other filters', async () => {
    open();
    const days = { startDate: '2026-03-04', endDate: '2026-03-04', ...PROVED };
    await fixture.run(days, {}, 0);
    fixture.target = new FakeTarget();
    await fixture.run({ ...days, properties: ['a'], propertiesCondition: 'include' });
    expect([fixture.service.sent, fixture.events('window.reused')]).toEqual([2, []]);
  });
});
