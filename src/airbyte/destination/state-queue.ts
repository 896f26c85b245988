import type { Decision } from '../../erasure/ledger/lines.ts';
import type { IdList } from '../../erasure/list/id-list.ts';
import type { MessageWriter } from '../protocol/message-writer.ts';
import type { InputState } from './input-messages.ts';

/** A row that was refused has no id. `key`: the `streamKey` of its stream. */
type QueueItem = InputState | Readonly<{ type: 'ROW'; key: string; id: string | undefined }>;

/**
 * The rows of a sync and the states between them, in order. A state is echoed once every row before it is decided.
 * Memory: some 50 bytes a row and an id, and the texts of the states.
 */
export class StateQueue {
  readonly #idList: IdList;
  readonly #writer: MessageWriter;
  readonly #decisions = new Map<string, Decision>();
  readonly #items: QueueItem[] = [];
  /** Index of the first item that is neither counted nor echoed. */
  #nextIndex = 0;
  /** Counts of the rows that no echoed state has reported yet, by the `key` of their stream. */
  readonly #unreported = new Map<string, { recordCount: number; rejectedRecordCount: number }>();

  /** `idList`: the ids of the rows; complete before the first echo. */
  constructor(idList: IdList, writer: MessageWriter) {
    this.#idList = idList;
    this.#writer = writer;
  }

  add(item: QueueItem): void {
    this.#items.push(item);
  }

  decide(id: string, decision: Decision): void {
    this.#decisions.set(id, decision);
  }

  /** Writes the states before which every row is decided. A failure to write aborts the run. */
  echoDecided(): void {
    for (; this.#nextIndex < this.#items.length; this.#nextIndex++) {
      const item = this.#items[this.#nextIndex];
      if (item.type === 'STATE') this.#echo(item);
      else {
        // The id of a row that was withdrawn later is not on the list.
        const isRefused = item.id === undefined || !this.#idList.has(item.id);
        const decision = isRefused ? 'rejected' : this.#decisions.get(item.id);
        if (decision === undefined) return;
        const counts = this.#unreported.get(item.key) ?? { recordCount: 0, rejectedRecordCount: 0 };
        if (decision === 'done') counts.recordCount++;
        else counts.rejectedRecordCount++;
        this.#unreported.set(item.key, counts);
      }
    }
  }

  /** Writes a state as it came, plus the counts of its rows that no earlier state has reported. */
  #echo({ key, beforeStateEnd, fromStateEnd }: InputState): void {
    const stats = { recordCount: 0, rejectedRecordCount: 0 };
    for (const [rowKey, counts] of this.#unreported) {
      if (key !== undefined && key !== rowKey) continue;
      stats.recordCount += counts.recordCount;
      stats.rejectedRecordCount += counts.rejectedRecordCount;
      this.#unreported.delete(rowKey);
    }
    // Of two members with one name readers take the last: the state may have one, which is null as a rule.
    const line = `${beforeStateEnd},"destinationStats":${JSON.stringify(stats)}${fromStateEnd}`;
    // `drain` of the writer rejects all the same; this only keeps the rejection from being called unhandled.
    this.#writer.writeLine(line).catch(() => {});
  }
}
