import { describe, expect, it } from 'vitest';
import { CsvMemory } from '../../../src/cells/csv/csv-memory.ts';
import { COLUMN_SHIFT, DATA_AT, DOUBLED, QUOTED } from '../../../src/cells/csv/layout.ts';
import { CellText, RowTokenizer, SENTINEL } from '../../../src/cells/csv/tokenizer.ts';

describe('the positions of a row', () => {
  it.each([
    ['with SIMD', (size: number) => CsvMemory.open(size)],
    ['without', (size: number) => CsvMemory.withoutSimd(size)],
  ])('are those of the example in src/cells/csv/row-source.ts: %s', (_, open) => {
    const memory = open(1_000);
    const row = Buffer.from('a,"b""c"\n');
    memory.bytes.set([...row, SENTINEL], DATA_AT);
    const tokenizer = new RowTokenizer(memory);
    expect(tokenizer.next(DATA_AT, DATA_AT + row.length, true) - DATA_AT).toBe(9);
    const { width, contentEnd, used } = tokenizer;
    expect([width, contentEnd - DATA_AT, used]).toEqual([2, 8, 6]);
    const cells = [...tokenizer.cells.subarray(0, used)].map((entry, i) => (i % 3 === 0 ? entry : entry - DATA_AT));
    expect(cells).toEqual([0, 0, 1, (1 << COLUMN_SHIFT) | QUOTED | DOUBLED, 3, 7]);
    const cell = new CellText();
    cell.read(memory.bytes, tokenizer.cells, 3);
    expect(Buffer.from(cell.text).toString()).toBe('b"c');
    memory.release();
  });
});
