// This folder: what the keys of rows need beyond the row itself: repeated keys, the row of an event.

import type { SpoolFile } from '../../../extract/window.ts';
import { EventRows } from './event-rows.ts';
import { HASH_STRIDE, type HashedRows, KEY_AT } from './hashed-rows.ts';
import { KeyCounts } from './key-counts.ts';

/** What only the whole window tells about the keys of its rows; blocks are numbered from 0 in the order of the window. */
export interface WindowKeys {
  /** Per row of the block: 1 where `event_logs` has the row for its event; undefined when no stream needs it. */
  eventsOf(block: number): Uint8Array | undefined;
  /** Only blocks in which a key repeats an earlier one. Per row: how many rows so far, it included, have its key. */
  readonly ordinals: ReadonlyMap<number, Uint32Array>;
  /** Ids of the form `base#n` that the window itself holds: base → every n, rising. */
  readonly reserved: ReadonlyMap<string, readonly number[]>;
}

const NUMBERED = /^(.*)#([1-9][0-9]{0,17})$/s;

/** True when the rows of a window's files may not all have their id as their key. */
export const keysNeedWork = (files: readonly SpoolFile[]): boolean =>
  files.length > 1 || files.some((file) => file.keysNeedWork);

/** The number in the key of the `ordinal`-th row of a base id; `reserved` numbers are skipped. */
export function keyNumber(ordinal: number, reserved: readonly number[] | undefined): number {
  let number = ordinal;
  for (const one of reserved ?? []) if (one <= number) number++;
  return number;
}

/** Collects the hashes of a window, block by block in order. */
export class WindowKeysBuilder implements WindowKeys {
  readonly ordinals = new Map<number, Uint32Array>();
  readonly reserved = new Map<string, number[]>();
  #events: EventRows | undefined;
  #keys: KeyCounts | undefined;
  #chosen: Uint8Array | undefined;
  readonly #starts: number[] = [];
  #row = 0;

  constructor(rows: number, needs: { readonly events: boolean; readonly keys: boolean }) {
    this.#events = needs.events ? new EventRows(rows) : undefined;
    this.#keys = needs.keys ? new KeyCounts(rows) : undefined;
  }

  eventsOf(block: number): Uint8Array | undefined {
    return this.#chosen?.slice(this.#starts[block], this.#starts[block + 1]);
  }

  /** Ends collecting and frees the hash tables. */
  finish(): WindowKeys {
    this.#chosen = this.#events?.chosen;
    this.#events?.free();
    this.#keys?.free();
    this.#events = undefined;
    this.#keys = undefined;
    return this;
  }

  add({ rows, buffer, numbered }: HashedRows): void {
    const hashes = new Uint32Array(buffer, 0, rows * HASH_STRIDE);
    this.#starts.push(this.#row);
    for (let i = 0; i < rows; i++) {
      const k = i * HASH_STRIDE;
      this.#events?.add(hashes, k, this.#row + i);
      if (this.#keys !== undefined) this.#setOrdinal(this.#keys.add(hashes, k + KEY_AT), i, rows);
    }
    if (this.#keys !== undefined) for (const id of numbered) this.#reserve(id);
    this.#row += rows;
  }

  #reserve(id: string): void {
    const [, base, digits] = NUMBERED.exec(id) ?? [];
    const number = Number(digits);
    if (base === undefined || number < 2) return;
    const numbers = this.reserved.get(base) ?? [];
    if (!numbers.includes(number))
      this.reserved.set(
        base,
        [...numbers, number].sort((a, b) => a - b),
      );
  }

  #setOrdinal(ordinal: number, row: number, rows: number): void {
    if (ordinal === 1) return;
    const block = this.#starts.length - 1;
    let ordinals = this.ordinals.get(block);
    if (ordinals === undefined) {
      ordinals = new Uint32Array(rows).fill(1);
      this.ordinals.set(block, ordinals);
    }
    ordinals[row] = ordinal;
  }
}
