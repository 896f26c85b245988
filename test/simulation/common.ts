import fc from 'fast-check';
import type { Day } from '../../src/base/days.ts';

/** The first day of every simulation. */
export const START: Day = '2026-03-02';

/** Secrets of all simulations. */
export const KEYS = { suppression: 's'.repeat(40), ledger: 'l'.repeat(40), hash: 'h'.repeat(40) };

export type Json = Readonly<Record<string, unknown>>;

export const pick = <const T>(...values: T[]) => fc.constantFrom(...values);

/** A value in one of so many cases, else undefined. */
export const once = <T>(inMany: number, value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: inMany - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

export const HOUR = 3_600_000;
export const DAY_MS = 86_400_000;
