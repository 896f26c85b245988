import { describe, expect, it } from 'vitest';
import { bar, tableLines, widthOf } from '../../../src/cli/table.ts';

describe('tables in a terminal', () => {
  it('counts columns as a terminal does', () => {
    expect([widthOf('abc'), widthOf('한국'), widthOf('😀'), widthOf('é')]).toEqual([3, 4, 2, 1]);
  });

  it('aligns wide text, and numbers to the right', () => {
    expect(
      tableLines(
        ['name', 'n'],
        [
          ['상품', '10'],
          ['ab', '2'],
        ],
      ),
    ).toEqual(['  name   n', '  ────  ──', '  상품  10', '  ab     2']);
  });

  it('keeps line ends and long texts out of the table', () => {
    expect(tableLines(['x'], [['a\nb']])[2]).toBe('  a\\u000ab');
    expect(tableLines(['x'], [['abcdefgh']], 5)[2]).toBe('  abcd…');
  });

  it('draws bars in eighths', () => {
    expect([bar(10, 10, 2), bar(5, 10, 1), bar(0, 10, 5), bar(1, 0, 5)]).toEqual(['██', '▌', '', '']);
  });
});
