import { describe, expect, it } from 'vitest';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { MalformedCsv } from '../../../src/cells/csv/malformed.ts';
import fc from '../../support/property.ts';

/** Characters of one to four bytes, in hex. */
const pieces = fc.constantFrom('61', '20', 'c3a9', 'ed959c', 'f09f8e81');
const cell = fc.array(pieces, { minLength: 0, maxLength: 6 }).map((all) => Buffer.from(`${all.join('')}78`, 'hex'));
const row = fc.tuple(cell, cell);

/** The failure of a body that comes in chunks of these lengths; undefined: it is whole. */
function failureOf(body: Buffer, lengths: readonly number[]): MalformedCsv | undefined {
  const scanner = new Scanner({ requireSystem: false, gatheredBytes: 16 });
  try {
    for (let at = 0, n = 0; at < body.length; n++) {
      const length = lengths[n % lengths.length];
      scanner.push(body.subarray(at, at + length));
      at += length;
    }
    scanner.finish();
    return undefined;
  } catch (error) {
    if (error instanceof MalformedCsv) return error;
    throw error;
  }
}

const joined = (rows: readonly (readonly Buffer[])[], end: string): Buffer =>
  Buffer.concat(
    rows.flatMap((cells) => [
      ...cells.flatMap((one, i) => (i === 0 ? [one] : [Buffer.from(','), one])),
      Buffer.from(end),
    ]),
  );

describe('an invalid row', () => {
  it('is located by its byte in the body, in any chunks', () => {
    fc.assert(
      fc.property(
        fc.array(row, { maxLength: 12 }),
        fc.array(cell, { minLength: 3, maxLength: 4 }),
        fc.array(row, { maxLength: 3 }),
        fc.constantFrom('\n', '\r\n'),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        (before, broken, after, end, lengths) => {
          const header = Buffer.from(`a,b${end}`);
          const start = Buffer.concat([header, joined(before, end)]);
          const body = Buffer.concat([start, joined([broken, ...after], end)]);
          const failure = failureOf(body, lengths);
          expect(failure?.reason).toBe('long_row');
          expect(failure?.where).toMatchObject({ row: before.length + 2, byte: start.length });
        },
      ),
      { numRuns: 300 },
    );
  });
});
