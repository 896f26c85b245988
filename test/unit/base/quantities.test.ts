import { expect, it } from 'vitest';
import { formatBytes, formatDuration, parseDuration } from '../../../src/base/quantities.ts';

it('shows sizes in the unit that fits', () => {
  const shown = [0, 499, 40_279, 99_999, 100_000, 12_345_678].map(formatBytes);
  expect(shown).toEqual(['0 B', '499 B', '40 kB', '100 kB', '0.1 MB', '12.3 MB']);
});

it('shows lengths of time in at most two units', () => {
  const shown = [850, 12_000, 270_000, 7_500_000].map(formatDuration);
  expect(shown).toEqual(['850 ms', '12 s', '4 min 30 s', '2 h 5 min']);
});

it('reads a length of time with its unit, and nothing else', () => {
  expect(['30s', '20m', '1h', '500ms'].map(parseDuration)).toEqual([30_000, 1_200_000, 3_600_000, 500]);
  const others = ['', '1', '1d', '-1s', '1 h', '1.5h'];
  expect(others.filter((text) => parseDuration(text) !== undefined)).toEqual([]);
});
