import type { Day } from '../../base/days.ts';
import { HASH_END } from '../../cells/columns/id-hashes.ts';
import { lastContained } from '../../extract/plan/days.ts';
import type { Window } from '../../extract/window.ts';

/**
 * Maximum number of remembered ids, about 40 bytes each. Of more a sample is kept, by the same rule for each window.
 */
const MAX_REMEMBERED_IDS = 200_000;

export interface WindowIds {
  readonly receipt: Pick<Window['receipt'], 'from' | 'to'>;
  readonly state: Pick<Window['state'], 'ranges_inclusive'>;
  readonly files: readonly Pick<Window['files'][number], 'idSample'>[];
}

/** Finds ids that windows of different days share, by samples of them; in bounded memory. */
export class RepeatedIds {
  /** The last day of the window that first had an id, by its hash. */
  readonly #lastDays = new Map<number, Day>();
  #below = HASH_END;

  /**
   * Remembers a window's ids; returns the last day of an earlier one that has one of them and no day in common with it.
   */
  add({ receipt, files, state }: WindowIds): Day | undefined {
    const { from, to } = receipt;
    // While the end rule is unknown, `to` counts as contained: a day that windows share is no repetition.
    const last = lastContained({ from, to }, state.ranges_inclusive === false);
    let repeated: Day | undefined;
    for (const { idSample } of files) {
      if (idSample === undefined) continue;
      this.#lower(idSample.below);
      for (const hash of idSample.hashes) {
        if (hash >= this.#below) break;
        const before = this.#lastDays.get(hash);
        if (before === undefined) this.#lastDays.set(hash, last);
        else if (before < from) repeated ??= before;
      }
      while (this.#lastDays.size > MAX_REMEMBERED_IDS) this.#lower(this.#below / 2);
    }
    return repeated;
  }

  /** Limits the sample to hashes below `below`. */
  #lower(below: number): void {
    if (below >= this.#below) return;
    this.#below = below;
    for (const hash of this.#lastDays.keys()) if (hash >= below) this.#lastDays.delete(hash);
  }
}
