import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../../src/cells/csv/malformed.ts';
import fc from '../../support/property.ts';
import { readBack, scanIn } from '../../support/scan.ts';

const isText = (text: string) => !/\p{Surrogate}/u.test(text);

const character = fc.oneof(
  fc.constantFrom('a', '7', ' ', ',', '"', '\n', '\r', '\r\n', '\\', '\t', '\u0000', '한', '😀', 'é', '{', ';'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
);
const cell = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  fc
    .array(character, { maxLength: 8 })
    .map((all) => all.join(''))
    .filter(isText),
  fc.constantFrom('TRUE', '12', '2026.1.2 3:04', 'null', '["a,b"]', '2026-01-02 03:04:05.678'),
);

/** A cell as RFC 4180 writes it; quoted where it must be, and sometimes where it need not be. */
function write(text: string, quote: boolean): string {
  return quote || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const table = fc.integer({ min: 2, max: 6 }).chain((width) =>
  fc.record({
    header: fc.array(fc.constantFrom('a', 'b b', '한', 'c"c', 'd,d', 'df_keyword'), {
      minLength: width,
      maxLength: width,
    }),
    rows: fc.array(fc.array(fc.tuple(cell, fc.boolean()), { minLength: width, maxLength: width }), { maxLength: 8 }),
    end: fc.constantFrom('\n', '\r\n'),
    hasFinalNewline: fc.boolean(),
    bom: fc.boolean(),
  }),
);
type Table = typeof table extends fc.Arbitrary<infer T> ? T : never;

function linesOf({ header, rows }: Table): string[] {
  const lines = [
    header.map((name) => write(name, false)),
    ...rows.map((row) => row.map(([text, q]) => write(text, q))),
  ];
  return lines.map((line) => line.join(','));
}

function document(t: Table): Buffer {
  return Buffer.from((t.bom ? '\ufeff' : '') + linesOf(t).join(t.end) + (t.hasFinalNewline ? t.end : ''));
}

const cutsOf = (fractions: readonly number[], length: number) =>
  fractions.map((fraction) => Math.floor(fraction * length)).sort((a, b) => a - b);
const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 });

describe('the rows of a body', () => {
  it('are those of csv-parse for any RFC 4180 text, in any chunks', () => {
    fc.assert(
      fc.property(table, fractions, (t, where) => {
        const body = document(t);
        const expected: string[][] = parse(body, { bom: true, record_delimiter: t.end });
        const { result, written } = scanIn(
          new Scanner({ requireColumns: false, gatheredBytes: 1 }),
          body,
          cutsOf(where, body.length),
        );
        expect(readBack(written)).toEqual(expected);
        expect(result.columns.map(({ name }) => name)).toEqual(expected[0]);
        expect(result.rows).toBe(expected.length - 1);
        expect(result.hasFinalNewline).toBe(t.hasFinalNewline);
      }),
      { numRuns: 400 },
    );
  });

  it('are counted as csv-parse has them: filled cells and the longest row', () => {
    fc.assert(
      fc.property(table, (t) => {
        const body = document({ ...t, bom: false, end: '\n', hasFinalNewline: true });
        const { result, written } = scanIn(new Scanner({ requireColumns: false, gatheredBytes: 1 }), body);
        const rows: string[][] = parse(body, { record_delimiter: '\n' });
        const filled = t.header.map((_, i) => rows.slice(1).filter((row) => row[i] !== '').length);
        expect(result.columns.map((column) => column.filledCells)).toEqual(filled);
        expect(written).toEqual(body);
        const lengths = linesOf(t).map((line) => Buffer.byteLength(line) + 1);
        expect(result.longestRowBytes).toBe(Math.max(...lengths));
      }),
      { numRuns: 200 },
    );
  });

  it('are the same, or the same error, for any bytes in any chunks', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc
        .array(fc.constantFrom(...Buffer.from('a,"\r\n\x00\xff\xed\x95\x9c x', 'latin1')), { maxLength: 60 })
        .map((all) => Uint8Array.from([...Buffer.from('a,b\n'), ...all])),
    );
    const outcome = (body: Uint8Array, cuts: readonly number[], gatheredBytes: number) => {
      try {
        const { result, written } = scanIn(new Scanner({ requireColumns: false, gatheredBytes }), body, cuts);
        return { result, written: written.toString('hex') };
      } catch (error) {
        if (error instanceof MalformedCsv) return { reason: error.reason, where: error.where };
        if (error instanceof UnusableCsv) return { reason: error.message };
        throw error;
      }
    };
    fc.assert(
      fc.property(bytes, fractions, (body, where) => {
        expect(outcome(body, cutsOf(where, body.length), 1)).toEqual(outcome(body, [], 1 << 20));
      }),
      { numRuns: 800 },
    );
  });

  it('have invalid bytes replaced as WHATWG decoding does', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fractions, (junk, where) => {
        const inner = junk.filter((c) => c !== 0x22);
        const body = Buffer.concat([Buffer.from('a,b\n"'), inner, Buffer.from('",x\n')]);
        const { written } = scanIn(
          new Scanner({ requireColumns: false, gatheredBytes: 1 }),
          body,
          cutsOf(where, body.length),
        );
        expect(written.toString()).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body));
      }),
      { numRuns: 500 },
    );
  });
});
