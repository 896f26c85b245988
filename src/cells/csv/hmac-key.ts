import type { CsvMemory } from './csv-memory.ts';
import { BLOCKS_AT, INNER_AT, OUTER_AT, SHA_BLOCK_BYTES, TABLES_AT } from './layout.ts';

/** The pads of HMAC, each joined by XOR with every byte of the key's block. */
export const INNER_PAD = 0x36;
export const OUTER_PAD = 0x5c;
const ROUNDS = 64;
const STATE_WORDS = 8;
const PRIMES = firstPrimes(ROUNDS);
const CONSTANTS = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));
const INITIAL_STATE = Int32Array.from(PRIMES.slice(0, STATE_WORDS), (prime) => fraction(Math.sqrt(prime)));

/**
 * Writes the tables by which assembly/edit.ts hashes under a key. `block`: the key as HMAC makes it a block of SHA-256.
 */
export function setKey({ bytes, functions }: CsvMemory, block: Uint8Array): void {
  bytes.set(new Uint8Array(CONSTANTS.buffer), TABLES_AT);
  for (const [isOuter, at, pad] of [
    [false, INNER_AT, INNER_PAD],
    [true, OUTER_AT, OUTER_PAD],
  ] as const) {
    bytes.set(new Uint8Array(INITIAL_STATE.buffer), at);
    for (let i = 0; i < SHA_BLOCK_BYTES; i++) bytes[BLOCKS_AT + i] = block[i] ^ pad;
    functions.prepareKey(isOuter);
  }
}

/** The first 32 bits of the fraction of a number; the constants of SHA-256 are such bits of roots of primes. */
function fraction(value: number): number {
  return ((value % 1) * 2 ** 32) | 0;
}

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let number = 2; primes.length < count; number++) {
    if (primes.every((prime) => number % prime !== 0)) primes.push(number);
  }
  return primes;
}
