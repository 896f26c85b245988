import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { HashKey } from '../../../src/base/hash-key.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../../src/cells/csv/malformed.ts';
import { HASH_KEY, hmac } from '../../support/privacy.ts';
import fc, { shares } from '../../support/property.ts';
import { columnEdits, readBack, scanIn } from '../../support/scan.ts';

const KEY = new HashKey(new Secret(HASH_KEY));
const NAMES = ['a', 'b b', '한', 'c"c', 'd,d', 'df_discount', 'df_items_x'];
const isText = (text: string) => !/\p{Surrogate}/u.test(text);
const character = fc.oneof(
  fc.constantFrom('a', '7', ' ', ',', '"', '\n', '\r', '\r\n', '\\', '\t', '\u0000', '한', '😀', 'é', '{', ';'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }).filter(isText),
);
const cell = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  fc.array(character, { maxLength: 8 }).map((characters) => characters.join('')),
  fc.array(character, { maxLength: 90 }).map((characters) => characters.join('')),
  fc.constantFrom('TRUE', '12', '2026.1.2 3:04', 'null', '["a,b"]', '2026-01-02 03:04:05.678', 'x@example.com'),
);

/** A cell as RFC 4180 writes it; quoted where it must be, and sometimes where it need not be. */
const write = (text: string, isQuoted: boolean) =>
  isQuoted || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

const table = fc.integer({ min: 2, max: 8 }).chain((width) =>
  fc.record({
    header: fc.array(fc.constantFrom(...NAMES), { minLength: width, maxLength: width }),
    rows: fc.array(fc.array(fc.tuple(cell, fc.boolean()), { minLength: width, maxLength: width }), { maxLength: 12 }),
    end: fc.constantFrom('\n', '\r\n'),
    hasFinalNewline: fc.boolean(),
    bom: fc.constantFrom('', '\ufeff'),
    /** Whether some cells have a CR that no quote protects. */
    hasBareCr: fc.boolean(),
    drop: fc.oneof(fc.constant<string[]>([]), fc.subarray(NAMES, { maxLength: NAMES.length - 1 })),
    hash: fc.oneof(fc.constant<string[]>([]), fc.subarray(NAMES)),
  }),
);
const cutsOf = (fractions: readonly number[], length: number) =>
  fractions.map((fraction) => Math.floor(fraction * length)).sort((a, b) => a - b);
const fractions = fc.array(shares, { maxLength: 12 });

describe('the rows of a body', () => {
  it('are those of csv-parse, a filter and an HMAC, for any RFC 4180 text, edits and chunks', () => {
    fc.assert(
      fc.property(table, fractions, ({ header, rows, end, hasFinalNewline, bom, hasBareCr, drop, hash }, where) => {
        const kept = header.flatMap((name, i) => (drop.includes(name) ? [] : i));
        fc.pre(kept.length > 0);
        const isBare = (text: string) => hasBareCr && text === 'TRUE';
        const lines = [
          header.map((name) => write(name, false)),
          ...rows.map((row) => row.map(([text, isQuoted]) => (isBare(text) ? 'T\rE' : write(text, isQuoted)))),
        ].map((cells) => cells.join(','));
        const body = Buffer.from(bom + lines.join(end) + (hasFinalNewline ? end : ''));
        const edits = columnEdits(drop, hash, KEY);
        const scanner = new ExportScanner({ needsEventColumns: false, minReadBytes: 1, edits });
        const { result, written } = scanIn(scanner, body, cutsOf(where, body.length));

        const source: string[][] = parse(body, { bom: true, record_delimiter: end });
        const edited = (name: string, text: string) =>
          text === '' || text === 'null' || !hash.includes(name) ? text : hmac(text);
        const expected = source.map((row, n) => kept.map((i) => (n === 0 ? row[i] : edited(header[i], row[i]))));
        expect(readBack(written)).toEqual(expected);
        expect(result).toMatchObject({ rows: rows.length, hasFinalNewline });
        const counts = expected[0].map((name, i) => ({
          headerName: name,
          filledCount: expected.slice(1).filter((row) => row[i] !== '').length,
          isHashed: hash.includes(name),
        }));
        expect(result.columns).toMatchObject(counts);
        const hashed = result.columns.filter(({ isHashed, filledCount }) => isHashed && filledCount > 0);
        expect(hashed.every(({ type }) => type === 'string')).toBe(true);
        if (drop.length > 0 || hash.length > 0 || hasBareCr) return;
        expect(written.toString()).toBe(lines.map((line) => `${line}\n`).join(''));
        expect(result.longestRowBytes).toBe(Math.max(...lines.map((line) => Buffer.byteLength(line) + 1)));
      }),
      { numRuns: 600 },
    );
  });

  it('have the same hashes for more values than hashes are kept of, for long values and for long rows', () => {
    const long = 'erna@example.com, '.repeat(20);
    const values = Array.from({ length: 70_000 }, (_, n) => (n < 300 ? long.slice(0, n + 1) : `u${n}`));
    const ids = [...values, ...values.slice(0, 1_000), 'x'.repeat(2_000_000)];
    const body = Buffer.from(['a,b', ...ids.map((id, n) => `"${id}",${n % 3}`), ''].join('\n'));
    const edits = columnEdits([], ['a', 'b'], KEY);
    const { written } = scanIn(new ExportScanner({ needsEventColumns: false, edits }), body, [70_000, 200_000]);
    const hashes = ['0', '1', '2'].map((text) => hmac(text));
    expect(written.toString().split('\n').slice(1, -1)).toEqual(ids.map((id, n) => `${hmac(id)},${hashes[n % 3]}`));
  });

  it('are the same, or the same error, for any bytes in any chunks', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc
        .array(fc.constantFrom(...Buffer.from('a,"\r\n\x00\xff\xed\x95\x9c x', 'latin1')), { maxLength: 60 })
        .map((all) => Uint8Array.from([...Buffer.from('a,b\n'), ...all])),
    );
    const outcome = (body: Uint8Array, cuts: readonly number[], minReadBytes: number) => {
      try {
        const { result, written } = scanIn(new ExportScanner({ needsEventColumns: false, minReadBytes }), body, cuts);
        return { result, written: written.toString('hex') };
      } catch (error) {
        if (error instanceof MalformedCsv) return { reason: error.reason, where: error.where };
        if (error instanceof UnusableCsv) return { reason: error.message };
        throw error;
      }
    };
    fc.assert(
      fc.property(bytes, fractions, (body, where) => {
        const whole = outcome(body, [], 1);
        for (const minReadBytes of [1, 1 << 20])
          expect(outcome(body, cutsOf(where, body.length), minReadBytes)).toEqual(whole);
      }),
      { numRuns: 600 },
    );
  });

  it('have invalid bytes replaced as WHATWG decoding does', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fractions, (junk, where) => {
        const inner = junk.filter((c) => c !== 0x22);
        const body = Buffer.concat([Buffer.from('a,b\n"'), inner, Buffer.from('",x\n')]);
        const { written } = scanIn(
          new ExportScanner({ needsEventColumns: false, minReadBytes: 1 }),
          body,
          cutsOf(where, body.length),
        );
        expect(written.toString()).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body));
      }),
      { numRuns: 500 },
    );
  });
});
