/** Random values that a seed repeats. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 0x9e3779b1) >>> 0;
    for (let i = 0; i < 4; i++) this.unit();
  }

  /** In [0, 1). */
  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.unit() * (most - least + 1));
  }

  chance(share: number): boolean {
    return this.unit() < share;
  }

  pick<const T>(values: readonly T[]): T {
    return values[this.int(0, values.length - 1)];
  }

  some<T>(values: readonly T[], most: number): T[] {
    return Array.from({ length: this.int(0, most) }, () => this.pick(values));
  }
}
