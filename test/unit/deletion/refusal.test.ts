import { describe, expect, it } from 'vitest';
import { idRefusal } from '../../../src/erasure/input/deletion-list.ts';

const accepted = [
  '../x',
  'a b',
  '"',
  '0',
  '😀',
  ' lead',
  'trail ',
  'nullable',
  'na',
  'inf',
  '{x}',
  'none-1',
  'a*',
  '\\',
  '한국어',
  'ﬀ',
  '-',
  '.',
];
const refused = [
  [undefined, 'missing'],
  [null, 'missing'],
  [0, 'not_a_string'],
  [12, 'not_a_string'],
  [true, 'not_a_string'],
  [{}, 'not_a_string'],
  [['a'], 'not_a_string'],
  ['', 'empty'],
  [' ', 'blank'],
  ['\u00a0\u3000', 'blank'],
  ['\u200b\ufeff', 'blank'],
  ['\u3164', 'blank'],
  ['\u115f\uffa0\u2800', 'blank'],
  ['\t', 'blank'],
  ['null', 'null_like'],
  ['NULL ', 'null_like'],
  ['undefined', 'null_like'],
  ['NaN', 'null_like'],
  ['None', 'null_like'],
  ['<null>', 'null_like'],
  ['"*"', 'null_like'],
  ['(%%)', 'null_like'],
  ['"null"', 'null_like'],
  ['[object Object]', 'null_like'],
  ['`null`', 'null_like'],
  ['\u200bnull', 'null_like'],
  ['nul\ufeffl', 'null_like'],
  ['null\u3164', 'null_like'],
  ['ｎｕｌｌ', 'null_like'],
  ['<NA>', 'null_like'],
  ['#REF!', 'null_like'],
  ['""', 'null_like'],
  ['{}', 'null_like'],
  ['*', 'null_like'],
  ['**', 'null_like'],
  ['%', 'null_like'],
  ['a\u0000b', 'control_characters'],
  ['a\n', 'control_characters'],
  ['\u007f', 'control_characters'],
  ['\u0085x', 'control_characters'],
  ['\ud800', 'not_unicode'],
  ['a\udc00b', 'not_unicode'],
  ['x'.repeat(33), 'too_long'],
  ['😀'.repeat(9), 'too_long'],
] as const;

describe('an external id', () => {
  it.each(accepted)('%j is accepted unchanged', (id) => {
    expect(idRefusal(id, 32)).toBeUndefined();
  });

  it.each(refused)('%j is refused as %s', (id, reason) => {
    expect(idRefusal(id, 32)).toBe(reason);
  });

  it('may have exactly the maximum length in bytes', () => {
    expect(idRefusal('😀'.repeat(8), 32)).toBeUndefined();
    expect(idRefusal('x'.repeat(32), 32)).toBeUndefined();
  });

  it('of ten megabytes is checked at once', () => {
    expect(idRefusal(' '.repeat(10_000_000), 1_024)).toBe('too_long');
    expect(idRefusal('<'.repeat(1_000_000), 1_048_576)).toBeUndefined();
  });
});
