import { Scratch } from '../../base/scratch.ts';
import { OWN_EVENT, SURVEY_STRIDE, type Surveyed } from './task.ts';

/** Slots beyond the rows, so that looking one up stays short: 15 bytes a row in all. */
const LOAD = 0.8;
/** Numbers per slot. */
const SLOT = 3;
const SLOT_BYTES = SLOT * Uint32Array.BYTES_PER_ELEMENT;
/** Ranks from here on count as this one. */
const MOST_RANK = 0xffff;

/** For each event of a window the row that stands for it: the one of the lowest item position, the first of equals. */
export class EventRows {
  /** Per row of the window: 1 where it stands for its event. */
  readonly chosen: Uint8Array;
  /** Half of the event's hash; a quarter of it beside the rank of the row chosen; that row, from 1. */
  readonly #slots: Uint32Array;
  readonly #scratch: Scratch;
  readonly #capacity: number;

  /** `rows`: of the window; at most 2^32 - 2. */
  constructor(rows: number) {
    this.chosen = new Uint8Array(rows);
    this.#capacity = Math.ceil(rows / LOAD) + 1;
    this.#scratch = new Scratch(this.#capacity * SLOT_BYTES);
    this.#slots = new Uint32Array(this.#scratch.buffer, 0, this.#capacity * SLOT);
  }

  /** Gives the table back. */
  end(): void {
    this.#scratch.free();
  }

  /** Takes in row `row`, described by the survey's numbers from `k` on. */
  add(survey: Uint32Array, k: number, row: number): void {
    const [high, low, position] = [survey[k], survey[k + 1], survey[k + 2]];
    if (position === OWN_EVENT) {
      this.chosen[row] = 1;
      return;
    }
    const s = this.#find(high, low);
    const rank = Math.min(position, MOST_RANK);
    if (this.#slots[s + 2] !== 0) {
      if (rank >= (this.#slots[s + 1] & MOST_RANK)) return;
      this.chosen[this.#slots[s + 2] - 1] = 0;
    }
    this.#slots[s] = low;
    this.#slots[s + 1] = (high << 16) | rank;
    this.#slots[s + 2] = row + 1;
    this.chosen[row] = 1;
  }

  /** Where the event is, or where it would be. The first bits of its hash are the place it is looked for from. */
  #find(high: number, low: number): number {
    const slots = this.#slots;
    const last = (this.#capacity - 1) * SLOT;
    let s = Math.floor((high / 2 ** 32) * this.#capacity) * SLOT;
    while (slots[s + 2] !== 0 && (slots[s] !== low || slots[s + 1] >>> 16 !== (high & 0xffff))) {
      s = s === last ? 0 : s + SLOT;
    }
    return s;
  }
}

/** Counts how often each key has been seen in a window so far. */
export class KeyCounts {
  /** Two thirds of the key's hash, and the count. */
  readonly #slots: Uint32Array;
  readonly #scratch: Scratch;
  readonly #capacity: number;

  constructor(rows: number) {
    this.#capacity = Math.ceil(rows / LOAD) + 1;
    this.#scratch = new Scratch(this.#capacity * SLOT_BYTES);
    this.#slots = new Uint32Array(this.#scratch.buffer, 0, this.#capacity * SLOT);
  }

  /** Gives the table back. */
  end(): void {
    this.#scratch.free();
  }

  /** How many rows, this one included, have had the key whose hash stands at `k`. */
  add(survey: Uint32Array, k: number): number {
    const [a, b, c] = [survey[k], survey[k + 1], survey[k + 2]];
    const slots = this.#slots;
    const last = (this.#capacity - 1) * SLOT;
    let s = Math.floor((a / 2 ** 32) * this.#capacity) * SLOT;
    while (slots[s + 2] !== 0 && (slots[s] !== b || slots[s + 1] !== c)) s = s === last ? 0 : s + SLOT;
    slots[s] = b;
    slots[s + 1] = c;
    return ++slots[s + 2];
  }
}

/** What surveying a window found, by the number of its parts. */
export interface Survey {
  /** Per row of the part: 1 where it stands for its event; undefined when nobody asked. */
  eventsOf(part: number): Uint8Array | undefined;
  /** Only parts in which a key repeats an earlier one. */
  readonly ordinals: ReadonlyMap<number, Uint32Array>;
  /** Numbers that are part of somebody's own id, by what stands before `#` there; in rising order. */
  readonly taken: ReadonlyMap<string, readonly number[]>;
}

const NUMBERED = /^(.*)#([1-9][0-9]{0,17})$/s;

/** The number that the `ordinal`-th row of a key gets, those skipped that others have as part of their id. */
export function numberOf(ordinal: number, taken: readonly number[] | undefined): number {
  let number = ordinal;
  for (const one of taken ?? []) if (one <= number) number++;
  return number;
}

/** Puts the surveys of a window's parts together, in order. */
export class SurveyBuilder implements Survey {
  readonly ordinals = new Map<number, Uint32Array>();
  readonly taken = new Map<string, number[]>();
  #events: EventRows | undefined;
  #keys: KeyCounts | undefined;
  #chosen: Uint8Array | undefined;
  readonly #starts: number[] = [];
  #row = 0;

  constructor(rows: number, wants: { readonly events: boolean; readonly keys: boolean }) {
    this.#events = wants.events ? new EventRows(rows) : undefined;
    this.#keys = wants.keys ? new KeyCounts(rows) : undefined;
  }

  eventsOf(part: number): Uint8Array | undefined {
    return this.#chosen?.slice(this.#starts[part], this.#starts[part + 1]);
  }

  /** Lets go of the tables. */
  finish(): Survey {
    this.#chosen = this.#events?.chosen;
    this.#events?.end();
    this.#keys?.end();
    this.#events = undefined;
    this.#keys = undefined;
    return this;
  }

  add({ rows, buffer, numbered }: Surveyed): void {
    const survey = new Uint32Array(buffer, 0, rows * SURVEY_STRIDE);
    this.#starts.push(this.#row);
    for (let i = 0; i < rows; i++) {
      const k = i * SURVEY_STRIDE;
      this.#events?.add(survey, k, this.#row + i);
      if (this.#keys !== undefined) this.#note(this.#keys.add(survey, k + 3), i, rows);
    }
    if (this.#keys !== undefined) for (const id of numbered) this.#take(id);
    this.#row += rows;
  }

  #take(id: string): void {
    const [, base, digits] = NUMBERED.exec(id) ?? [];
    const number = Number(digits);
    if (base === undefined || number < 2) return;
    const numbers = this.taken.get(base) ?? [];
    if (!numbers.includes(number))
      this.taken.set(
        base,
        [...numbers, number].sort((a, b) => a - b),
      );
  }

  #note(ordinal: number, row: number, rows: number): void {
    if (ordinal === 1) return;
    const part = this.#starts.length - 1;
    let ordinals = this.ordinals.get(part);
    if (ordinals === undefined) {
      ordinals = new Uint32Array(rows).fill(1);
      this.ordinals.set(part, ordinals);
    }
    ordinals[row] = ordinal;
  }
}
