import type * as Crypto from 'node:crypto';
import { createRequire } from 'node:module';
import type { Random } from '../../../src/base/random.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { current } from './process.ts';

/** All random numbers of a simulation come from its seed. */
const real: typeof Crypto = createRequire(import.meta.url)('node:crypto');
const realRandom = Math.random;
let random = new SeededRandom(1);

export function seedChance(seed: number): void {
  random = new SeededRandom(seed);
}

/** For the order of events: its own generator, so that it does not depend on the program's random numbers. */
export function randomOf(seed: number): Random {
  const own = new SeededRandom(seed);
  return () => own.unit();
}

const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => random.int(0, 255)));

export const randomText = (length: number): string => bytes(length).toString('hex').slice(0, length);

/** Replaces `Math.random`. */
export const simulatedRandom = (): number => (current() === undefined ? realRandom() : random.unit());

/** Replaces `node:crypto`. */
export const simulatedCrypto = {
  ...real,
  randomBytes: (length: number) => (current() === undefined ? real.randomBytes(length) : bytes(length)),
  randomUUID: () => {
    if (current() === undefined) return real.randomUUID();
    const text = bytes(16).toString('hex');
    return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  },
};
