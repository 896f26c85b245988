import { describe, expect, it } from 'vitest';
import { oneOf, readDate, readLimits } from '../../../src/service/http/headers.ts';
import type { AnswerHeaders } from '../../../src/service/http/transport.ts';

const NOW = Date.UTC(2026, 0, 20, 3);
const IN_20_MIN = NOW + 1_200_000;
const SECONDS = String(IN_20_MIN / 1_000);

describe('limit headers', () => {
  const rows: [string, AnswerHeaders, number | undefined, number | undefined][] = [
    [
      'one spelling, milliseconds',
      { 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': String(IN_20_MIN) },
      7,
      IN_20_MIN,
    ],
    ['the other spelling, seconds', { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': SECONDS }, 0, IN_20_MIN],
    ['spaces and a fraction', { 'x-ratelimit-remaining': ' 12 ', 'x-ratelimit-reset': `${SECONDS}.0` }, 12, IN_20_MIN],
    [
      'both spellings, one of them nonsense',
      { 'x-rate-limit-reset': 'soon', 'x-ratelimit-reset': SECONDS },
      undefined,
      IN_20_MIN,
    ],
    ['twice', { 'x-ratelimit-remaining': '5, 5' }, 5, undefined],
    ['seconds from now, which nobody promised', { 'x-ratelimit-reset': '1200' }, undefined, undefined],
    ['negative, fractional, empty', { 'x-ratelimit-remaining': '-1', 'x-ratelimit-reset': '' }, undefined, undefined],
    ['a cycle alone', { 'x-ratelimit-limit': '1h' }, undefined, undefined],
    ['nothing', {}, undefined, undefined],
  ];
  it.each(rows)('are read: %s', (_name, headers, remaining, resetAt) => {
    expect(readLimits(headers, NOW)).toMatchObject({ remaining, resetAt });
  });
});

it('have a Date to the second, or none when it is invalid', () => {
  expect(readDate({ date: 'Tue, 20 Jan 2026 03:00:00 GMT' })).toBe(NOW);
  expect(readDate({ date: 'noon' })).toBeUndefined();
  expect(readDate({})).toBeUndefined();
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MONTH = 32 * 24 * HOUR;
const dated = (ms: number) => new Date(ms).toUTCString();
const remaining = (value: string | readonly string[]) => readLimits({ 'x-ratelimit-remaining': value }, NOW).remaining;
const resetAt = (reset: string, more = {}) => readLimits({ 'x-ratelimit-reset': reset, ...more }, NOW).resetAt;
const retryAt = (value: string | readonly string[]) => readLimits({ 'retry-after': value }, NOW).retryAt;

describe('Remaining', () => {
  it('is a whole number of up to fifteen digits', () => {
    expect(['0', '7', '123456789012345'].map(remaining)).toEqual([0, 7, 123_456_789_012_345]);
    for (const wrong of ['1234567890123456', '7x', 'x7', '7 left', '+7', '0x7', '7.0', '', ' '])
      expect(remaining(wrong), wrong).toBeUndefined();
  });

  it('is the first valid one of several, in one header or in many', () => {
    expect([remaining('soon, 7, 8'), remaining(['soon', '7']), remaining([]), remaining(' 7 ')]).toEqual([
      7,
      7,
      undefined,
      7,
    ]);
    const both = { 'x-rate-limit-remaining': '5', 'x-ratelimit-remaining': '6' };
    expect(readLimits(both, NOW).remaining).toBe(5);
  });
});

describe('Reset', () => {
  it('is in seconds or milliseconds, with a fraction of any length, rounded', () => {
    const seconds = (NOW + MINUTE) / 1_000;
    expect(resetAt(`${seconds}.25`)).toBe(NOW + MINUTE + 250);
    expect(resetAt(`${seconds}.0006`)).toBe(NOW + MINUTE + 1);
    expect(resetAt(`${NOW + MINUTE}.7`)).toBe(NOW + MINUTE + 1);
    for (const wrong of [
      `${seconds}.`,
      `${seconds}.x`,
      `${seconds}x`,
      `x${seconds}`,
      `-${seconds}`,
      '12345678',
      `${NOW}0000`,
    ])
      expect(resetAt(wrong), wrong).toBeUndefined();
  });

  it('is an instant after now, at most a month away', () => {
    expect([0, 1, MONTH, MONTH + 1].map((ms) => resetAt(String(NOW + ms)))).toEqual([
      undefined,
      NOW + 1,
      NOW + MONTH,
      undefined,
    ]);
  });

  it('is measured from Date only when that puts it within the next hour and five minutes, and our clock does not', () => {
    const most = HOUR + 5 * MINUTE;
    const at = (ms: number, date: number) => resetAt(String(NOW + ms), { date: dated(NOW + date) });
    expect(at(2 * HOUR, 2 * HOUR)).toBe(NOW + 2 * HOUR);
    expect(at(2 * HOUR, 2 * HOUR - 1_000)).toBe(NOW + 1_000);
    expect(at(most + HOUR, HOUR)).toBe(NOW + most);
    expect(at(most + HOUR + 1_000, HOUR)).toBe(NOW + most + HOUR + 1_000);
    expect(at(most, HOUR)).toBe(NOW + most);
    expect(at(most + 1, HOUR)).toBe(NOW + 5 * MINUTE + 1);
    expect(at(-HOUR, -2 * HOUR)).toBe(NOW + HOUR);
    expect(at(0, -MINUTE)).toBe(NOW + MINUTE);
    expect(at(-3 * HOUR, -HOUR)).toBeUndefined();
    expect(resetAt(String(NOW + 2 * HOUR))).toBe(NOW + 2 * HOUR);
  });
});

describe('Retry-After', () => {
  it('is in seconds or a date, the first valid one of several', () => {
    expect([retryAt(' 60 '), retryAt(['60', '90']), retryAt(dated(NOW + HOUR))]).toEqual([
      NOW + MINUTE,
      NOW + MINUTE,
      NOW + HOUR,
    ]);
    expect([retryAt('60x'), retryAt('x60'), retryAt('1234567890'), retryAt('999999999'), retryAt([])]).toEqual(
      Array(5).fill(undefined),
    );
    expect(['0', 'later'].map(retryAt)).toEqual([undefined, undefined]);
    expect([retryAt(dated(NOW)), retryAt(String(MONTH / 1_000)), retryAt(String(MONTH / 1_000 + 1))]).toEqual([
      undefined,
      NOW + MONTH,
      undefined,
    ]);
  });
});

it('is the first of several headers', () => {
  expect([oneOf('a'), oneOf(['a', 'b']), oneOf([]), oneOf(undefined)]).toEqual(['a', 'a', undefined, undefined]);
  expect([readDate({ date: [dated(NOW), 'x'] }), readDate({ date: [] })]).toEqual([NOW, undefined]);
});
