import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { peopleInDelta, reportDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const stopped = () => AbortSignal.abort(new Error('stopped'));
const report = () => reportDelta(fixture.lakeOptions);

describe('the report of Delta tables', () => {
  it('counts values and rescued cells of each column over all files, and the bytes of all tables', async () => {
    const tables = ['events', 'event_items'] as const;
    const rows = (day: Day, ...cells: Record<string, string>[]) =>
      fixture.window(day, csvOf(cells.map((more, i) => ({ id: `${day}-${i}`, ...on(day), ...more }))));
    await fixture.store([rows(first, { n: '1', df_items_x: '1' }, { n: '2' }, {})], { tables });
    await fixture.store([rows(second, { n: 'text', m: '1' }, { n: '3' }, { n: 'more' })], { schemaMode: 'freeze' });
    const { columns, ...told } = await report();
    const counted = (name: string) => {
      const column = columns.find(({ source }) => source === name);
      return [column?.type, column?.filled, column?.rescued];
    };
    expect(['n', 'df_items_x', 'm', 'df_server_datetime'].map(counted)).toEqual([
      ['long', 3, 2],
      ['long', 1, 0],
      [null, 0, 1],
      ['datetime', 6, 0],
    ]);
    const bytes = tables.flatMap((table) => [...fixture.replay(table).files.values()].map(({ size }) => Number(size)));
    expect(bytes).toHaveLength(4);
    expect(told).toMatchObject({
      rows: 6,
      sizeBytes: bytes.reduce((sum, of) => sum + of, 0),
      timezone: null,
      lastEventAt: `${second} 10:00:00`,
      state: { from_date: '2026-01-03' },
      windows: [
        { from: first, rows: 3 },
        { from: second, rows: 3 },
      ],
      runs: [],
    });
    expect(told.changes.map(({ sourceName }) => sourceName)).toEqual(expect.arrayContaining(['n', 'df_items_x']));
  });

  it('of tables without rows has their columns, and of those with a zone its clock', async () => {
    const timezone = 'Asia/Seoul';
    await fixture.store([fixture.window(first, csvOf([]), timezone)], { timezone });
    const { columns, ...told } = await report();
    expect(told).toMatchObject({ rows: 0, sizeBytes: 0, lastEventAt: null, events: [], timezone });
    expect(columns.map(({ source }) => source)).toContain('df_server_datetime');
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...on(first) }]), timezone)], { timezone });
    expect(await report()).toMatchObject({ rows: 1, lastEventAt: `${first} 10:00:00` });
  });

  it('is refused where there is no table, and when it is stopped', async () => {
    await expect(report()).rejects.toMatchObject({ kind: 'config' });
    await expect(reportDelta({ ...fixture.lakeOptions, signal: stopped() })).rejects.toThrow('stopped');
  });
});

describe('the people of Delta tables', () => {
  const find = (column: string, ...texts: string[]) =>
    peopleInDelta(fixture.lakeOptions, { column: column, ids: texts });

  it('are found by a typed or a rescued cell in any file, and those without an id are told apart', async () => {
    const row = (id: string, person: string, day: Day, mail?: string) => ({
      id,
      df_unified_id: person,
      ...(mail !== undefined && { mail }),
      ...on(day),
    });
    await fixture.store([fixture.window(first, csvOf([row('a', 'p1', first)]))]);
    await fixture.store([fixture.window(second, csvOf([row('b', 'p2', second, '2'), row('c', '', second, '3')]))]);
    const late = fixture.window('2026-01-03', csvOf([row('d', 'p3', second, 'x'), row('e', 'p4', second, '4')]));
    await fixture.store([late], { schemaMode: 'freeze' });
    expect(await find('mail', '2', '3', 'x', 'nobody')).toMatchObject({
      people: 2,
      ids: ['2', '3', 'x'],
      idsWithoutUnifiedId: ['3'],
    });
    expect(await find('mail')).toMatchObject({ people: 0, ids: [], rows: 0 });
    await expect(find('none', 'x')).rejects.toMatchObject({ kind: 'config' });
    await expect(find('none')).rejects.toMatchObject({ kind: 'config' });
  });

  it('are none where there are no rows, and none are looked for where there is no table or after a stop', async () => {
    await expect(find('df_unified_id', 'x')).rejects.toMatchObject({ kind: 'config' });
    const options = { ...fixture.lakeOptions, signal: stopped() };
    await expect(peopleInDelta(options, { column: 'df_unified_id', ids: ['x'] })).rejects.toThrow('stopped');
    await fixture.store([fixture.window(first, csvOf([]))]);
    expect(await find('df_unified_id', 'x')).toMatchObject({ people: 0, ids: [], rows: 0 });
  });
});
