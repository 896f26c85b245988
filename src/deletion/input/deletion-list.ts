import { createHash, hash } from 'node:crypto';
import type { StateStats } from '../../airbyte/messages.ts';
import { configError, EXIT } from '../../base/errors.ts';
import { isBlank, isPlaceholder } from '../../base/placeholder.ts';

/** Why a row is refused before anything is sent, as people are told, in the order of reports. */
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
export type Refusal = keyof typeof REFUSAL_TEXT;

const REFUSALS = Object.keys(REFUSAL_TEXT);

const CONTROL = /\p{Cc}/u;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The reason to refuse an ID, or undefined for one that is sent exactly as it is. `mostBytes` counts UTF-8. */
export function refusalOf(id: unknown, mostBytes: number): Refusal | undefined {
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

/** Counts of rows, all known once the input has ended. */
export interface ListCounts {
  readonly received: number;
  readonly duplicates: number;
  readonly refused: ReadonlyMap<Refusal, number>;
  /** Different ids among the accepted rows. */
  readonly unique: number;
  /** Of these, decided by the run that is resumed. */
  readonly done: number;
  readonly rejectedBefore: number;
}

/** Writes a state to the platform: the state's text, and the counts of its rows. */
export type EmitState = (text: string, stats: Required<StateStats>) => Promise<void>;

/** One accepted id of the list. */
export interface ListedId {
  readonly id: string;
  /** Number of its first row, from 1. */
  readonly row: number;
}

/** What an id, a row and a state take beside their text. */
const ID_BYTES = 150;
const ROW_BYTES = 16;
const STATE_BYTES = 300;
/** Of the whole input: about seven million ids, a day and a night of deletions at the usual rate. */
const MAX_BYTES = 1024 ** 3;
const REFUSED = -1;

interface Entry extends ListedId {
  rows: number;
  isWithdrawn: boolean;
  decision: Decision | undefined;
}

/** The rows between two states, and the state that follows them; undefined stream: of all streams. */
interface Segment {
  readonly ids: number[];
  readonly streams: number[];
  state?: { readonly stream: number | undefined; readonly text: string };
}

/**
 * The input of a deletion, read whole before the first request: ids, each once, and the states between the rows. Streams are
 * numbers. Memory: the texts and 150 bytes an id, 16 a row, 300 a state, a gigabyte at most.
 */
export class DeletionList {
  readonly #entries: Entry[] = [];
  readonly #byId = new Map<string, number>();
  readonly #refused = new Map<Refusal, number>();
  readonly #segments: Segment[] = [{ ids: [], streams: [] }];
  #received = 0;
  #bytes = 0;
  #started = false;
  #segment = 0;
  #row = 0;
  #work: Promise<void> = Promise.resolve();
  readonly #since = new Map<number, { done: number; rejected: number }>();
  readonly #emit: EmitState;

  /** `emit` is called for each state, in order, once every row before it is decided. */
  constructor(emit: EmitState = async () => {}) {
    this.#emit = emit;
  }

  /** A row with whatever stands in its ID field; `mostBytes` of UTF-8. */
  addRow(stream: number, id: unknown, mostBytes: number): void {
    const refusal = refusalOf(id, mostBytes);
    if (refusal !== undefined) this.addRefused(stream, refusal);
    else this.addId(stream, String(id));
  }

  addId(stream: number, id: string): void {
    this.#received++;
    let at = this.#byId.get(id);
    if (at === undefined) {
      at = this.#entries.length;
      this.#byId.set(id, at);
      this.#entries.push({ id, row: this.#received, rows: 0, isWithdrawn: false, decision: undefined });
      this.#take(id.length + ID_BYTES);
    }
    const entry = this.#entries[at];
    entry.rows++;
    entry.isWithdrawn = false;
    this.#addRow(stream, at);
  }

  addRefused(stream: number, refusal: Refusal): void {
    this.#received++;
    this.#refused.set(refusal, (this.#refused.get(refusal) ?? 0) + 1);
    this.#addRow(stream, REFUSED);
  }

  /** A row that withdraws the request for an id: it is refused itself, and so is every row before it with that id. */
  addWithdrawn(stream: number, id: string | undefined): void {
    this.addRefused(stream, 'withdrawn');
    const at = id === undefined ? undefined : this.#byId.get(id);
    if (at !== undefined) this.#entries[at].isWithdrawn = true;
  }

  /** `stream`: undefined for a state of all streams. */
  addState(stream: number | undefined, text: string): void {
    this.#last().state = { stream, text };
    this.#segments.push({ ids: [], streams: [] });
    this.#take(text.length + STATE_BYTES);
  }

  get counts(): ListCounts {
    const accepted = this.#accepted();
    const rows = accepted.reduce((sum, entry) => sum + entry.rows, 0);
    const withdrawn = this.#entries.filter((entry) => entry.isWithdrawn).reduce((sum, entry) => sum + entry.rows, 0);
    const refused = new Map(this.#refused);
    if (withdrawn > 0) refused.set('withdrawn', (refused.get('withdrawn') ?? 0) + withdrawn);
    const decided = (decision: Decision) => accepted.filter((entry) => entry.decision === decision).length;
    return {
      received: this.#received,
      duplicates: rows - accepted.length,
      refused: new Map([...refused].sort(([a], [b]) => REFUSALS.indexOf(a) - REFUSALS.indexOf(b))),
      unique: accepted.length,
      done: decided('done'),
      rejectedBefore: decided('rejected'),
    };
  }

  /** SHA-256 (hex) of exactly the accepted ids: neither order nor repetitions nor refused rows change it. */
  get digest(): string {
    const all = createHash('sha256');
    const digests = this.#accepted().map(({ id }) => hash('sha256', Buffer.from(id), 'buffer').toString('latin1'));
    for (const digest of digests.sort()) all.update(digest, 'latin1');
    return all.digest('hex');
  }

  /** The accepted ids, each once, in the order of the input. */
  ids(): readonly ListedId[] {
    return this.#accepted();
  }

  /** The ids with this decision; undefined: those that are still to be requested. */
  idsWith(decision: Decision | undefined): string[] {
    return this.#accepted().flatMap((entry) => (entry.decision === decision ? [entry.id] : []));
  }

  decide(id: string, decision: Decision): void {
    const entry = this.#entries[this.#byId.get(id) ?? -1];
    if (entry === undefined) return;
    entry.decision = decision;
    this.#advance();
  }

  /** From now on states are emitted: a row is known to be accepted by the service, or there is none to be asked for. */
  start(): void {
    this.#started = true;
    this.#advance();
  }

  /** Resolves when every state that may be emitted has been; rejects when one could not. */
  async emitted(): Promise<void> {
    for (let seen: Promise<void> | undefined; seen !== this.#work; ) {
      seen = this.#work;
      await seen;
    }
  }

  #accepted(): Entry[] {
    return this.#entries.filter((entry) => !entry.isWithdrawn);
  }

  #last(): Segment {
    return this.#segments[this.#segments.length - 1];
  }

  #addRow(stream: number, at: number): void {
    const { ids, streams } = this.#last();
    ids.push(at);
    streams.push(stream);
    this.#take(ROW_BYTES);
  }

  #take(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= MAX_BYTES) return;
    throw configError(
      `Nothing was deleted: the list is larger than what one run can take (${this.#entries.length} ids in ${this.#received} rows so far). Split it into several.`,
      { exitCode: EXIT.guard },
    );
  }

  /** Counts the rows that are decided, in order, and emits the states between them. */
  #advance(): void {
    while (this.#started) {
      const { ids, streams, state } = this.#segments[this.#segment];
      for (; this.#row < ids.length; this.#row++) {
        const decision = this.#decisionOf(ids[this.#row]);
        if (decision === undefined || decision === 'undecided') return;
        this.#countsOf(streams[this.#row])[decision]++;
      }
      if (state === undefined) return;
      const stats = this.#takeCounts(state.stream);
      this.#work = this.#work.then(() => this.#emit(state.text, stats));
      // `emitted` rejects all the same; this only keeps the rejection from being called unhandled.
      this.#work.catch(() => {});
      this.#segments[this.#segment] = { ids: [], streams: [] };
      this.#segment++;
      this.#row = 0;
    }
  }

  #decisionOf(at: number): Decision | undefined {
    if (at === REFUSED || this.#entries[at].isWithdrawn) return 'rejected';
    return this.#entries[at].decision;
  }

  #countsOf(stream: number): { done: number; rejected: number } {
    const counts = this.#since.get(stream) ?? { done: 0, rejected: 0 };
    this.#since.set(stream, counts);
    return counts;
  }

  #takeCounts(stream: number | undefined): Required<StateStats> {
    const streams = stream === undefined ? [...this.#since.keys()] : [stream];
    const sum = { recordCount: 0, rejectedRecordCount: 0 };
    for (const one of streams) {
      const { done, rejected } = this.#countsOf(one);
      sum.recordCount += done;
      sum.rejectedRecordCount += rejected;
      this.#since.delete(one);
    }
    return sum;
  }
}
