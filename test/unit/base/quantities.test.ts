import { expect, it } from 'vitest';
import { formatBytes } from '../../../src/base/quantities.ts';

it.each([
  [0, '0 B'],
  [499, '499 B'],
  [40_279, '40 kB'],
  [99_999, '100 kB'],
  [100_000, '0.1 MB'],
  [12_345_678, '12.3 MB'],
])('shows %d bytes as %s', (bytes, shown) => {
  expect(formatBytes(bytes)).toBe(shown);
});
