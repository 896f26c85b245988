import { describe, expect, it } from 'vitest';
import { addDays, daysBetween, daysOf, isDay } from '../../../src/base/days.ts';

describe('days', () => {
  it.each(['2024-02-29', '0001-01-01', '9999-12-31'])('%s is a day', (day) => expect(isDay(day)).toBe(true));
  it.each(['2026-02-29', '0000-01-01', '2026-1-1', '2026-13-01', '2026-01-01T00', ''])('%s is not a day', (day) =>
    expect(isDay(day)).toBe(false),
  );

  it('are added over months, leap days and years', () => {
    expect(addDays('2024-02-28', 2)).toBe('2024-03-01');
    expect(addDays('2026-01-01', -1)).toBe('2025-12-31');
    expect(daysBetween('2026-02-27', '2026-03-02')).toBe(3);
    expect(daysOf('2026-02-27', '2026-03-01')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(daysOf('2026-02-02', '2026-02-01')).toEqual([]);
    expect(daysOf('9999-12-30', '9999-12-31')).toEqual(['9999-12-30', '9999-12-31']);
  });
});
