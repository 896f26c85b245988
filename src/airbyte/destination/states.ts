import type { ListedId } from '../../erasure/list.ts';
import type { StateStats } from '../protocol/messages.ts';

/** Writes a state to the platform: the state's text, and the counts of its rows. */
type EmitState = (text: string, stats: Required<StateStats>) => Promise<void>;

interface QueuedState {
  /** Undefined for a state of all streams. */
  readonly streamNumber: number | undefined;
  readonly text: string;
}

interface QueuedRow {
  readonly streamNumber: number;
  /** Undefined for a row that was refused. */
  readonly listed: ListedId | undefined;
}

/**
 * The rows of a sync and the states between them, in order. A state may be emitted once every row before it is decided.
 * Memory: some 50 bytes a row, and the texts of the states.
 */
export class StateQueue {
  readonly #emit: EmitState;
  readonly #steps: (QueuedRow | QueuedState)[] = [];
  #at = 0;
  /** Counts of the rows before `#at` that no state has reported yet, by stream. */
  readonly #unreported = new Map<number, { recordCount: number; rejectedRecordCount: number }>();
  #emitting: Promise<void> = Promise.resolve();

  constructor(emit: EmitState) {
    this.#emit = emit;
  }

  addRow(streamNumber: number, listed: ListedId | undefined): void {
    this.#steps.push({ streamNumber, listed });
  }

  addState(streamNumber: number | undefined, text: string): void {
    this.#steps.push({ streamNumber, text });
  }

  /** Emits the states before which every row is decided. */
  release(): void {
    for (; this.#at < this.#steps.length; this.#at++) {
      const step = this.#steps[this.#at];
      if ('text' in step) {
        this.#emitState(step);
        // The memory of its text is freed.
        this.#steps[this.#at] = { streamNumber: undefined, text: '' };
        continue;
      }
      const { streamNumber, listed } = step;
      const decision = listed === undefined || listed.isWithdrawn ? 'rejected' : listed.decision;
      if (decision === undefined || decision === 'undecided') return;
      const counts = this.#unreported.get(streamNumber) ?? { recordCount: 0, rejectedRecordCount: 0 };
      counts[decision === 'done' ? 'recordCount' : 'rejectedRecordCount']++;
      this.#unreported.set(streamNumber, counts);
    }
  }

  /** Resolves when every released state has been emitted; rejects when one could not. */
  emitted(): Promise<void> {
    return this.#emitting;
  }

  #emitState({ streamNumber, text }: QueuedState): void {
    const stats = { recordCount: 0, rejectedRecordCount: 0 };
    for (const number of streamNumber === undefined ? [...this.#unreported.keys()] : [streamNumber]) {
      const counts = this.#unreported.get(number);
      stats.recordCount += counts?.recordCount ?? 0;
      stats.rejectedRecordCount += counts?.rejectedRecordCount ?? 0;
      this.#unreported.delete(number);
    }
    this.#emitting = this.#emitting.then(() => this.#emit(text, stats));
    // `emitted` rejects all the same; this only keeps the rejection from being called unhandled.
    this.#emitting.catch(() => {});
  }
}
