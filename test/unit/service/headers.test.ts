import { describe, expect, it } from 'vitest';
import { readDate, readLimits } from '../../../src/service/http/headers.ts';
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
    ['a reset that is over', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW - 60_000) }, 0, undefined],
    ['a reset right now', { 'x-ratelimit-reset': String(NOW) }, undefined, undefined],
    ['a reset in a century', { 'x-ratelimit-reset': String(NOW + 100 * 365 * 86_400_000) }, undefined, undefined],
    ['seconds from now, which nobody promised', { 'x-ratelimit-reset': '1200' }, undefined, undefined],
    ['negative, fractional, empty', { 'x-ratelimit-remaining': '-1', 'x-ratelimit-reset': '' }, undefined, undefined],
    ['a cycle alone', { 'x-ratelimit-limit': '1h' }, undefined, undefined],
    ['nothing', {}, undefined, undefined],
  ];
  it.each(rows)('%s', (_name, headers, remaining, resetAt) => {
    expect(readLimits(headers, NOW)).toMatchObject({ remaining, resetAt });
  });

  it('a reset by a clock two hours ahead or behind is read by its distance from the service’s own Date', () => {
    for (const skew of [-7_200_000, 7_200_000]) {
      const headers = { date: new Date(NOW + skew).toUTCString(), 'x-ratelimit-reset': String(IN_20_MIN + skew) };
      expect(readLimits(headers, NOW).resetAt).toBe(IN_20_MIN);
    }
  });

  it('a wrong Date does not spoil a reset that makes sense', () => {
    const headers = { date: new Date(NOW + 7_200_000).toUTCString(), 'x-ratelimit-reset': String(IN_20_MIN) };
    expect(readLimits(headers, NOW).resetAt).toBe(IN_20_MIN);
  });

  it.each([
    ['120', NOW + 120_000],
    [new Date(NOW + 60_000).toUTCString(), NOW + 60_000],
    ['0', undefined],
    ['later', undefined],
  ])('Retry-After %s', (text, at) => {
    expect(readLimits({ 'retry-after': text }, NOW).retryAt).toBe(at);
  });
});

it('Date is read to the second, and absent where it is none', () => {
  expect(readDate({ date: 'Tue, 20 Jan 2026 03:00:00 GMT' })).toBe(NOW);
  expect(readDate({ date: 'noon' })).toBeUndefined();
  expect(readDate({})).toBeUndefined();
});
