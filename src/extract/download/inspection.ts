/** Counts bodies of one question that were broken in the same way; the last one that is tried is kept for a person to look at. */
export class Inspection {
  readonly #most: number;
  readonly #keeps: boolean;
  readonly #counts = new Map<string, number>();
  /** As many were broken in the same way as are enough: the question is not asked again. */
  isOver = false;
  /** Where the last one was kept. */
  keptAs: string | undefined;

  /** `most`: as many bodies broken in the same way are enough. `keeps`: whether a body may be kept as it came. */
  constructor(most: number, keeps: boolean) {
    this.#most = most;
    this.#keeps = keeps;
  }

  /** True when the next body may be the one to keep: its bytes are to be written as they come. */
  get isNext(): boolean {
    return this.#keeps && [...this.#counts.values()].some((count) => count >= this.#most - 1);
  }

  /** Counts a broken body; true when it was one too many. */
  isEnough(how: string): boolean {
    const count = (this.#counts.get(how) ?? 0) + 1;
    this.#counts.set(how, count);
    this.isOver = count >= this.#most;
    return this.isOver;
  }
}
