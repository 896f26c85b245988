import { describe, expect, it } from 'vitest';
import { doubleOf, writeLong, writeMicros } from '../../../src/sinks/arrow/build/numbers.ts';
import fc from '../../support/property.ts';

const words = new Int32Array(6);
const values = new BigInt64Array(words.buffer);
const bytesOf = (text: string) => Buffer.from(`#${text}#`);

const long = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -10_000n, max: 10_000n }),
);

describe('numbers in a column', () => {
  it('are written as 64-bit integers, whatever their size [R420]', () => {
    const borders = [
      0n,
      2n ** 31n,
      2n ** 32n - 1n,
      2n ** 32n,
      10n ** 15n,
      2n ** 53n + 1n,
      2n ** 63n - 1n,
      -(2n ** 63n),
    ];
    const check = (value: bigint) => {
      const bytes = bytesOf(String(value));
      writeLong(bytes, 1, bytes.length - 1, words, 1);
      expect(values[1]).toBe(value);
    };
    for (const value of [...borders, ...borders.slice(0, -1).map((value) => -value)]) check(value);
    fc.assert(fc.property(long, check));
  });

  it('are written as microseconds of the years 1 to 9999 [R420]', () => {
    const seconds = fc.integer({ min: -62_135_596_800, max: 253_402_300_799 });
    fc.assert(
      fc.property(
        fc.oneof(seconds, fc.constantFrom(0, -1, 1)),
        fc.integer({ min: 0, max: 999_999 }),
        (whole, micros) => {
          writeMicros(whole, micros, words, 2);
          expect(values[2]).toBe(BigInt(whole) * 1_000_000n + BigInt(micros));
        },
      ),
    );
  });

  it('are the doubles nearest to their texts [R420]', () => {
    const decimal = fc
      .tuple(fc.constantFrom('', '-'), fc.nat(10 ** 9), fc.stringMatching(/^[0-9]{1,18}$/))
      .map(([sign, whole, fraction]) => `${sign}${whole}.${fraction}`);
    const exponent = fc
      .tuple(fc.nat(9), fc.nat(99_999), fc.integer({ min: -320, max: 308 }))
      .map(([a, b, e]) => `${a}.${b}E${e}`);
    fc.assert(
      fc.property(fc.oneof(decimal, exponent, fc.constantFrom('-0.0', '0', '-7', '9007199254740992')), (text) => {
        const bytes = bytesOf(text);
        expect(doubleOf(bytes, 1, bytes.length - 1)).toBe(Number(text));
      }),
    );
  });
});
