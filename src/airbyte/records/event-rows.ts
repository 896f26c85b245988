import type { RowKey } from './row-key.ts';

/** Chooses the row that stands for each event: the first one of the lowest item position. */
export class EventRows {
  /** For each row of the day 1 if it stands for its event. */
  readonly #chosen: Uint8Array;
  readonly #positions: Float64Array;
  /** The chosen row by event. */
  readonly #rowOfEvent = new Map<string, number>();
  /** Number of rows that were added. */
  #count = 0;

  /** `rows` is the number of rows of the day. */
  constructor(rows: number) {
    this.#chosen = new Uint8Array(rows);
    this.#positions = new Float64Array(rows);
  }

  isChosen(row: number): boolean {
    return this.#chosen[row] === 1;
  }

  /** Adds the next row. One that names no event is an event of its own. */
  add({ event, position }: RowKey): void {
    const row = this.#count++;
    if (event !== undefined) {
      const id = event.latin1;
      const before = this.#rowOfEvent.get(id);
      if (before !== undefined) {
        if (position >= this.#positions[before]) return;
        this.#chosen[before] = 0;
      }
      this.#rowOfEvent.set(id, row);
      this.#positions[row] = position;
    }
    this.#chosen[row] = 1;
  }
}
