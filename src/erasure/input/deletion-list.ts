import { createHash, hash } from 'node:crypto';
import type { StateStats } from '../../airbyte/protocol/messages.ts';
import { configError, EXIT } from '../../base/errors.ts';
import { isBlank, isPlaceholder } from '../../base/placeholder.ts';

/** Reasons to refuse a row before anything is sent, as texts for people, in the order of reports. */
export const REFUSAL_TEXT = {
  missing: 'the ID field is missing or null',
  not_a_string: 'the ID is not a string',
  empty: 'the ID is empty',
  blank: 'the ID holds nothing visible',
  null_like: 'the ID is a placeholder such as null, undefined, NaN or *',
  too_long: 'the ID is longer than max_id_length',
  control_characters: 'the ID holds control characters',
  not_unicode: 'the ID is not valid Unicode',
  withdrawn: 'the request was withdrawn at the source (_ab_cdc_deleted_at)',
} as const;
export type IdRefusal = keyof typeof REFUSAL_TEXT;

const CONTROL = /\p{Cc}/u;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The reason to refuse an ID, or undefined for one that is sent exactly as it is. `mostBytes` counts UTF-8. */
export function idRefusal(id: unknown, mostBytes: number): IdRefusal | undefined {
  if (id === undefined || id === null) return 'missing';
  if (typeof id !== 'string') return 'not_a_string';
  if (id === '') return 'empty';
  if (id.length > mostBytes || Buffer.byteLength(id) > mostBytes) return 'too_long';
  if (LONE_SURROGATE.test(id)) return 'not_unicode';
  if (isBlank(id)) return 'blank';
  if (CONTROL.test(id)) return 'control_characters';
  return isPlaceholder(id) ? 'null_like' : undefined;
}

/** The outcome of an id; undecided rows are in neither count, and no state follows them. */
export type Decision = 'done' | 'rejected' | 'undecided';

/** Counts of a list, with the names of a report (schemas/deletion.json). */
export type ListCounts = Readonly<DeletionList['counts']>;

/** Writes a state to the platform: the state's text, and the counts of its rows. */
export type EmitState = (text: string, stats: Required<StateStats>) => Promise<void>;

export interface ListedId {
  readonly id: string;
  /** Number of its first row, from 1. */
  readonly row: number;
}

/** Memory that an id, a row and a state take beside their text (bytes). */
const ID_BYTES = 150;
const ROW_BYTES = 16;
const STATE_BYTES = 300;
/**
 * Maximum memory of the whole input (bytes): about seven million ids, which take a day and a night at the usual rate.
 */
const MAX_INPUT_BYTES = 1024 ** 3;

interface Entry extends ListedId {
  rows: number;
  isWithdrawn: boolean;
  decision: Decision | undefined;
}

interface State {
  /** Index of its stream; undefined for a state of all streams. */
  readonly stream: number | undefined;
  readonly text: string;
}

/** Replaces a state that was emitted, so that the memory of its text is freed. */
const EMITTED: State = { stream: undefined, text: '' };

/**
 * The input of a deletion, read whole before the first request: ids, each once, and the states between the rows.
 * Streams are numbers. Memory: the texts and 150 bytes an id, 16 a row, 300 a state, a gigabyte at most.
 */
export class DeletionList {
  readonly #entries = new Map<string, Entry>();
  readonly #refused = new Map<IdRefusal, number>();
  /** The rows and the states between them, in order; `#streams` has the stream of each. */
  readonly #steps: (Entry | State | 'refused')[] = [];
  readonly #streams: number[] = [];
  #received = 0;
  #bytes = 0;
  #isStarted = false;
  /** Index of the first step that is not decided, or not emitted. */
  #at = 0;
  /** Counts of the rows before `#at` that no state has reported yet, by stream. */
  readonly #unreported = new Map<number, { done: number; rejected: number }>();
  #emitting: Promise<void> = Promise.resolve();
  readonly #emit: EmitState;

  /** `emit` is called for each state, in order, once every row before it is decided. */
  constructor(emit: EmitState = async () => {}) {
    this.#emit = emit;
  }

  /** Adds a row with whatever stands in its id field; `mostBytes` counts UTF-8. */
  addRow(stream: number, id: unknown, mostBytes: number): void {
    const refusal = idRefusal(id, mostBytes);
    if (refusal !== undefined) this.#addRefused(stream, refusal);
    else this.#addId(stream, String(id));
  }

  /** Adds a row that withdraws the request for an id: it is refused, and so is every row before it with that id. */
  addWithdrawn(stream: number, id: string | undefined): void {
    this.#addRefused(stream, 'withdrawn');
    const entry = id === undefined ? undefined : this.#entries.get(id);
    if (entry !== undefined) entry.isWithdrawn = true;
  }

  /** `stream` is undefined for a state of all streams. */
  addState(stream: number | undefined, text: string): void {
    this.#addStep({ stream, text }, 0, text.length + STATE_BYTES);
  }

  /** Complete once the input has ended. `refused` counts rows by `IdRefusal`. */
  get counts() {
    const accepted = this.ids();
    const rowsOf = (entries: Iterable<Readonly<Entry>>) => [...entries].reduce((sum, { rows }) => sum + rows, 0);
    const rows = rowsOf(accepted);
    const withdrawn = rowsOf(this.#entries.values()) - rows;
    const refused = Object.keys(REFUSAL_TEXT).map((why): [string, number] => {
      const own = this.#refused.get(why as IdRefusal) ?? 0;
      return [why, why === 'withdrawn' ? own + withdrawn : own];
    });
    return {
      received: this.#received,
      refused: Object.fromEntries(refused.filter(([, n]) => n > 0)) as Readonly<Record<string, number>>,
      duplicates: rows - accepted.length,
      ids: accepted.length,
      // What the unfinished run that this one resumes has decided is not requested again.
      done_before: accepted.filter(({ decision }) => decision === 'done').length,
      rejected_before: accepted.filter(({ decision }) => decision === 'rejected').length,
    };
  }

  /** SHA-256 (hex) of exactly the accepted ids: neither order nor repetitions nor refused rows change it. */
  get digest(): string {
    const all = createHash('sha256');
    const digests = this.ids().map(({ id }) => hash('sha256', Buffer.from(id), 'buffer').toString('latin1'));
    for (const digest of digests.sort()) all.update(digest, 'latin1');
    return all.digest('hex');
  }

  /** The accepted ids, each once, in the order of the input. */
  ids(): readonly Readonly<Entry>[] {
    return [...this.#entries.values()].filter((entry) => !entry.isWithdrawn);
  }

  /** The ids with this decision; undefined: those that are still to be requested. */
  idsWith(decision: Decision | undefined): string[] {
    return this.ids().flatMap((entry) => (entry.decision === decision ? [entry.id] : []));
  }

  decide(id: string, decision: Decision): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.decision = decision;
    this.#advance();
  }

  /**
   * Allows states to be emitted: called when the service has accepted the first id, or when there is none to request.
   */
  start(): void {
    this.#isStarted = true;
    this.#advance();
  }

  /** Resolves when every state that may be emitted has been; rejects when one could not. */
  async emitted(): Promise<void> {
    for (let seen: Promise<void> | undefined; seen !== this.#emitting; ) {
      seen = this.#emitting;
      await seen;
    }
  }

  #addId(stream: number, id: string): void {
    this.#received++;
    let entry = this.#entries.get(id);
    const isNew = entry === undefined;
    entry ??= { id, row: this.#received, rows: 0, isWithdrawn: false, decision: undefined };
    entry.rows++;
    entry.isWithdrawn = false;
    this.#entries.set(id, entry);
    this.#addStep(entry, stream, ROW_BYTES + (isNew ? id.length + ID_BYTES : 0));
  }

  #addRefused(stream: number, refusal: IdRefusal): void {
    this.#received++;
    this.#refused.set(refusal, (this.#refused.get(refusal) ?? 0) + 1);
    this.#addStep('refused', stream, ROW_BYTES);
  }

  #addStep(step: Entry | State | 'refused', stream: number, bytes: number): void {
    this.#steps.push(step);
    this.#streams.push(stream);
    this.#bytes += bytes;
    if (this.#bytes <= MAX_INPUT_BYTES) return;
    throw configError(
      `Nothing was deleted: the list is larger than what one run can take (${this.#entries.size} ids in ` +
        `${this.#received} rows so far). Split it into several.`,
      { exitCode: EXIT.guard },
    );
  }

  /** Counts the rows that are decided, in order, and emits the states between them. */
  #advance(): void {
    for (; this.#isStarted && this.#at < this.#steps.length; this.#at++) {
      const step = this.#steps[this.#at];
      if (step !== 'refused' && 'text' in step) {
        this.#emitState(step);
        this.#steps[this.#at] = EMITTED;
        continue;
      }
      const decision = step === 'refused' || step.isWithdrawn ? 'rejected' : step.decision;
      if (decision === undefined || decision === 'undecided') return;
      const stream = this.#streams[this.#at];
      const counts = this.#unreported.get(stream) ?? { done: 0, rejected: 0 };
      counts[decision]++;
      this.#unreported.set(stream, counts);
    }
  }

  #emitState({ stream, text }: State): void {
    const stats = { recordCount: 0, rejectedRecordCount: 0 };
    for (const one of stream === undefined ? [...this.#unreported.keys()] : [stream]) {
      const counts = this.#unreported.get(one);
      stats.recordCount += counts?.done ?? 0;
      stats.rejectedRecordCount += counts?.rejected ?? 0;
      this.#unreported.delete(one);
    }
    this.#emitting = this.#emitting.then(() => this.#emit(text, stats));
    // `emitted` rejects all the same; this only keeps the rejection from being called unhandled.
    this.#emitting.catch(() => {});
  }
}
