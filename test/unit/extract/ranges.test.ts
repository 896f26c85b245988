import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { daysOf } from '../../../src/base/days.ts';
import type { Failure } from '../../../src/base/errors.ts';
import type { Window } from '../../../src/extract/window.ts';
import { Bench, FakeTarget, type FakeWorld, HOUR, steadyRows } from '../../support/extract/extraction.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 4);
let bench: Bench;
const open = (world: Partial<FakeWorld> = {}) => {
  bench = new Bench('2026-03-10T16:00:00Z', { rows: ROWS, ...world });
  return bench;
};
afterEach(() => bench.close());

const PROVED = { toDateInclusive: 'true' } as const;
const ranges = () => bench.service.ranges.map((range) => range.replaceAll('2026-03-', ''));
const failureOf = (work: Promise<unknown>): Promise<Failure> =>
  work.then(
    () => expect.unreachable('it passed'),
    (error) => error as Failure,
  );

describe('days that are gone', () => {
  it('at the beginning of several are found one by one, and the others are read', async () => {
    open({ historyDays: 4 });
    await bench.run({ startDate: '2026-03-04', endDate: '2026-03-09', windowDays: 4, onGap: 'warn', ...PROVED });
    expect(ranges()).toEqual(expect.arrayContaining(['04..07', '05..07', '06..07', '08..09']));
    expect(bench.target.state).toMatchObject({ from_date: '2026-03-10', gaps: ['2026-03-04', '2026-03-05'] });
    expect(bench.target.ids()).toHaveLength(16);
    expect(bench.events('window.gap')).toMatchObject([
      { level: 'warn', message: expect.stringContaining('2026-03-04 to 2026-03-05') },
    ]);
  });

  it('to the last of several are all told', async () => {
    open({ historyDays: 2 });
    const settings = { startDate: '2026-03-04', endDate: '2026-03-08', windowDays: 3, onGap: 'warn' } as const;
    await bench.run({ ...settings, ...PROVED });
    expect(bench.target.state?.gaps).toEqual(daysOf('2026-03-04', '2026-03-07'));
  });

  it('stay in the state, in order, whatever is read after them', async () => {
    open({ historyDays: 4 });
    const settings = { startDate: '2026-03-03', onGap: 'warn', lookbackDays: 0, ...PROVED } as const;
    await bench.run(settings, { from: '2026-03-05', to: '2026-03-07' });
    expect(bench.target.state?.gaps).toEqual(['2026-03-05']);
    await bench.run(settings, { from: '2026-03-03', to: '2026-03-07' });
    expect(bench.target.state?.gaps).toEqual(['2026-03-03', '2026-03-04', '2026-03-05']);
    expect(bench.tally.gaps).toEqual(['2026-03-03', '2026-03-04']);
    await bench.run({ ...settings, endDate: '2026-03-08' });
    expect(bench.target.state).toMatchObject({
      gaps: ['2026-03-03', '2026-03-04', '2026-03-05'],
      from_date: '2026-03-09',
    });
  });

  it('behind windows that are stored end a run that is to fail by them, and it says what is stored', async () => {
    let isGone = false;
    open({ fault: ({ from }) => (isGone && from > '2026-03-05' ? { refuse: 'gone' } : undefined) });
    bench.options = { maxConcurrentExports: 1 };
    isGone = true;
    const failure = await failureOf(bench.run({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED }));
    expect(failure).toMatchObject({
      exitCode: 4,
      message: expect.stringContaining('What was stored before them is complete'),
    });
    expect(bench.target.state?.from_date).toBe('2026-03-06');
    bench.close();
    open({ fault: () => ({ refuse: 'gone' }) });
    const first = await failureOf(bench.run({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED }));
    expect(first.message).toContain('Nothing was changed');
  });

  it('between others end a run that is to fail by them before any window behind them is stored', async () => {
    open({ fault: ({ from }) => (from === '2026-03-05' ? { refuse: 'gone' } : undefined) });
    const failure = await failureOf(bench.run({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED }));
    expect(failure).toMatchObject({ exitCode: 4, message: expect.stringContaining('2026-03-05') });
    expect(bench.target.receipts.map(({ from }) => from)).toEqual(['2026-03-04']);
    expect(bench.target.state).toMatchObject({ from_date: '2026-03-05' });
    expect(bench.target.state).not.toHaveProperty('gaps');
  });

  it('before a default start are no gap: the start moves past them and no further', async () => {
    open({ historyDays: 4 });
    await bench.run({ historyDays: 6, ...PROVED });
    expect(bench.target.state).toMatchObject({ start_date: '2026-03-06', from_date: '2026-03-10' });
    expect(bench.target.state).not.toHaveProperty('gaps');
    expect(bench.events('window.clamped')).toMatchObject([
      { message: expect.stringContaining('2026-03-04 to 2026-03-05') },
    ]);
    expect(bench.events('window.gap')).toEqual([]);
  });
});

describe('a start that moves', () => {
  it.each([4, 5])(
    'is the day behind those that are gone, and %i days of history make it no other',
    async (historyDays) => {
      open({ historyDays: 4 });
      await bench.run({ historyDays, ...PROVED });
      expect(bench.target.state?.start_date).toBe('2026-03-06');
    },
  );

  it('stays where a day behind it is gone', async () => {
    open({ fault: ({ from }) => (from === '2026-03-07' ? { refuse: 'gone' } : undefined) });
    await bench.run({ historyDays: 6, ...PROVED }, { fullRefresh: true });
    expect(bench.target.state).toMatchObject({ start_date: '2026-03-04', from_date: '2026-03-07' });
  });
});

describe('a state', () => {
  const keysOf = async (settings: object, world: Partial<FakeWorld> = {}): Promise<string[]> => {
    const windows: Window[] = [];
    open(world);
    for await (const window of bench.windows({ startDate: '2026-03-08', endDate: '2026-03-08', ...settings })) {
      windows.push(window);
      await bench.target.commit(window);
    }
    return Object.keys(windows.at(-1)?.state ?? {}).filter((key) => !['question', 'service'].includes(key));
  };

  it('holds what was learned and nothing else', async () => {
    const always = ['version', 'from_date', 'start_date', 'last_receipt'];
    expect((await keysOf({})).sort()).toEqual([...always, 'to_date_inclusive'].sort());
    bench.close();
    expect((await keysOf({}, { rows: [] })).sort()).toEqual([...always].sort());
    bench.close();
    expect((await keysOf(PROVED)).sort()).toEqual([...always].sort());
    bench.close();
    const learned = await keysOf(PROVED, { finalNewline: false });
    expect(learned.sort()).toEqual([...always, 'final_newline'].sort());
  });

  it('keeps what was learned before', async () => {
    open({ finalNewline: false, endDeclared: true });
    bench.target.state = {
      version: 1,
      from_date: '2026-03-08',
      start_date: '2026-03-08',
      to_date_inclusive: true,
      final_newline: false,
      max_window_days: 1,
      name_groups: 4,
    };
    await bench.run({ startDate: '2026-03-08', endDate: '2026-03-09', windowDays: 5 });
    expect(ranges()).toEqual(['08..08', '09..09']);
    expect(bench.target.state).toMatchObject({ final_newline: false, max_window_days: 1, name_groups: 4 });
  });
});

describe('how bodies end', () => {
  it('is confirmed by one of several that are downloaded at once, the others wait for it', async () => {
    open({ finalNewline: false, endDeclared: true });
    await bench.run({ startDate: '2026-03-04', endDate: '2026-03-09', ...PROVED });
    expect(bench.service.sent).toBe(7);
    expect(bench.target.ids()).toHaveLength(24);
    expect(bench.target.receipts.map(({ exports }) => exports).sort()).toEqual([1, 1, 1, 1, 1, 2]);
    expect(readdirSync(bench.spoolDir)).toEqual([]);
  });

  it('is confirmed by another where the day of the first one goes away meanwhile', async () => {
    const asked = new Set<string>();
    let gone: string | undefined;
    const fault: FakeWorld['fault'] = ({ from }) => {
      if (!asked.has(from)) return void asked.add(from);
      gone ??= from;
      return gone === from ? { refuse: 'gone' } : undefined;
    };
    open({ finalNewline: false, fault });
    await bench.run({ startDate: '2026-03-04', endDate: '2026-03-07', onGap: 'warn', ...PROVED });
    expect(bench.target.state).toMatchObject({ gaps: [gone], final_newline: false, from_date: '2026-03-08' });
    expect(bench.target.ids()).toHaveLength(12);
    expect(readdirSync(bench.spoolDir)).toEqual([]);
  });

  it('leaves one file of a body that was confirmed', async () => {
    open({ finalNewline: false });
    bench.options = { maxConcurrentExports: 1 };
    const windows = bench.windows({ startDate: '2026-03-04', endDate: '2026-03-07', ...PROVED });
    await windows.next();
    const files = readdirSync(bench.spoolDir, { recursive: true }).filter((name) => /\.(csv|part)$/.test(String(name)));
    expect(files).toHaveLength(1);
    await windows.return(undefined);
  });
});

describe('a download of a run that died', () => {
  it('is told as such, with its days and rows', async () => {
    open();
    await bench.run({ startDate: '2026-03-04', endDate: '2026-03-06', windowDays: 3, ...PROVED }, {}, 0);
    bench.clock.time += HOUR;
    await bench.run({ startDate: '2026-03-04', endDate: '2026-03-06', windowDays: 3, ...PROVED });
    expect(bench.events('window.reused')).toMatchObject([
      { level: 'info', fields: { window: '2026-03-04..2026-03-06', rows: 12 } },
    ]);
    expect(bench.target.receipts).toMatchObject([{ exports: 0, rows: 12 }]);
    expect(bench.service.sent).toBe(1);
  });

  it('of other filters is none of its', async () => {
    open();
    const days = { startDate: '2026-03-04', endDate: '2026-03-04', ...PROVED };
    await bench.run(days, {}, 0);
    bench.target = new FakeTarget();
    await bench.run({ ...days, properties: ['a'], propertiesCondition: 'include' });
    expect([bench.service.sent, bench.events('window.reused')]).toEqual([2, []]);
  });
});
