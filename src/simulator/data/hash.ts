/** Mixes two numbers into 32 bits; for a fixed `a`, different `b` have different results. */
export function mix(a: number, b: number): number {
  let h = Math.imul((a ^ ((b + 0x9e3779b9) | 0)) | 0, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  h = Math.imul(h, 0x27d4eb2f);
  return (h ^ (h >>> 15)) >>> 0;
}

/** FNV-1a over UTF-16 code units. */
export function hashText(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

const TWO_32 = 2 ** 32;

/** A hash as a number in [0, 1). */
export const unit = (hash: number): number => hash / TWO_32;

export const hex8 = (h: number): string => h.toString(16).padStart(8, '0');
