/** Counts bodies of one question that were broken in the same way; the last one that is tried is kept for a person to look at. */
export class Inspection {
  readonly #most: number;
  readonly #counts = new Map<string, number>();
  /** Where the body was kept; then the question is not asked again. */
  keptAs: string | undefined;

  /** `most`: as many bodies broken in the same way are enough. */
  constructor(most: number) {
    this.#most = most;
  }

  /** True when the next body may be the one to keep: its bytes are to be written as they come. */
  get isNext(): boolean {
    return [...this.#counts.values()].some((count) => count >= this.#most - 1);
  }

  /** Counts a broken body; true when it is to be kept. */
  isEnough(how: string): boolean {
    const count = (this.#counts.get(how) ?? 0) + 1;
    this.#counts.set(how, count);
    return count >= this.#most;
  }
}
