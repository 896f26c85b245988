import { addDays, type Day } from '../base/days.ts';
import type { Window } from '../extract/window.ts';
import { levelOf } from '../schema/id-set.ts';

/** Ids that are remembered, about 40 bytes each; of more ids fewer are, the same ones of each window. */
const MAX_IDS = 200_000;

/** What is looked at of a window. */
export interface WindowIds {
  readonly receipt: Pick<Window['receipt'], 'from' | 'to'>;
  readonly state: Pick<Window['state'], 'ranges_inclusive'>;
  readonly files: readonly Pick<Window['files'][number], 'idSample'>[];
}

/** Finds ids that windows of different days share, by samples of them; in bounded memory. */
export class RepeatedIds {
  /** The last day of the window that first had an id, by its hash. */
  readonly #lastDays = new Map<number, Day>();
  #level = 0;

  /** Takes in a window; returns the last day of an earlier window, without a day in common, that has an id of this one. */
  take({ receipt, files, state }: WindowIds): Day | undefined {
    const { from, to } = receipt;
    const last = to > from && state.ranges_inclusive === false ? addDays(to, -1) : to;
    let repeated: Day | undefined;
    for (const { idSample } of files) {
      if (idSample === undefined) continue;
      this.#raise(idSample.level);
      for (const hash of idSample.hashes) {
        if (levelOf(hash) < this.#level) continue;
        const before = this.#lastDays.get(hash);
        if (before === undefined) this.#lastDays.set(hash, last);
        else if (before < from) repeated ??= before;
      }
      while (this.#lastDays.size > MAX_IDS) this.#raise(this.#level + 1);
    }
    return repeated;
  }

  /** From now on only hashes that begin with `level` zero bits are remembered. */
  #raise(level: number): void {
    if (level <= this.#level) return;
    this.#level = level;
    for (const hash of this.#lastDays.keys()) if (levelOf(hash) < level) this.#lastDays.delete(hash);
  }
}
