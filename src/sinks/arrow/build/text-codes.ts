/** Numbers the distinct texts of a column from 0 on, in the order in which they come. */
export class TextCodes {
  readonly #texts: Uint8Array[] = [];
  /** Numbers of the texts of each hash. */
  readonly #codes = new Map<number, number[]>();

  codeOf(bytes: Uint8Array, start: number, end: number): number {
    const hash = hashOf(bytes, start, end);
    const codes = this.#codes.get(hash);
    if (codes !== undefined) {
      for (const code of codes) if (isSame(this.#texts[code], bytes, start, end)) return code;
    }
    const code = this.#texts.push(bytes.slice(start, end)) - 1;
    this.#codes.set(hash, [...(codes ?? []), code]);
    return code;
  }

  /** In the order of their numbers. */
  get texts(): readonly Uint8Array[] {
    return this.#texts;
  }

  clear(): void {
    this.#texts.length = 0;
    this.#codes.clear();
  }
}

/** FNV-1a, as assembly/columns.ts has it. */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash;
}

function isSame(text: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text[i] !== bytes[start + i]) return false;
  return true;
}
