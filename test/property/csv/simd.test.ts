import { describe, expect, it } from 'vitest';
import { CsvMemory } from '../../../src/cells/csv/csv-memory.ts';
import { DATA_AT, DOUBLED, LIST, MAX_COLUMNS, OUT_END, QUOTED, STRIDE, TEXT } from '../../../src/cells/csv/layout.ts';
import { RowTokenizer, SENTINEL } from '../../../src/cells/csv/tokenizer.ts';
import { TYPES } from '../../../src/cells/types/index.ts';
import { writeString } from '../../../src/cells/types/json-text.ts';
import fc from '../../support/property.ts';

const SIZE = 1 << 16;
/** Where tables, cells and JSON are in the memory. */
const [MODES, OFFSETS, LABELS, OUT] = [1_000, 1_100, 1_200, 2_000].map((at) => DATA_AT + at);

/** Writes one cell of a column `n` by SIMD; returns whether it was plain, and the JSON. */
function writeCell(memory: CsvMemory, cell: Uint8Array, shift: number, mode: number, flags: number) {
  const start = DATA_AT + shift;
  memory.bytes.set(cell, start);
  memory.bytes.set([mode], MODES);
  memory.bytes.set(new Uint8Array(Int32Array.of(0, 5).buffer), OFFSETS);
  memory.bytes.set(Buffer.from(',"n":'), LABELS);
  memory.cells.set([flags, start, start + cell.length]);
  const isPlain = memory.functions.writeCells(0, STRIDE, MODES, LABELS, OFFSETS, OUT) === STRIDE;
  return { isPlain, json: Buffer.from(memory.bytes.subarray(OUT, memory.info[OUT_END])).toString() };
}

const piece = fc.constantFrom(
  ...[
    ',',
    ',',
    ',,,,,,,,,,,,,,,,,,',
    'a',
    'text of more than sixteen bytes',
    '"',
    '""',
    '\n',
    '\n',
    '\r',
    '\r\n',
    ' ',
    '한',
  ],
  ...['"q,\n"', '"a""b"', '"a quoted cell of more than sixteen bytes, ""twice"" as long"'],
);
const body = fc.record({
  text: fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
  /** Where the body begins: its place among the lanes of a vector. */
  shift: fc.nat(40),
  /** What lies behind it. */
  behind: fc.constantFrom(10, 13, 34, 44, 97),
  crlf: fc.boolean(),
  last: fc.boolean(),
});

describe('rows read by SIMD', () => {
  it('are the rows that TypeScript reads, wherever they begin and whatever follows them', () => {
    const memory = CsvMemory.open(SIZE);
    const heap = CsvMemory.withoutSimd(SIZE);
    const [plain, simd] = [new RowTokenizer(heap), new RowTokenizer(memory)];
    fc.assert(
      fc.property(body, ({ text, shift, behind, crlf, last }) => {
        const bytes = Buffer.from(text);
        const whole = new Uint8Array(bytes.length + 64).fill(behind);
        whole.set(bytes);
        whole[bytes.length] = SENTINEL;
        heap.bytes.set(whole, DATA_AT);
        memory.bytes.fill(behind, DATA_AT, DATA_AT + shift);
        memory.bytes.set(whole, DATA_AT + shift);
        plain.crlf = crlf;
        simd.crlf = crlf;
        const end = DATA_AT + bytes.length;
        for (let at = DATA_AT; at < end; ) {
          const next = plain.next(at, end, last);
          const found = simd.next(at + shift, end + shift, last);
          expect(found).toBe(next < 0 ? next : next + shift);
          if (next < 0) break;
          expect(rowOf(simd, shift)).toEqual(rowOf(plain, 0));
          at = next;
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([15_000, MAX_COLUMNS - 1])('have as many filled cells as a header may have: %i and one', (count) => {
    const text = Buffer.from(`${'ab,'.repeat(count)}z\nc,d\n`);
    const memory = CsvMemory.open(SIZE + text.length);
    memory.bytes.set(text, DATA_AT);
    const end = DATA_AT + text.length;
    memory.bytes[end] = SENTINEL;
    const tokenizer = new RowTokenizer(memory);
    const next = tokenizer.next(DATA_AT, end, true);
    expect([tokenizer.width, tokenizer.used / STRIDE]).toEqual([count + 1, count + 1]);
    expect(tokenizer.next(next, end, true)).toBe(end);
    expect(tokenizer.used / STRIDE).toBe(2);
  });
});

describe('text written by SIMD', () => {
  it('is the JSON string that TypeScript writes, with the same escapes', () => {
    const memory = CsvMemory.open(SIZE);
    const unit = fc.constantFrom(
      'a',
      '"',
      '\\',
      '\n',
      '\t',
      '\u0001',
      '\u001f',
      '\u007f',
      '한',
      '😀',
      ' ',
      'plain text, long',
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 40 }), fc.nat(40), (text, shift) => {
        const bytes = Buffer.from(text);
        const { isPlain, json: found } = writeCell(memory, bytes, shift, TEXT, 0);
        expect(isPlain).toBe(true);
        const wanted = new Uint8Array(bytes.length * 6 + 2);
        const length = writeString(bytes, 0, bytes.length, wanted, 0);
        expect(found).toBe(`,"n":${Buffer.from(wanted.subarray(0, length))}`);
        expect(JSON.parse(found.slice(5))).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });
});

const gap = fc.constantFrom('', '', '', '', ' ', '\n');
const item = fc.oneof(
  fc.constant('null'),
  fc.string({
    unit: fc.constantFrom('a', ' ', ',', ']', '[', '"', '\\', '\t', '한', 'plain text, long'),
    maxLength: 12,
  }),
);
const list = fc
  .array(fc.tuple(gap, item, gap), { maxLength: 8 })
  .map(
    (items) => `[${items.map(([a, text, b]) => a + (text === 'null' ? text : JSON.stringify(text)) + b).join(',')}]`,
  );

describe('lists written by SIMD', () => {
  it('are the lists that TypeScript writes; lists with escapes or white space between items are left to TypeScript', () => {
    const memory = CsvMemory.open(SIZE);
    fc.assert(
      fc.property(list, fc.nat(40), (text, shift) => {
        const cell = Buffer.from(text.replaceAll('"', '""'));
        const isPlain = JSON.stringify(JSON.parse(text)) === text && !text.includes('\\');
        const { isPlain: isWritten, json: found } = writeCell(memory, cell, shift, LIST, QUOTED | DOUBLED);
        expect(isWritten).toBe(isPlain);
        expect(Buffer.byteLength(found)).toBe(isPlain ? 5 + Buffer.byteLength(text) : 0);
        if (!isPlain) return;
        const bytes = Buffer.from(text);
        const wanted = new Uint8Array(bytes.length * 8 + 40);
        const length = TYPES['string[]'].writeJson(bytes, 0, bytes.length, wanted, 0);
        expect(found).toBe(`,"n":${Buffer.from(wanted.subarray(0, length))}`);
      }),
      { numRuns: 2_000 },
    );
  });
});

function rowOf(tokenizer: RowTokenizer, shift: number): unknown {
  const { cells, used, width, contentEnd, flags } = tokenizer;
  const places = Array.from(cells.subarray(0, used), (n, i) => (i % STRIDE === 0 ? n : n - shift));
  return { places, width, contentEnd: contentEnd - shift, flags };
}
