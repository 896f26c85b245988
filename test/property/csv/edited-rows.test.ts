import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { HashKey } from '../../../src/base/hash-key.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { HASH_KEY, hmac } from '../../support/privacy.ts';
import fc from '../../support/property.ts';
import { columnEdits, readBack, scanIn } from '../../support/scan.ts';

const KEY = new HashKey(new Secret(HASH_KEY));
const NAMES = ['a', 'b b', '한', 'c"c', 'd,d', 'df_keyword', 'df_items_x'];
const character = fc.constantFrom('a', '7', ' ', ',', '"', '\n', '\r', '\r\n', '\\', '\u0000', '한', '😀', '-');
const cell = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  fc.array(character, { maxLength: 90 }).map((all) => all.join('')),
  fc.constantFrom('TRUE', '12', '2026.1.2 3:04', 'null', 'x@example.com', 'x@example.com'),
);

const write = (text: string, quote: boolean) =>
  quote || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

const table = fc.integer({ min: 2, max: 8 }).chain((width) =>
  fc.record({
    header: fc.array(fc.constantFrom(...NAMES), { minLength: width, maxLength: width }),
    rows: fc.array(fc.array(fc.tuple(cell, fc.boolean()), { minLength: width, maxLength: width }), { maxLength: 12 }),
    end: fc.constantFrom('\n', '\r\n'),
    drop: fc.subarray(NAMES, { maxLength: NAMES.length - 1 }),
    hash: fc.subarray(NAMES),
    bareCr: fc.boolean(),
  }),
);
const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 });

describe('rows with dropped and hashed columns', () => {
  it('equal those of csv-parse, a filter and an HMAC for any CSV and any chunks', () => {
    fc.assert(
      fc.property(table, fractions, ({ header, rows, end, drop, hash: listed, bareCr }, where) => {
        const hash = listed.filter((name) => !drop.includes(name));
        fc.pre(header.some((name) => !drop.includes(name)));
        const lines = [
          header.map((name) => write(name, false)),
          ...rows.map((row) => row.map(([text, quote]) => (bareCr && text === 'TRUE' ? 'T\rE' : write(text, quote)))),
        ];
        const body = Buffer.from(lines.map((line) => `${line.join(',')}${end}`).join(''));
        const source: string[][] = parse(body, { record_delimiter: end });
        const kept = header.flatMap((name, i) => (drop.includes(name) ? [] : i));
        const edited = (name: string, text: string) => {
          const stays = text === '' || text === 'null' || !hash.includes(name);
          return stays ? text : hmac(text);
        };
        const expected = [
          kept.map((i) => header[i]),
          ...source.slice(1).map((row) => kept.map((i) => edited(header[i], row[i]))),
        ];
        const cuts = where.map((fraction) => Math.floor(fraction * body.length)).sort((a, b) => a - b);
        const edits = columnEdits(drop, hash, KEY);
        const { result, written } = scanIn(new Scanner({ requireColumns: false, gatheredBytes: 1, edits }), body, cuts);
        expect(readBack(written)).toEqual(expected);
        expect(result.columns.map(({ name }) => name)).toEqual(expected[0]);
        expect(result.columns.map(({ filledCells }) => filledCells)).toEqual(
          kept.map((_, i) => expected.slice(1).filter((row) => row[i] !== '').length),
        );
        const texts = kept.flatMap((i, at) =>
          hash.includes(header[i]) && result.columns[at].filledCells > 0 ? [at] : [],
        );
        for (const at of texts) expect(result.columns[at]).toMatchObject({ type: 'string', isHashed: true });
      }),
      { numRuns: 500 },
    );
  });

  it('are the same for more values than hashes are kept of, for long values and for long rows', () => {
    const long = 'erna@example.com, '.repeat(20);
    const values = Array.from({ length: 70_000 }, (_, n) => (n < 300 ? long.slice(0, n + 1) : `u${n}`));
    const ids = [...values, ...values.slice(0, 1_000), 'x'.repeat(2_000_000)];
    const body = Buffer.from(['a,b', ...ids.map((id, n) => `"${id}",${n % 3}`), ''].join('\n'));
    const edits = columnEdits([], ['a', 'b'], KEY);
    const { written } = scanIn(new Scanner({ requireColumns: false, edits }), body, [70_000, 200_000]);
    const hashes = ['0', '1', '2'].map((text) => hmac(text));
    expect(written.toString().split('\n').slice(1, -1)).toEqual(ids.map((id, n) => `${hmac(id)},${hashes[n % 3]}`));
  });
});
