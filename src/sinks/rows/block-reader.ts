import { closeSync, openSync } from 'node:fs';
import { defect } from '../../base/errors.ts';
import { RowTokenizer } from '../../csv/tokenizer.ts';
import type { RowMemory } from './block-memory.ts';
import type { RowBlock } from './row-blocks.ts';

/** Reads the rows of one file, block by block. */
export class BlockReader {
  readonly memory: RowMemory;
  /** Has read the current row. */
  readonly tokenizer: RowTokenizer;
  readonly #file: number;
  #from = 0;
  #end = 0;

  constructor(path: string, memory: RowMemory) {
    this.#file = openSync(path, 'r');
    this.memory = memory;
    this.tokenizer = new RowTokenizer(memory.simd);
  }

  /** Reads a block into the memory. */
  load({ from, to }: RowBlock): void {
    this.#from = from;
    this.#end = this.memory.read(this.#file, from, to);
  }

  /** Calls `each` after the tokenizer has read a row of the current block; returns how many it has. `each` may grow the memory. */
  rows(each: (bytes: Uint8Array<ArrayBuffer>, row: number) => void): number {
    const { memory, tokenizer } = this;
    const end = this.#end;
    let rows = 0;
    for (let at = memory.start; at < end; rows++) {
      const next = tokenizer.next(memory.bytes, at, end, true);
      if (next < 0) throw defect(`Row ${rows + 1} behind byte ${this.#from} of a verified export cannot be read.`);
      each(memory.bytes, rows);
      at = next;
    }
    return rows;
  }

  close(): void {
    closeSync(this.#file);
  }
}
