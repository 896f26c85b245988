import { describe, expect, it } from 'vitest';
import { RowReader } from '../../../src/csv/row-reader.ts';
import { COLUMN_SHIFT, DOUBLED, STRIDE } from '../../../src/csv/tokenizer.ts';
import { Unquoter } from '../../../src/csv/unquote.ts';

function rowsOf(reader: RowReader, into: string[][]): void {
  const unquoter = new Unquoter();
  while (reader.next()) {
    const { bytes, tokenizer } = reader;
    const { cells, used, width } = tokenizer;
    const row = new Array<string>(width).fill('');
    for (let k = 0; k < used; k += STRIDE) {
      const isDoubled = (cells[k] & DOUBLED) !== 0;
      const length = isDoubled ? unquoter.unquote(bytes, cells[k + 1], cells[k + 2]) : 0;
      const text = isDoubled ? unquoter.text.subarray(0, length) : bytes.subarray(cells[k + 1], cells[k + 2]);
      row[cells[k] >> COLUMN_SHIFT] = new TextDecoder().decode(text);
    }
    into.push(row);
  }
}

describe('the row reader', () => {
  const body = Buffer.from('a,b,c\n1,,"x, ""y""\n2"\n,,\n"한",z,');

  it.each([1, 2, 3, 7, 1000])('walks the rows of a file in chunks of %i bytes', (size) => {
    const reader = new RowReader();
    const rows: string[][] = [];
    for (let at = 0; at < body.length; at += size) {
      reader.push(body.subarray(at, at + size));
      rowsOf(reader, rows);
    }
    reader.finish();
    rowsOf(reader, rows);
    expect(rows).toEqual([
      ['a', 'b', 'c'],
      ['1', '', 'x, "y"\n2'],
      ['', '', ''],
      ['한', 'z', ''],
    ]);
  });

  it('calls a broken file a defect: it was whole when it was written', () => {
    const reader = new RowReader();
    reader.push(Buffer.from('a"b,c\n'));
    expect(() => reader.next()).toThrow(expect.objectContaining({ kind: 'system' }));
  });
});
