import { describe, expect, it } from 'vitest';
import { tableLines, wrappedLines } from '../../../src/cli/terminal/layout.ts';

describe('tables in a terminal', () => {
  it('breaks a text by the columns that it takes', () => {
    expect(wrappedLines('한국 이벤트 file', 11)).toEqual(['한국 이벤트', 'file']);
    expect(wrappedLines('한국 이벤트 file', 10)).toEqual(['한국', '이벤트', 'file']);
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
});
