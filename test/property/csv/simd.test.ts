import { describe, expect, it } from 'vitest';
import { CsvMemory } from '../../../src/csv/csv-memory.ts';
import { STRIDE } from '../../../src/csv/layout.ts';
import { RowTokenizer, SENTINEL } from '../../../src/csv/tokenizer.ts';
import { TYPES } from '../../../src/types/index.ts';
import { writeString } from '../../../src/types/json-text.ts';
import fc from '../../support/property.ts';

const open = (): CsvMemory => {
  const memory = CsvMemory.open(1 << 16);
  if (memory === undefined) throw new Error('this machine has no SIMD');
  return memory;
};

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
  it('are the rows that TypeScript reads, wherever they begin and whatever follows them [R18]', () => {
    const memory = open();
    const [plain, simd] = [new RowTokenizer(), new RowTokenizer(memory)];
    fc.assert(
      fc.property(body, ({ text, shift, behind, crlf, last }) => {
        const bytes = Buffer.from(text);
        const whole = new Uint8Array(bytes.length + 64).fill(behind);
        whole.set(bytes);
        whole[bytes.length] = SENTINEL;
        memory.bytes.fill(behind, 0, shift);
        memory.bytes.set(whole, shift);
        plain.crlf = crlf;
        simd.crlf = crlf;
        for (let at = 0; at < bytes.length; ) {
          const next = plain.next(whole, at, bytes.length, last);
          const found = simd.next(memory.bytes, at + shift, bytes.length + shift, last);
          expect(found).toBe(next < 0 ? next : next + shift);
          if (next < 0) break;
          expect(rowOf(simd, shift)).toEqual(rowOf(plain, 0));
          at = next;
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it('are left to TypeScript when they have more cells than fit', () => {
    const memory = open();
    const bytes = Buffer.from(`${'ab,'.repeat(15_000)}z\nc,d\n`);
    memory.grow(bytes.length + 64);
    memory.bytes.set(bytes);
    memory.bytes[bytes.length] = SENTINEL;
    const tokenizer = new RowTokenizer(memory);
    const next = tokenizer.next(memory.bytes, 0, bytes.length, true);
    expect([tokenizer.width, tokenizer.used / STRIDE]).toEqual([15_001, 15_001]);
    expect(tokenizer.next(memory.bytes, next, bytes.length, true)).toBe(bytes.length);
    expect(tokenizer.used / STRIDE).toBe(2);
  });
});

describe('text written by SIMD', () => {
  it('is the JSON string that TypeScript writes, with the same escapes', () => {
    const memory = open();
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
        memory.bytes.set(bytes, shift);
        const [modes, offsets, labels, out] = [1_000, 1_100, 1_200, 2_000];
        memory.bytes.set([1], modes);
        memory.bytes.set(new Uint8Array(Int32Array.of(0, 5).buffer), offsets);
        memory.bytes.set(Buffer.from(',"n":'), labels);
        memory.cells.set([0, shift, shift + bytes.length]);
        expect(memory.writeCells(0, STRIDE, modes, labels, offsets, out)).toBe(STRIDE);
        const wanted = new Uint8Array(bytes.length * 6 + 2);
        const length = writeString(bytes, 0, bytes.length, wanted, 0);
        const found = Buffer.from(memory.bytes.subarray(out, memory.written)).toString();
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
    const memory = open();
    fc.assert(
      fc.property(list, fc.nat(40), (text, shift) => {
        const cell = Buffer.from(text.replaceAll('"', '""'));
        memory.bytes.set(cell, shift);
        const [modes, offsets, labels, out] = [1_000, 1_100, 1_200, 2_000];
        memory.bytes.set([5], modes);
        memory.bytes.set(new Uint8Array(Int32Array.of(0, 5).buffer), offsets);
        memory.bytes.set(Buffer.from(',"n":'), labels);
        memory.cells.set([3, shift, shift + cell.length]);
        const isPlain = JSON.stringify(JSON.parse(text)) === text && !text.includes('\\');
        expect(memory.writeCells(0, STRIDE, modes, labels, offsets, out)).toBe(isPlain ? STRIDE : 0);
        expect(memory.written).toBe(out + (isPlain ? 5 + Buffer.byteLength(text) : 0));
        if (!isPlain) return;
        const bytes = Buffer.from(text);
        const wanted = new Uint8Array(bytes.length * 8 + 40);
        const length = TYPES['string[]'].writeJson(bytes, 0, bytes.length, wanted, 0);
        const found = Buffer.from(memory.bytes.subarray(out, memory.written)).toString();
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
