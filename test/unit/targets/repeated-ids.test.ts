import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addDays, type Day } from '../../../src/base/days.ts';
import type { Window } from '../../../src/extract/window.ts';
import type { Commit } from '../../../src/targets/sink.ts';
import { ArrowFixture, plainRows } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { TARGETS, TargetFixture } from '../../support/targets/target-fixture.ts';

const FIRST = '2026-01-01';
const IDS = 20;

/** Makes the windows, whatever the target. */
let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const at = (time: string): Cells => ({ df_server_datetime: time, df_correction_datetime: time });
const timeOf = (day: Day, i: number) => `${day} ${String(i % 24).padStart(2, '0')}:00:00.000`;
/** The rows of a day whose ids are those of every other day. */
const restarted = (day: Day): Cells[] =>
  Array.from({ length: IDS }, (_, i) => ({ id: `e${i}`, memo: `${day}/${i}`, df_items_n: '1', ...at(timeOf(day, i)) }));

/** Makes the window of `days` with these rows, alike for every target. */
function windowOf(
  day: Day,
  days = 1,
  rows?: readonly Cells[],
  more: Record<string, unknown> = {},
  zone?: string,
): Window {
  const all = Array.from({ length: days }, (_, i) => restarted(addDays(day, i))).flat();
  const window = fixture.window(day, csvOf(rows ?? all), zone, days);
  return { ...window, state: { ...window.state, ...more } };
}

/** One id at hours of which most are on another day in UTC. */
const inZone = (day: Day, hours: readonly number[]): Cells[] =>
  hours.map((hour) => ({ id: 'e', memo: `${day}/${hour}`, ...at(timeOf(day, hour)) }));
const ZONES = ['Asia/Seoul', 'America/New_York'] as const;

describe.each(TARGETS)('ids that are reused on another day in %s', (name) => {
  let target: TargetFixture;
  beforeEach(() => {
    target = TargetFixture.of(name);
  });
  afterEach(() => target.close());
  const store = (windows: readonly Window[], timezone?: string): Promise<Commit[]> =>
    target.store(windows, { timezone });
  const rows = () => target.read('SELECT _key, memo FROM events ORDER BY memo, _key');
  const memos = async () => (await rows()).map(({ memo }) => String(memo));
  const all = (days: readonly number[]) =>
    days.flatMap((n) => restarted(addDays(FIRST, n)).map(({ memo }) => memo)).sort();

  it.each([[[0, 1, 2, 3]], [[3, 1, 0, 2]]])('keep every row, in any order of the days: %s', async (order) => {
    const commits = await store(order.map((n) => windowOf(addDays(FIRST, n))));
    expect((await memos()).sort()).toEqual(all([0, 1, 2, 3]));
    expect(commits.map(({ idRepeats }) => idRepeats)).toEqual([0, IDS, IDS, IDS]);
    const keys = await target.read(`SELECT _key FROM events WHERE df_event_detail_log_id = 'e7' ORDER BY 1`);
    expect(keys.map(({ _key }) => _key)).toEqual(['e7', 'e7#2', 'e7#3', 'e7#4']);
    expect(await target.verify()).toEqual([]);
  });

  it('keep their keys when a day is read again', async () => {
    const order = [0, 1, 2];
    await store(order.map((n) => windowOf(addDays(FIRST, n))));
    const before = await rows();
    for (const n of order) {
      const [commit] = await store([windowOf(addDays(FIRST, n))]);
      expect(commit.idRepeats).toBe(n === 0 ? 0 : IDS);
      expect(await rows()).toEqual(before);
    }
    expect(await target.verify()).toEqual([]);
  });

  it('keep every row of windows that share a day', async () => {
    await store([0, 1, 2].map((n) => windowOf(addDays(FIRST, n), 2)));
    expect((await memos()).sort()).toEqual(all([0, 1, 2, 3]));
    await store([windowOf(addDays(FIRST, 1), 2)]);
    expect((await memos()).sort()).toEqual(all([0, 1, 2, 3]));
    expect(await target.verify()).toEqual([]);
  });

  it('keep a row of the same date whose day is not read again', async () => {
    await store([windowOf(FIRST, 3, inZone(FIRST, [10, 20]))]);
    await store([windowOf(addDays(FIRST, 1), 3, inZone(FIRST, [20]))]);
    expect((await memos()).sort()).toEqual([`${FIRST}/10`, `${FIRST}/20`]);
    expect(await target.verify()).toEqual([]);
    await store([windowOf(addDays(FIRST, 2), 3, inZone(FIRST, [21]))]);
    expect(await memos()).toContain(`${FIRST}/21`);
    expect(await memos()).not.toContain(`${FIRST}/20`);
  });

  it('keep every row of windows whose last day is known to be excluded', async () => {
    const exclusive = (n: number) =>
      windowOf(addDays(FIRST, n), 2, restarted(addDays(FIRST, n)), { ranges_inclusive: false });
    await store([0, 1, 2].map(exclusive));
    await store([exclusive(1)]);
    expect((await memos()).sort()).toEqual(all([0, 1, 2]));
    expect(await target.verify()).toEqual([]);
  });

  it('keep the other days of a longer window when one of its days is read again', async () => {
    await store([windowOf(FIRST, 3)]);
    await store([windowOf(addDays(FIRST, 1))]);
    expect((await memos()).sort()).toEqual(all([0, 1, 2]));
    await store([windowOf(FIRST, 3)]);
    expect((await memos()).sort()).toEqual(all([0, 1, 2]));
    expect(await target.verify()).toEqual([]);
  });

  it.each(ZONES)('keep the other days of a longer window also with days of a zone: %s', async (zone) => {
    const [one, two] = [inZone(FIRST, [1, 10, 23]), inZone(addDays(FIRST, 1), [2, 11, 22])];
    const late = inZone(addDays(FIRST, 1), [3, 21]);
    await store([windowOf(FIRST, 2, [...one, ...two], {}, zone)], zone);
    await store([windowOf(addDays(FIRST, 1), 1, [...two, ...late], {}, zone)], zone);
    expect((await memos()).sort()).toEqual([...one, ...two, ...late].map(({ memo }) => memo).sort());
    expect(await target.verify()).toEqual([]);
  });

  it('are one row when a correction moves it to another day: same server time, same window, or same date', async () => {
    const row = (memo: string, server: string, correction: string): Cells => ({
      id: 'a',
      memo,
      df_server_datetime: `${server} 10:00:00.000`,
      df_correction_datetime: `${correction} 10:00:00.000`,
    });
    const day = (n: number) => addDays(FIRST, n);
    await store([windowOf(day(0), 1, [row('first', day(0), day(0))])]);
    await store([windowOf(day(5), 1, [row('same server time', day(0), day(5))])]);
    expect(await memos()).toEqual(['same server time']);
    await store([windowOf(day(4), 3, [row('same window', day(6), day(5))])]);
    expect(await memos()).toEqual(['same window']);
    const later = { ...row('same date', day(6), day(6)), df_server_datetime: `${day(6)} 11:30:00.000` };
    await store([windowOf(day(6), 2, [later])]);
    expect(await memos()).toEqual(['same date']);
    expect((await target.verify()).filter(({ check }) => check !== 'days')).toEqual([]);
  });

  it('are one row when a correction moves it within its window, whose last day is excluded', async () => {
    const row = (memo: string, day: Day): Cells => ({ id: 'a', memo, ...at(timeOf(day, 3)) });
    const exclusive = (cells: Cells) => windowOf(addDays(FIRST, 1), 3, [cells], { ranges_inclusive: false });
    await store([exclusive(row('before', addDays(FIRST, 1)))]);
    await store([exclusive(row('after', addDays(FIRST, 2)))]);
    expect(await rows()).toEqual([{ _key: 'a', memo: 'after' }]);
    expect(await target.verify()).toEqual([]);
  });

  it('do not affect a row without id and server time: equal cells are the same row, in any window', async () => {
    const row: Cells = { memo: 'once', df_server_datetime: '', df_correction_datetime: timeOf(FIRST, 1) };
    const [first, second] = await store([windowOf(FIRST, 1, [row]), windowOf(addDays(FIRST, 4), 1, [row])]);
    expect(await memos()).toEqual(['once']);
    expect([first.idRepeats, second.idRepeats]).toEqual([0, 0]);
  });

  it('never get a key that is an id', async () => {
    const id = (name: string, memo: string, n: number): Cells => ({
      id: name,
      memo,
      ...at(timeOf(addDays(FIRST, n), 1)),
    });
    const commits = await store([
      windowOf(FIRST, 1, [id('a', '1', 0), id('b#2', '2', 0)]),
      windowOf(addDays(FIRST, 1), 1, [id('a', '3', 1), id('b', '4', 1), id('b', '5', 1)]),
      windowOf(addDays(FIRST, 2), 1, [id('a#2', '6', 2), id('a', '7', 2)]),
    ]);
    expect(await rows()).toEqual(
      ['a', 'b#2', 'a#2', 'b', 'b#3', 'a#2#2', 'a#3'].map((_key, i) => ({ _key, memo: `${i + 1}` })),
    );
    expect(commits.map(({ idRepeats }) => idRepeats)).toEqual([0, 2, 2]);
    expect(await target.verify()).toEqual([]);
  });

  it('never get a key that is another id of their window', async () => {
    const id = (name: string, n: number): Cells => ({
      id: name,
      memo: `${name} ${n}`,
      ...at(timeOf(addDays(FIRST, n), 1)),
    });
    await store([windowOf(FIRST, 1, [id('a', 0)]), windowOf(addDays(FIRST, 1), 1, [id('a', 1), id('a#2', 1)])]);
    expect(await rows()).toEqual([
      { _key: 'a', memo: 'a 0' },
      { _key: 'a#3', memo: 'a 1' },
      { _key: 'a#2', memo: 'a#2 1' },
    ]);
    expect(await target.verify()).toEqual([]);
  });
});

describe('ids that are reused on another day in an Arrow stream', () => {
  it('leave out only rows that were sent: the same id on another date is another row', async () => {
    const arrow = new ArrowFixture();
    try {
      const shared = (n: number): Window => {
        const window = windowOf(addDays(FIRST, n), 2);
        return { ...window, receipt: { ...window.receipt, covers_to: window.receipt.from } };
      };
      const result = await arrow.write([shared(0), shared(1), shared(2)]);
      expect(result.rows).toBe(4 * IDS);
      const memos = plainRows(arrow.table()).map(({ memo }) => String(memo));
      expect(new Set(memos).size).toBe(4 * IDS);
    } finally {
      arrow.close();
    }
  });

  it.each(ZONES)('leave out only rows that were sent also with dates of a zone: %s', async (zone) => {
    const arrow = new ArrowFixture();
    try {
      const [one, two] = [inZone(FIRST, [1, 23]), inZone(addDays(FIRST, 1), [2, 11])];
      const late = inZone(addDays(FIRST, 2), [3, 22]);
      const first = windowOf(FIRST, 2, one, {}, zone);
      const open = { ...first, receipt: { ...first.receipt, covers_to: FIRST } };
      await arrow.write([open, windowOf(addDays(FIRST, 1), 2, [...two, ...late], {}, zone)], { timezone: zone });
      const memos = plainRows(arrow.table()).map(({ memo }) => String(memo));
      expect(memos.sort()).toEqual([...one, ...two, ...late].map(({ memo }) => String(memo)).sort());
    } finally {
      arrow.close();
    }
  });

  it('leave out a row that was sent also when later windows share no day', async () => {
    const arrow = new ArrowFixture();
    try {
      const shared = windowOf(FIRST, 2);
      const open = { ...shared, receipt: { ...shared.receipt, covers_to: FIRST } };
      const result = await arrow.write([open, windowOf(addDays(FIRST, 1)), windowOf(addDays(FIRST, 2))]);
      expect(result.rows).toBe(3 * IDS);
      const memos = plainRows(arrow.table()).map(({ memo }) => String(memo));
      expect(new Set(memos).size).toBe(3 * IDS);
    } finally {
      arrow.close();
    }
  });
});
