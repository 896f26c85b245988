import type { Random } from '../base/runtime.ts';

/** Mixes two numbers into 32 bits; for a fixed `a`, different `b` have different results. */
export function mix(a: number, b: number): number {
  let hash = Math.imul((a ^ ((b + 0x9e3779b9) | 0)) | 0, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x27d4eb2f);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** FNV-1a over UTF-16 code units. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Draws one number after the other; the same two seeds always give the same numbers. */
export function seededRandom(a: number, b: number): Random {
  let hash = mix(a, b);
  return () => {
    hash = mix(hash, 1);
    return hash / 2 ** 32;
  };
}

/** Draws a whole number from 0 to below `count`. */
export const drawNumber = (random: Random, count: number): number => Math.floor(random() * count);

export const drawFrom = <T>(random: Random, values: readonly T[]): T => values[drawNumber(random, values.length)];

export const hexOf = (hash: number): string => hash.toString(16).padStart(8, '0');
