import { BlockMemory } from '../../rows/block-memory.ts';
import type { Staging } from '../encode/line-buffer.ts';
import type { RecordEncoder } from '../encode/record-encoder.ts';

const STAGING_BYTES = 1 << 18;
/** Small rows that the staging memory holds at least, however much room each is given for a wide header. */
const STAGING_ROWS = 4;

/** With SIMD the memory holds in front of the block the tables of the streams and the staging memory of the lines. */
export class StagedMemory extends BlockMemory {
  readonly #from: number;
  readonly #to: number;

  constructor(encoders: readonly RecordEncoder[]) {
    const from = encoders.reduce((sum, encoder) => sum + encoder.tableBytes, 0);
    const to = from + Math.max(STAGING_BYTES, ...encoders.map(({ room }) => room * STAGING_ROWS));
    super(to);
    this.#from = from;
    this.#to = to;
    let at = 0;
    for (const encoder of encoders) {
      // Stryker disable next-line ConditionalExpression,EqualityOperator,CallExpression: without SIMD TypeScript writes the same bytes
      if (this.simd !== undefined) encoder.useMemory(this.simd, at);
      at += encoder.tableBytes;
    }
  }

  /** As long as no larger block is read. */
  get staging(): Staging | undefined {
    if (this.simd === undefined) return undefined;
    return { bytes: this.bytes, from: this.#from, to: this.#to };
  }
}
