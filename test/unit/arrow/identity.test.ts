import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ColumnType } from '../../../src/cells/types/type.ts';
import { ArrowFixture, streamedColumns } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';

let fixture: ArrowFixture;
beforeEach(() => {
  fixture = new ArrowFixture();
});
afterEach(() => fixture.close());

interface Kind {
  readonly timezone?: string;
  readonly type?: ColumnType;
}

/** How often a row is sent whose id two windows have, the first of which is not complete, with these cells of its times. */
async function sent(first: Cells, second: Cells, { timezone, type }: Kind = {}): Promise<number> {
  const other = (n: number): Cells => ({ id: `other-${n}`, df_server_datetime: '2025-06-01 00:00:00' });
  const [begun, next] = [first, second].map((cells, n) =>
    fixture.window('2026-01-01', csvOf([other(n), { id: 'same', ...cells }]), timezone),
  );
  const open = { ...begun, receipt: { ...begun.receipt, covers_to: null } };
  const columnTypes = new Map(type === undefined ? [] : [['df_server_datetime', type]]);
  await fixture.write([open, next], { timezone, columnTypes });
  const keys = streamedColumns(fixture.out).find(({ name }) => name === '_key')?.values ?? [];
  expect(keys).toEqual(expect.arrayContaining(['other-0', 'other-1', 'same']));
  return keys.length - 2;
}

const at = (df_server_datetime: string, df_correction_datetime = '2026-01-09 00:00:00'): Cells => ({
  df_server_datetime,
  df_correction_datetime,
});

describe('a row in two windows', () => {
  it('is sent once when both have it on the same day, at any time of the day', async () => {
    expect(await sent(at('2026-01-02 00:00:00'), at('2026-01-02 23:59:59.999'))).toBe(1);
    expect(await sent(at('2026.1.2 3:04'), at('2026-01-02'))).toBe(1);
  });

  it.each([
    ['day', '2026-01-02 10:00:00', '2026-01-03 10:00:00'],
    ['month', '2026-01-02 10:00:00', '2026-02-02 10:00:00'],
    ['year', '2026-01-02 10:00:00', '2025-01-02 10:00:00'],
  ])('is sent twice when they differ in the %s', async (_, first, second) => {
    expect(await sent(at(first), at(second))).toBe(2);
  });

  it('has the day of its second datetime if the first is missing, and none if both are', async () => {
    expect(await sent(at('', '2026-01-02 10:00:00'), at('2026-01-02 11:00:00', '2026-01-09 00:00:00'))).toBe(1);
    expect(await sent(at('null', '2026-01-02 10:00:00'), at('', '2026-01-02 11:00:00'))).toBe(1);
    expect(await sent(at('no time', '2026-01-02 10:00:00'), at('', '2026-01-02 11:00:00'))).toBe(1);
    expect(await sent(at('', ''), at('', 'null'))).toBe(1);
    expect(await sent(at('', ''), at('2026-01-02 11:00:00'))).toBe(2);
  });

  it('has its day in the configured zone, converted from the zone of the cell', async () => {
    const zoned = { timezone: 'America/New_York' };
    // 03:00 in UTC is ten in the evening of the day before.
    expect(await sent(at('2026-01-02T03:00:00+00:00'), at('2026-01-01 10:00:00'), zoned)).toBe(1);
    expect(await sent(at('2026-01-02T03:00:00+00:00'), at('2026-01-02 10:00:00'), zoned)).toBe(2);
    expect(await sent(at('2026-01-02 03:00:00'), at('2026-01-02 23:00:00'), zoned)).toBe(1);
    expect(await sent(at('2026-01-02T10:00:00+09:00'), at('2026-01-01 10:00:00'), zoned)).toBe(1);
  });

  it('has the date of a date column', async () => {
    expect(await sent(at('2026-01-02'), at('2026-01-02'), { type: 'date' })).toBe(1);
    expect(await sent(at('2026-01-02'), at('2026-01-03'), { type: 'date' })).toBe(2);
  });

  it('has the first ten characters of a text column as its date', async () => {
    const type = 'string';
    expect(await sent(at('2026-01-02 10:00:00'), at('2026-01-02 "noon"'), { type })).toBe(1);
    expect(await sent(at('the "2nd" of May'), at('the "2nd" of June'), { type })).toBe(1);
    expect(await sent(at('안녕안녕안 day1 a'), at('안녕안녕안 day1 b'), { type })).toBe(1);
    expect(await sent(at('안녕안녕안 day1 a'), at('안녕안녕안 day2 a'), { type })).toBe(2);
    expect(await sent(at('2026-01-02 10:00:00'), at('2026-01-0'), { type })).toBe(2);
  });
});
