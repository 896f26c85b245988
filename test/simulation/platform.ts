import { createHash } from 'node:crypto';
import { Writable } from 'node:stream';
import type { Heard } from '../support/airbyte/connector.ts';
import type { StoredRow } from '../support/targets/stored-rows.ts';
import { current } from './machine/process.ts';
import { type Held, NOTHING } from './places.ts';
import { PROPERTIES, SYSTEM } from './properties.ts';

/** Names that fold alike: all but the first in order of their bytes get the hash of the raw name. */
const FOLDED = 'grade';
const FOLDED_AS = `${FOLDED}_${createHash('sha256').update(FOLDED).digest('hex').slice(0, 6)}`;
const propertyOf = (name: string): string => (name === FOLDED ? FOLDED_AS : name);

const textProperty = { type: ['null', 'string'] };
const properties = Object.fromEntries(
  [...SYSTEM, ...PROPERTIES, '_key'].map((name) => [propertyOf(name), textProperty]),
);

/** The catalog that a platform is configured to sync: the events, as texts, merged by their key. */
export const SOURCE_CATALOG = {
  streams: [
    {
      stream: { name: 'events', json_schema: { type: 'object', properties }, supported_sync_modes: ['incremental'] },
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      cursor_field: ['df_server_datetime'],
      primary_key: [['_key']],
    },
  ],
};

type State = NonNullable<Heard['state']>;

/** Reads a source: keeps its records by their key, and its last state. */
export class Platform {
  readonly #rows = new Map<string, StoredRow>();
  readonly problems: string[] = [];
  /** The state as the source gets it back. */
  state: readonly unknown[] | undefined;
  #cursor: string | undefined;
  #inclusive: boolean | undefined;
  #rangesInclusive: boolean | undefined;
  #sinceState = 0;
  #failure: string | undefined;

  /** The stream for the source's output. Only what arrives while its process lives is read. */
  readonly output = (): Writable => outputTo((message) => this.#take(message));

  /** A run has ended; gives the exit code that a command line would have had. */
  readonly ended = (code: number | undefined): number | undefined => {
    const failure = this.#failure;
    this.#sinceState = 0;
    this.#failure = undefined;
    return exitOf(code, failure);
  };

  get held(): Held {
    const rows = [...this.#rows.values()];
    const [inclusive, rangesInclusive] = [this.#inclusive, this.#rangesInclusive];
    return { ...NOTHING, rows, keys: [...this.#rows.keys()], cursor: this.#cursor, inclusive, rangesInclusive };
  }

  #take({ record, state, trace }: Heard): void {
    if (record !== undefined) this.#keep(record.data);
    if (state !== undefined) this.#save(state);
    if (trace?.error !== undefined) this.#failure = trace.error.failure_type;
  }

  #keep(data: Readonly<Record<string, unknown>>): void {
    const cells = new Map<string, string>();
    for (const [name, value] of Object.entries(data)) {
      if (name !== '_key' && value !== null) cells.set(name === FOLDED_AS ? FOLDED : name, String(value));
    }
    this.#rows.set(String(data._key), { id: cells.get('df_event_detail_log_id') ?? '', cells });
    this.#sinceState++;
  }

  #save({ type, stream, sourceStats }: State): void {
    const { from_date, to_date_inclusive, ranges_inclusive } = stream.stream_state;
    if (sourceStats.recordCount !== this.#sinceState)
      this.problems.push(`a state counts ${sourceStats.recordCount} records, and ${this.#sinceState} came`);
    if (this.#cursor !== undefined && String(from_date) < this.#cursor)
      this.problems.push(`the cursor goes back from ${this.#cursor} to ${String(from_date)}`);
    this.#cursor = String(from_date);
    this.#inclusive = to_date_inclusive as boolean | undefined;
    this.#rangesInclusive = ranges_inclusive as boolean | undefined;
    this.#sinceState = 0;
    this.state = [{ type, stream }];
  }
}

const CODES: ReadonlyMap<string, number> = new Map([
  ['config_error', 2],
  ['transient_error', 3],
]);

/** The exit code that a command line would have for what a connector says of its failure; what stopped it says nothing. */
export const exitOf = (code: number | undefined, failure: string | undefined): number | undefined =>
  code === 1 ? (CODES.get(failure ?? 'transient_error') ?? 1) : code;

/** Takes the messages of a connector; each write of it arrives in one event, in order. */
export function outputTo(take: (message: Heard) => void): Writable {
  let text = '';
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      const more = chunk.toString();
      const process = current();
      if (process === undefined) return done();
      process
        .turn(() => {
          process.effect('send');
          const lines = `${text}${more}`.split('\n');
          text = lines.pop() ?? '';
          for (const line of lines) take(JSON.parse(line) as Heard);
        })
        .then(() => done(), done);
    },
  });
}
