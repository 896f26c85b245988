import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { doublingPauses, retry } from '../../../src/base/retry.ts';

const BOUNDS = { firstPauseMs: 10, maxPauseMs: 40 };
const pausesOf = (waitMs = 100) => doublingPauses(waitMs, BOUNDS);

/** A clock that is set back by a day with each pause, and the pauses. */
function jumpingClock() {
  const pauses: number[] = [];
  let time = 1e12;
  const sleep = async (ms: number) => {
    pauses.push(ms);
    time -= 86_400_000;
  };
  const clock: Clock = { now: () => time, sleep, after: () => () => {} };
  return { clock, pauses };
}

describe('a wait for what others use', () => {
  it('has pauses that double up to a limit and come to the whole wait, however the clock jumps', async () => {
    const { clock, pauses } = jumpingClock();
    let attempts = 0;
    expect(
      await retry(
        { pauses: pausesOf(), clock },
        () => ++attempts,
        () => true,
      ),
    ).toBe(5);
    expect(pauses).toEqual([10, 20, 40, 30]);
  });

  it('ends with the first value that is not to be repeated, and makes no pause where none is allowed', async () => {
    const { clock, pauses } = jumpingClock();
    const attempt = () => pauses.length;
    expect(await retry({ pauses: pausesOf(), clock }, attempt, (value, attempts) => value < 2 && attempts < 9)).toBe(2);
    expect(pauses).toEqual([10, 20]);
    expect(await retry({ pauses: pausesOf(), clock }, attempt, () => false)).toBe(2);
    expect(await retry({ pauses: pausesOf(0), clock }, attempt, () => true)).toBe(2);
    expect(pauses).toEqual([10, 20]);
  });
});
