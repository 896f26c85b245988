import type { Decision } from '../../erasure/ledger/lines.ts';
import type { IdList } from '../../erasure/list/id-list.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import type { MessageWriter } from '../protocol/message-writer.ts';
import type { InputState } from './input-messages.ts';

interface QueuedRow {
  readonly type: 'ROW';
  readonly stream: ConfiguredStream;
  /** Undefined for a row that was refused. */
  readonly id: string | undefined;
}

/**
 * The rows of a sync and the states between them, in order. A state is echoed once every row before it is decided.
 * Memory: some 50 bytes a row and an id, and the texts of the states.
 */
export class StateQueue {
  readonly #idList: IdList;
  readonly #writer: MessageWriter;
  readonly #decisions = new Map<string, Decision>();
  readonly #items: (QueuedRow | InputState)[] = [];
  /** Index of the first item that is not released. */
  #nextIndex = 0;
  /** Counts of the released rows that no state has reported yet. */
  readonly #unreported = new Map<ConfiguredStream, { recordCount: number; rejectedRecordCount: number }>();
  #lastWrite: Promise<void> = Promise.resolve();

  /** `idList`: the ids of the rows; complete before the first release. */
  constructor(idList: IdList, writer: MessageWriter) {
    this.#idList = idList;
    this.#writer = writer;
  }

  addRow(stream: ConfiguredStream, id: string | undefined): void {
    this.#items.push({ type: 'ROW', stream, id });
  }

  addState(state: InputState): void {
    this.#items.push(state);
  }

  decide(id: string, decision: Decision): void {
    this.#decisions.set(id, decision);
  }

  /** Echoes the states before which every row is decided. */
  release(): void {
    for (; this.#nextIndex < this.#items.length; this.#nextIndex++) {
      const item = this.#items[this.#nextIndex];
      if (item.type === 'STATE') this.#echo(item);
      else if (!this.#countIfDecided(item)) return;
    }
  }

  /** Resolves when every released state has been written; rejects when one could not. */
  drain(): Promise<void> {
    return this.#lastWrite;
  }

  /** Counts a row; false for one that is not decided. */
  #countIfDecided({ stream, id }: QueuedRow): boolean {
    // The id of a row that was withdrawn later is not on the list.
    const decision = id === undefined || !this.#idList.has(id) ? 'rejected' : this.#decisions.get(id);
    if (decision === undefined) return false;
    const counts = this.#unreported.get(stream) ?? { recordCount: 0, rejectedRecordCount: 0 };
    counts[decision === 'done' ? 'recordCount' : 'rejectedRecordCount']++;
    this.#unreported.set(stream, counts);
    return true;
  }

  /** Writes a state as it came, plus the counts of its rows that no earlier state has reported. */
  #echo({ stream, head, tail }: InputState): void {
    const streams = stream === undefined ? [...this.#unreported.keys()] : [stream];
    const counts = streams.flatMap((reported) => this.#unreported.get(reported) ?? []);
    for (const reported of streams) this.#unreported.delete(reported);
    const recordCount = counts.reduce((sum, stats) => sum + stats.recordCount, 0);
    const rejectedRecordCount = counts.reduce((sum, stats) => sum + stats.rejectedRecordCount, 0);
    const line = `${head}"destinationStats":${JSON.stringify({ recordCount, rejectedRecordCount })},${tail}`;
    this.#lastWrite = this.#lastWrite.then(() => this.#writer.writeLine(line));
    // `drain` rejects all the same; this only keeps the rejection from being called unhandled.
    this.#lastWrite.catch(() => {});
  }
}
