import { describe, expect, it } from 'vitest';
import { shellWord } from '../../../src/base/text.ts';
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

it('quotes a path that a shell would split or change', () => {
  const words = ['한글/dfinery.json', 'my place.duckdb', "it's", '$HOME', ''].map(shellWord);
  expect(words).toEqual(['한글/dfinery.json', "'my place.duckdb'", "'it'\\''s'", "'$HOME'", "''"]);
  expect(shellWord('a\\b')).toBe(process.platform === 'win32' ? 'a\\b' : "'a\\b'");
});
