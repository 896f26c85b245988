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
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

const TWO_32 = 2 ** 32;

/** A hash as a number in [0, 1). */
export const unit = (hash: number): number => hash / TWO_32;

export const hex8 = (hash: number): string => hash.toString(16).padStart(8, '0');

/** Draws a text by the bits above the low 8, which decide whether a cell has a value. */
export const oneOf = (texts: readonly string[], hash: number): string => texts[(hash >>> 8) % texts.length];
