import { afterEach, describe, expect, it } from 'vitest';
import { daysOf } from '../../../src/base/days.ts';
import type { Simulator } from '../../../src/simulator/index.ts';
import { exported, sorted } from '../../support/service/exported.ts';
import { dayBody, exportRequest, startTestSimulator } from '../../support/service/simulator.ts';

const DAY = '2026-01-10';
let sim: Simulator | undefined;
afterEach(async () => sim?.close());

describe('rows', () => {
  it('of an export equal the truth, cell by cell', async () => {
    sim = await startTestSimulator({ columns: { hostile_names: true } }, { rowsPerDay: 400 });
    const rows = await exported(sim, dayBody('2026-01-05', '2026-01-11'));
    expect(rows.map((row) => new Map(row))).toEqual([...sim.truth({ from: '2026-01-05', to: '2026-01-11' })]);
    expect(sorted(rows)).toEqual(sorted(sim.truth({ from: '2026-01-05', to: '2026-01-11' })));
    expect(sim.countRows({ from: '2026-01-05', to: '2026-01-11' })).toBe(rows.length);
    expect(rows.length).toBeGreaterThan(2_000);
  });

  it('are the same for the same seed, and differ for another', async () => {
    const texts: string[] = [];
    for (const seed of ['a', 'a', 'b']) {
      const simulator = await startTestSimulator({}, { seed });
      texts.push(await (await exportRequest(simulator, dayBody(DAY))).text());
      await simulator.close();
    }
    expect(texts[0]).toBe(texts[1]);
    expect(texts[0]).not.toBe(texts[2]);
  });

  it('have every kind of cell that an export is known to have', async () => {
    sim = await startTestSimulator({}, { rowsPerDay: 3_000 });
    const all = [...sim.truth({ from: '2026-01-05', to: '2026-01-08' })];
    const cells = (name: string) => all.map((row) => row.get(name)).filter((cell) => cell !== undefined);
    const some = (name: string, shape: RegExp) =>
      expect(
        cells(name).some((cell) => shape.test(cell)),
        `${name} ${shape}`,
      ).toBe(true);
    for (const column of ['df_server_datetime', 'df_correction_datetime', 'df_event_datetime']) {
      some(column, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
      some(column, /^\d{4}\.\d{1,2}\.\d{1,2} \d{1,2}:\d\d$/);
    }
    some('is_member', /^TRUE$/);
    some('is_member', /^FALSE$/);
    some('tags', /^null$/);
    some('tags', /^\["a","b"\]$/);
    some('memo', /[^\r]\n/);
    some('memo', /\r\n/);
    some('memo', /"/);
    some('memo', /,/);
    some('df_keyword', /^null$/);
    some('df_keyword', /[가-힣]/);
    some('df_event_detail_log_id', /:0$/);
    some('df_event_detail_log_id', /:4$/);
    some('member_no', /^0000/);
    some('df_total_purchase_amount', /E7$/);
    expect(cells('big_id').some((cell) => BigInt(cell) > 2n ** 53n)).toBe(true);
    for (const column of ['sum', 'Grade', 'grade', '가입 경로', 'utm.source', 'answer "free"', 'q1, q2'])
      expect(cells(column).length, column).toBeGreaterThan(0);
  });

  it('have unique ids, and the same event-level values on every item of an event', async () => {
    sim = await startTestSimulator({}, { rowsPerDay: 2_000 });
    const rows = [...sim.truth(DAY)];
    expect(new Set(rows.map((row) => row.get('df_event_detail_log_id'))).size).toBe(rows.length);
    const amounts = new Map<string, Set<string | undefined>>();
    for (const row of rows) {
      const id = row.get('df_event_log_id') ?? '';
      amounts.set(id, (amounts.get(id) ?? new Set()).add(row.get('df_total_purchase_amount')));
    }
    expect([...amounts.values()].every((values) => values.size === 1)).toBe(true);
    expect(amounts.size).toBeLessThan(rows.length);
  });

  it('share ids, lack ids, repeat, or repeat an id on every item, by scenario', async () => {
    const ids = {
      duplicate_share: 0.1,
      missing_share: 0.1,
      repeat_share: 0.1,
      other_item_events: 'repeat_id',
      first_item: 1,
    };
    sim = await startTestSimulator({ ids }, { rowsPerDay: 2_000 });
    const rows = [...sim.truth(DAY)];
    const found = rows.map((row) => row.get('df_event_detail_log_id'));
    const missing = found.filter((id) => id === undefined).length;
    expect(missing).toBeGreaterThan(rows.length / 20);
    expect(new Set(found).size).toBeLessThan(rows.length - missing - 100);
    expect(new Set(sorted(rows)).size).toBeLessThan(rows.length - 50);
    expect(found.some((id) => id?.endsWith(':0'))).toBe(false);
    expect(found.some((id) => id?.endsWith(':5'))).toBe(true);
    const refunds = rows.filter((row) => row.get('event_name') === 'df_refund');
    expect(new Set(refunds.map((row) => row.get('df_event_log_id'))).size).toBeLessThan(refunds.length);
    expect(refunds.every((row) => !row.get('df_event_detail_log_id')?.includes(':'))).toBe(true);
  });

  it('carry the log id of an event of the day before with ids of their own, by scenario', async () => {
    sim = await startTestSimulator({ ids: { carried_share: 0.2 } }, { rowsPerDay: 500 });
    const [before, rows] = [[...sim.truth('2026-01-09')], [...sim.truth(DAY)]];
    const logs = new Set(before.map((row) => row.get('df_event_log_id')));
    const carried = rows.filter((row) => logs.has(row.get('df_event_log_id')));
    expect(carried.length).toBeGreaterThan(rows.length / 10);
    expect(carried.length).toBeLessThan(rows.length / 3);
    const ids = [...before, ...rows].map((row) => row.get('df_event_detail_log_id'));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('have an external id without a unified id, by scenario', async () => {
    sim = await startTestSimulator({ rows: { anonymous_share: 0.2 } }, { rowsPerDay: 500 });
    const rows = [...sim.truth(DAY)];
    const nameless = rows.filter((row) => !row.has('df_unified_id'));
    expect(nameless.length).toBeGreaterThan(rows.length / 10);
    expect(nameless.length).toBeLessThan(rows.length / 3);
    expect(nameless.some((row) => row.has('member_no'))).toBe(true);
  });

  it('arrive up to the last half second of a day, by scenario', async () => {
    const days = { zone_hours: 0, cell_zone_hours: 0 };
    sim = await startTestSimulator({ days, rows: { at_day_end: true } }, { rowsPerDay: 5 });
    const now = Date.parse('2026-01-11T00:00:00Z');
    const rowsAt = (at: number) => sim?.countRows(DAY, { at }) ?? 0;
    expect(rowsAt(now)).toBeGreaterThan(rowsAt(now - 500));
  });

  it('have a column that is long, double and string on three days', async () => {
    sim = await startTestSimulator({}, { rowsPerDay: 500 });
    const kinds = daysOf('2026-01-10', '2026-01-12').map((day) => {
      const cells = [...(sim as Simulator).truth(day)]
        .map((row) => row.get('level'))
        .filter((cell) => cell !== undefined);
      expect(cells.length).toBeGreaterThan(10);
      return cells.every((cell) => /^\d$/.test(cell))
        ? 'long'
        : cells.every((cell) => /^\d\.25$/.test(cell))
          ? 'double'
          : 'string';
    });
    expect([...kinds].sort()).toEqual(['double', 'long', 'string']);
    const turns = 'long double string long double';
    expect(turns).toContain(kinds.join(' '));
  });

  it.each(['reverse', 'shuffled', 'items_apart'])('have another order: %s', async (order) => {
    const plain = await startTestSimulator();
    const want = await exported(plain);
    await plain.close();
    sim = await startTestSimulator({ rows: { order } });
    const rows = await exported(sim);
    expect(sorted(rows)).toEqual(sorted(want));
    expect(rows).not.toEqual(want);
  });
});
