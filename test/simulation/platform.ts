import { source } from '../../src/airbyte/source/source.ts';
import { addDays, type Day, daysOf, startOf } from '../../src/base/days.ts';
import { configured, InputFiles, type Json, type Output, runInProcess } from '../support/airbyte/connector.ts';
import { START, type World } from './simulation.ts';
import { rowText } from './truth.ts';

const HOUR = 3_600_000;
/** Columns that every day has, so that the catalog has them, with the type of all days. */
const STEADY = new Set([
  ...['event_name', 'df_event_name', 'df_unified_id', 'df_server_datetime', 'df_correction_datetime'],
  ...['df_event_log_id', 'df_event_detail_log_id', 'member_no', 'count', 'memo'],
]);
const steadyText = (cells: Iterable<readonly [string, unknown]>): string =>
  rowText([...cells].filter(([name]) => STEADY.has(name)));

interface StreamState {
  readonly from_date: Day;
  readonly gaps?: readonly Day[];
}

/** A platform that runs the source, keeps its last STATE, and the records before that STATE: later ones it drops. */
export class PlatformSimulation {
  readonly #world: World;
  readonly #mode: 'append_dedup' | 'append';
  readonly #files = new InputFiles();
  readonly #records: { readonly key: string; readonly text: string }[] = [];
  readonly #happened: string[] = [];
  #catalog: Json | undefined;
  #state: unknown;
  #readAt = 0;

  constructor(world: World, mode: 'append_dedup' | 'append') {
    this.#world = world;
    this.#mode = mode;
  }

  get rows(): number {
    return new Set(this.#records.map(({ key }) => key)).size;
  }

  async step(hours: number, isCut: boolean): Promise<void> {
    const { clock, service, random } = this.#world;
    clock.pass(hours * HOUR);
    this.#happened.push(`${new Date(clock.now()).toISOString()} ${isCut ? 'cut' : 'none'}`);
    const to_date_inclusive = this.#mode === 'append' ? (this.#world.kind.append ?? 'auto') : 'auto';
    const config = { ...this.#world.settings, to_date_inclusive, spool_dir: this.#files.dir };
    this.#catalog ??= configured(
      (await this.#run('discover', config)).catalog().streams,
      { destination_sync_mode: this.#mode },
      ['events'],
    );
    if (isCut) {
      const nth = random.int(1, 4);
      // Five attempts are not enough: the sync fails at this day.
      service.setScenario({ fault: (_, n) => (n > nth ? { kind: 'cut', after_rows: 1 } : undefined) });
    }
    const at = clock.now();
    const output = await this.#run('read', config, this.#state);
    service.setScenario({ fault: () => undefined });
    this.#keep(output);
    if (!isCut && output.code !== 0) throw new Error(this.#story(`exit ${output.code}: ${output.text.slice(-2_000)}`));
    if (output.code === 0) this.#readAt = at;
    this.#check();
  }

  #run(verb: string, config: Json, state?: unknown): Promise<Output> {
    const words = [verb, '--config', this.#files.write(config)];
    if (verb === 'read') words.push('--catalog', this.#files.write(this.#catalog, 'txt'));
    if (state !== undefined) words.push('--state', this.#files.write(state, 'txt'));
    return runInProcess(source, words, { clock: this.#world.clock });
  }

  /** Takes the records up to the last STATE, and that STATE. */
  #keep(output: Output): void {
    const last = output.messages.findLastIndex(({ type }) => type === 'STATE');
    for (const { record } of output.messages.slice(0, last + 1)) {
      if (record === undefined) continue;
      const { data } = record;
      this.#records.push({ key: String(data._key), text: steadyText(Object.entries(data)) });
    }
    if (last !== -1) this.#state = output.lastStates();
  }

  get #streamState(): StreamState {
    const [state] = (this.#state ?? []) as { readonly stream: { readonly stream_state: StreamState } }[];
    return state?.stream.stream_state ?? { from_date: START };
  }

  /** Each row that is before the cursor for sure is there; under plain append, exactly once. */
  #check(): void {
    const stored = new Map<string, number>();
    for (const { text } of this.#records) stored.set(text, (stored.get(text) ?? 0) + 1);
    const { from_date: cursor, gaps } = this.#streamState;
    for (const day of daysOf(START, addDays(cursor, -1))) {
      const at = Math.min(startOf(day) + 36 * HOUR, this.#readAt);
      for (const row of this.#world.truth.shown(day, at)) {
        if (row.until !== undefined || gaps?.includes(day)) continue;
        const text = steadyText(row.cells);
        const count = stored.get(text) ?? 0;
        const isRight = this.#mode === 'append' ? count === 1 : count > 0;
        if (!isRight) throw new Error(this.#story(`a row of ${day} is there ${count} times: ${text}`));
      }
    }
  }

  #story(what: string): string {
    return `${what}\n${this.#happened.join('\n')}`;
  }
}
