import type { Window } from '../../extract/window.ts';
import { HASH_STRIDE, type HashedRows } from '../rows/keys/hashed-rows.ts';
import { KeyCounts } from '../rows/keys/key-counts.ts';
import { keysNeedWork, WindowKeysBuilder } from '../rows/keys/window-keys.ts';
import type { KeyedBlock } from './build/task.ts';

/** What only the whole window tells of the rows of a block. */
export type BlockRows = Pick<KeyedBlock, 'ordinals' | 'reserved' | 'sent'>;

/** By base id and date the rows that a window sent; on another date an id is another row (S13). */
export type SentRows = KeyCounts;

/** True when the next window may hold rows of this one again. */
export function isOpen({ receipt: { to, covers_to } }: Window): boolean {
  return covers_to === null || to > covers_to;
}

/** Collects the hashes of a window, block by block in order. */
export class WindowRows {
  readonly #keys: WindowKeysBuilder;
  readonly #before: SentRows | undefined;
  readonly #sent = new Map<number, Uint8Array>();
  #block = 0;
  /** Of this window; given where the next one may hold them again. */
  readonly sentRows: SentRows | undefined;

  /** `before`: what the window before sent, if this one may hold it again. */
  constructor(window: Window, before: SentRows | undefined) {
    const rows = window.files.reduce((sum, file) => sum + file.rows, 0);
    const keys = keysNeedWork(window.files);
    this.#keys = new WindowKeysBuilder(keys ? rows : 0, { events: false, keys });
    this.#before = before;
    this.sentRows = isOpen(window) ? new KeyCounts(rows) : undefined;
  }

  add(hashed: HashedRows): void {
    this.#keys.add(hashed);
    const hashes = new Uint32Array(hashed.buffer, 0, hashed.rows * HASH_STRIDE);
    for (let i = 0; i < hashed.rows; i++) {
      const k = i * HASH_STRIDE;
      if (this.#before?.has(hashes, k)) this.#setSent(hashed.rows, i);
      this.sentRows?.add(hashes, k);
    }
    this.#block++;
  }

  /** Ends collecting; what was sent before is freed. */
  finish(): void {
    this.#keys.finish();
    this.#before?.free();
  }

  of(block: number): BlockRows {
    const ordinals = this.#keys.ordinals.get(block);
    const { reserved } = this.#keys;
    return {
      ordinals,
      reserved: ordinals !== undefined && reserved.size > 0 ? reserved : undefined,
      sent: this.#sent.get(block),
    };
  }

  #setSent(rows: number, row: number): void {
    const sent = this.#sent.get(this.#block) ?? new Uint8Array(rows);
    this.#sent.set(this.#block, sent);
    sent[row] = 1;
  }
}
