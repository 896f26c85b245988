import type { ListedId } from '../../erasure/list.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';

/** Counts of the rows before a state that no earlier state has reported. */
export interface DestinationStats {
  readonly recordCount: number;
  readonly rejectedRecordCount: number;
}

/** Writes a state to the platform: the state's text, and the counts of its rows. */
type EmitState = (text: string, stats: DestinationStats) => Promise<void>;

interface QueuedState {
  readonly kind: 'state';
  /** Undefined for a state of all streams. */
  readonly stream: ConfiguredStream | undefined;
  readonly text: string;
}

interface QueuedRow {
  readonly kind: 'row';
  readonly stream: ConfiguredStream;
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
  /** Index of the first step that is not released. */
  #next = 0;
  /** Counts of the released rows that no state has reported yet. */
  readonly #unreported = new Map<ConfiguredStream, { recordCount: number; rejectedRecordCount: number }>();
  #emitting: Promise<void> = Promise.resolve();

  constructor(emit: EmitState) {
    this.#emit = emit;
  }

  addRow(stream: ConfiguredStream, listed: ListedId | undefined): void {
    this.#steps.push({ kind: 'row', stream, listed });
  }

  addState(stream: ConfiguredStream | undefined, text: string): void {
    this.#steps.push({ kind: 'state', stream, text });
  }

  /** Emits the states before which every row is decided. */
  release(): void {
    while (this.#next < this.#steps.length && this.#releaseStep(this.#steps[this.#next])) this.#next++;
    // The released steps are dropped once they are the larger part, so that few calls move the others.
    if (2 * this.#next < this.#steps.length) return;
    this.#steps.splice(0, this.#next);
    this.#next = 0;
  }

  /** Resolves when every released state has been emitted; rejects when one could not. */
  emitted(): Promise<void> {
    return this.#emitting;
  }

  /** Emits a state or counts a row; false for a row that is not decided. */
  #releaseStep(step: QueuedRow | QueuedState): boolean {
    if (step.kind === 'state') {
      this.#emitState(step);
      return true;
    }
    const { stream, listed } = step;
    const decision = listed === undefined || listed.isWithdrawn ? 'rejected' : listed.decision;
    if (decision === undefined || decision === 'undecided') return false;
    const counts = this.#unreported.get(stream) ?? { recordCount: 0, rejectedRecordCount: 0 };
    counts[decision === 'done' ? 'recordCount' : 'rejectedRecordCount']++;
    this.#unreported.set(stream, counts);
    return true;
  }

  #emitState({ stream, text }: QueuedState): void {
    const stats = { recordCount: 0, rejectedRecordCount: 0 };
    for (const reported of stream === undefined ? [...this.#unreported.keys()] : [stream]) {
      const counts = this.#unreported.get(reported);
      stats.recordCount += counts?.recordCount ?? 0;
      stats.rejectedRecordCount += counts?.rejectedRecordCount ?? 0;
      this.#unreported.delete(reported);
    }
    this.#emitting = this.#emitting.then(() => this.#emit(text, stats));
    // `emitted` rejects all the same; this only keeps the rejection from being called unhandled.
    this.#emitting.catch(() => {});
  }
}
