import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import { NOTHING_STORED } from '../../../src/table/commit.ts';
import type { Cells } from '../../support/targets/csv.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

const [D1, D2, D3] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const ROWS: readonly Cells[] = [{ id: 'a', n: '1' }, { id: 'b', n: '2' }, { id: 'b' }];

describe.each(TARGET_NAMES)('a day that comes again unchanged in %s', (name) => {
  let place: Place;
  beforeEach(async () => {
    place = new Place(name);
    await place.load([[place.of(D1, ROWS), place.of(D2, []), place.of(D3, ROWS, { is_over: false })]]);
  });

  const again = (facts = {}): CheckedDay[] => [
    place.of(D1, ROWS),
    place.of(D2, []),
    place.of(D3, ROWS, { is_over: false, ...facts }),
  ];

  const commit = async (batch: readonly CheckedDay[]) => (await place.load([batch]))[0];

  /** What tells that something was written: the files with their times. */
  const traces = () =>
    place.files().map((path) => {
      const { ino, mtimeMs, size } = lstatSync(path);
      return [path, ino, mtimeMs, size];
    });

  it('leaves no version, no file and no touched row, hour after hour', async () => {
    const before = [traces(), await place.state()];
    for (let hour = 0; hour < 24; hour++) {
      expect(await commit(again())).toEqual({ ...NOTHING_STORED, daysUnchanged: [D1, D2, D3] });
    }
    expect([traces(), await place.state()]).toEqual(before);
  });

  it('moves the cursor once it is over, and touches no row', async () => {
    const before = [await place.state(), await place.read('SELECT *, _loaded_at FROM events ORDER BY ALL')] as const;
    expect(await commit(again({ is_over: true }))).toMatchObject({ daysWritten: [], daysChanged: [] });
    const after = await place.state();
    expect([before[0]?.events.exportState?.from_date, after?.events.exportState?.from_date]).toEqual([
      D3,
      '2026-01-04',
    ]);
    expect(after?.events.receipts.get(D3)?.changed_at).toBe(before[0]?.events.receipts.get(D3)?.changed_at);
    expect(await place.read('SELECT *, _loaded_at FROM events ORDER BY ALL')).toEqual(before[1]);
    const later = { is_over: true, to_date: '2026-01-04' };
    expect(await commit(again(later))).toMatchObject({ daysWritten: [], daysChanged: [] });
    expect((await place.state())?.events.receipts.get(D3)).toMatchObject(later);
  });

  it('keeps the first request a week after it was over: an empty day is not read again after that', async () => {
    const requestedAt = async (day: string) => {
      await commit([place.of(D2, [], { requested_at: `${day}T13:00:00.000Z` })]);
      return (await place.state())?.events.receipts.get(D2)?.requested_at.slice(0, 10);
    };
    expect(await requestedAt('2026-01-09')).toBe('2026-01-05');
    expect(await requestedAt('2026-01-10')).toBe('2026-01-10');
    expect(await requestedAt('2026-01-11')).toBe('2026-01-10');
  });

  it('is written beside another that changed, which alone counts as changed', async () => {
    const done = await commit([place.of(D1, ROWS), place.of(D2, [{ id: 'c' }])]);
    expect(done).toMatchObject({ daysWritten: [D2], rowsWritten: 1, daysUnchanged: [D1], daysChanged: [D2] });
    expect((await place.verify()).differences).toEqual([]);
  });

  it.each([
    ['under other filters', { filters: 'others' }],
    ['without the rows of people who are suppressed now', { suppressed: 1 }],
  ])('is written %s', async (_, receipt) => {
    expect(await commit([place.of(D1, ROWS, receipt)])).toMatchObject({ daysWritten: [D1], daysChanged: [D1] });
  });

  it('under other filters is named by verify until its rows are removed', async () => {
    const warnings = async () => (await place.verify()).warnings.join(' ');
    await commit([place.of(D1, ROWS, { filters: 'others' })]);
    expect(await warnings()).toContain(`loaded with other filters or columns: ${D1}.`);
    await place.prune(D2, true);
    expect(await warnings()).toBe(`pruned: ${D1}.`);
  });

  it('is written in a run that writes every day', async () => {
    const sink = await place.open();
    const info = { ...place.commitInfo(D1), alwaysWrites: true };
    expect(await sink.commit([place.of(D1, ROWS)], info)).toMatchObject({ daysWritten: [D1], daysChanged: [D1] });
    await sink.close();
  });

  it('is not written if the missing rows are those of suppressed people', async () => {
    const rows = [
      { id: 'a', member: 'm', df_unified_id: 'u1' },
      { id: 'b', df_unified_id: 'u2' },
    ];
    await place.load([[place.of(D1, rows)]]);
    await place.purge(['m']);
    const [later] = [place.of(D1, rows)];
    const kept = place.of(D1, rows.slice(1), { ...later.receipt, rows: 2, suppressed: 1 });
    expect(await commit([kept])).toMatchObject({ daysWritten: [], daysUnchanged: [D1] });
    expect(await place.keys()).toContain(`${D1} b`);
  });

  it('is written if a row of it is gone, whatever the receipt says', async () => {
    if (name === 'duckdb') await place.read(`DELETE FROM events WHERE _key = 'a' AND event_date = '${D1}'`);
    else rmSync(join(place.place, `events/event_date=${D1}`), { recursive: true });
    expect(await commit(again())).toMatchObject({ daysWritten: [D1], daysUnchanged: [D2, D3] });
    expect((await place.verify()).differences).toEqual([]);
  });

  it('is not written if rows of it lie under the day after, unless one of the others is gone', async () => {
    const both = { id: 'both', df_server_datetime: '2026-01-02 00:00:00' };
    const days = () => [place.shared(D1, [{ id: 'x' }, both]), place.shared(D2, [both, { id: 'y' }])];
    for (const day of days()) await commit([day]);
    const before = [traces(), await place.state()];
    for (const day of days()) expect(await commit([day])).toMatchObject({ daysUnchanged: [day.receipt.day] });
    expect([traces(), await place.state()]).toEqual(before);
    if (name === 'duckdb') {
      await place.read("DELETE FROM events WHERE _key = 'x'");
      expect(await commit([days()[0]])).toMatchObject({ daysWritten: [D1], rowsWritten: 1 });
    }
    expect((await place.keys()).slice(0, 3)).toEqual([`${D1} x`, `${D2} both`, `${D2} y`]);
  });

  it('is left out with a warning if a later download is there', async () => {
    const older = place.of(D1, [{ id: 'old' }]);
    await place.load([[place.of(D1, [{ id: 'new' }])]]);
    expect(await commit([older])).toMatchObject({ daysWritten: [], daysUnchanged: [] });
    expect(place.log.filter(({ event }) => event === 'days.older')).toMatchObject([{ level: 'warn' }]);
    expect(await place.keys()).toContain(`${D1} new`);
  });

  it('counts as new only its own rows, and not those that another run has stored meanwhile', async () => {
    const sink = await place.open();
    await place.load([[place.of('2026-01-08', [{ id: 'x' }, { id: 'y' }])]]);
    const batch = [place.of('2026-01-09', [{ id: 'z' }])];
    expect(await sink.commit(batch, place.commitInfo(D1))).toMatchObject({ rowsWritten: 1, rowsGained: 1 });
    await sink.close();
  });

  it('is told by the time of its change, also if another day or a person took its rows', async () => {
    const changed = async () =>
      new Map([...((await place.state())?.events.receipts ?? [])].map(([day, r]) => [day, r.changed_at]));
    const moved = async (work: () => Promise<unknown>) => {
      const before = await changed();
      await work();
      const latest = [...before.values()].sort().at(-1) ?? '';
      return [...(await changed())].filter(([day, at]) => before.get(day) !== at && at > latest).map(([day]) => day);
    };
    // The clock was set back.
    place.clock = { ...systemClock, now: () => 1_000 };
    const rows = (id: string): Cells[] => [{ id, member: id, df_unified_id: id, n: '1' }, { id: 'shared' }];
    expect(await moved(() => commit([place.shared(D1, rows('x'))]))).toEqual([D1]);
    expect(await moved(() => commit([place.shared(D2, rows('y'))]))).toEqual([D1, D2]);
    expect(await moved(() => commit([place.of('2026-01-05', [{ id: 'w', n: 'text' }])]))).toEqual([
      D1,
      D2,
      D3,
      '2026-01-05',
    ]);
    expect(await moved(() => place.purge(['x']))).toEqual([D1]);
    expect(await moved(() => place.prune(D3, true))).toEqual([D2]);
    expect((await place.verify()).differences).toEqual([]);
  });
});
