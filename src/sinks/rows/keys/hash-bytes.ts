/** Three words of a hash of bytes, where `hashBytes` leaves them: one shared array, so that no row costs an object. */
export const WORDS = new Uint32Array(3);

/** Hashes [start, end) to 96 bits, well mixed: three lanes over the bytes, each finished with the others. */
export function hashBytes(b: Uint8Array, start: number, end: number): void {
  let x = 0x811c9dc5 ^ (end - start);
  let y = 0x9e3779b9;
  let z = 0x85ebca77;
  for (let i = start; i < end; i++) {
    const c = b[i];
    x = Math.imul(x ^ c, 0x01000193);
    y = Math.imul(y + c, 0x2c1b3c6d);
    y ^= y >>> 15;
    z = (Math.imul(z, 0x297a2d39) + c) ^ (z >>> 13);
  }
  x = mix(x ^ Math.imul(y, 0x27d4eb2f) ^ z);
  y = mix(y + x);
  z = mix(z ^ (y + 0x165667b1));
  WORDS[0] = x;
  WORDS[1] = y;
  WORDS[2] = z;
}

function mix(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
