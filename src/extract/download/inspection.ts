/** Counts the bodies of one export that were malformed in the same way; the last one is kept so that a person can inspect it. */
export class Inspection {
  readonly #most: number;
  readonly #keeps: boolean;
  readonly #counts = new Map<string, number>();
  /** True when the limit is reached: the export is not requested again. */
  isOver = false;
  /** Path of the kept body. */
  keptAs: string | undefined;

  /** `most`: limit of bodies malformed in the same way. `keeps`: whether a body may be kept with all its columns. */
  constructor(most: number, keeps: boolean) {
    this.#most = most;
    this.#keeps = keeps;
  }

  /** True when the next body may be the one to keep: its bytes are written unchanged. */
  get isNext(): boolean {
    return this.#keeps && [...this.#counts.values()].some((count) => count >= this.#most - 1);
  }

  /** Counts a malformed body; true when the limit is reached. */
  isEnough(how: string): boolean {
    const count = (this.#counts.get(how) ?? 0) + 1;
    this.#counts.set(how, count);
    this.isOver = count >= this.#most;
    return this.isOver;
  }
}
