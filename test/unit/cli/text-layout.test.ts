import { describe, expect, it } from 'vitest';
import { tableLines, widthOf } from '../../../src/cli/text-layout.ts';

describe('tables in a terminal', () => {
  it('counts the columns of a character as a terminal does', () => {
    expect([widthOf('abc'), widthOf('한국'), widthOf('😀'), widthOf('é')]).toEqual([3, 4, 2, 1]);
  });

  it('aligns wide texts, and numbers to the right', () => {
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

  it('removes line ends and truncates long texts', () => {
    expect(tableLines(['x'], [['a\nb']])[2]).toBe('  a\\u000ab');
    expect(tableLines(['x'], [['abcdefgh']], { cell: 5 })[2]).toBe('  abcd…');
  });
});
