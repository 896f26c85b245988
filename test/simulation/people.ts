import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addDays } from '../../src/base/days.ts';
import type { Heard } from '../support/airbyte/connector.ts';
import type { Action } from './actions.ts';
import { START } from './common.ts';
import type { Verb } from './connectors.ts';
import type { Held } from './places.ts';
import { exitOf, outputTo } from './platform.ts';
import { Runs } from './resumption.ts';
import type { Ended, Simulation, SpawnOptions, Work } from './simulation.ts';
import { hashOf } from './truth.ts';

const memberNo = (user: number): string => String(user).padStart(8, '0');

/** A deletion that was planned: what it is to be started with, and whom it may touch. */
export interface Planned {
  readonly line: Work;
  readonly ids: readonly string[];
  readonly purges: boolean;
  /** The `df_unified_id`s of the people whom it purges. */
  readonly people: readonly string[];
  /** Texts in `member_no` of rows that it removes, whoever else those rows name. */
  readonly memberNumbers: readonly string[];
  /** Number of the ids that the unfinished run which this one resumes has deleted. */
  readonly done: number;
  readonly cap: number;
}

/** More are left than may be deleted. */
export const isCapped = ({ ids, done, cap }: Planned): boolean => ids.length - done > cap;

/** The people whose deletion was requested, and who must never be seen again. */
export class People {
  readonly #simulation: Simulation;
  /** External ids that some list named. */
  readonly asked = new Set<string>();
  /** `df_unified_id`s whose purge ended well. */
  readonly purged = new Set<string>();
  /** People of purges that did not end well: they may be there or not. */
  readonly inDoubt = new Set<string>();
  /** Texts of `member_no` by which rows were purged that name nobody else: no list can keep those out when they come again. */
  readonly nameless = new Set<string>();
  /** A purge did not end well, and none has since then. */
  isPurging = false;
  /** Two lists are worked through at once, which the ledger alone tells apart: less can be said of each. */
  isConcurrent = false;
  #isUnclear = false;
  #lists = 0;
  readonly #early: string[] = [];
  readonly #runs: Runs;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#runs = new Runs(simulation.ledger);
  }

  /** Plans a deletion as a user does; undefined when the plan itself fails, which only faults may make it. */
  async plan({ what, users, cap }: Action, held: Held, how: SpawnOptions): Promise<Planned | undefined> {
    const simulation = this.#simulation;
    const ids = users.map(memberNo);
    const file = join(simulation.dir, `list-${++this.#lists}.txt`);
    writeFileSync(file, `${ids.join('\n')}\n`);
    const rest = { ids, cap, done: this.#runs.doneOf(ids, simulation.scheduler.now) };
    if (what === 'write') return { ...rest, line: this.#written(ids), purges: false, people: [], memberNumbers: [] };
    const isThere = held.rows.length > 0 && existsSync(simulation.place);
    const purges = what === 'purge' && isThere;
    const options = {
      file,
      config: join(simulation.dir, 'destination.json'),
      ...(purges && { purge: [simulation.testCase.target, simulation.place], ...this.#foundBy() }),
      ...(purges && { suppressionFile: simulation.suppression, spoolDir: simulation.spool }),
    };
    const planned = await simulation.runOne({ command: 'forget', options }, how);
    if (planned.code !== 0) throw new Error(`a plan ended with ${planned.code}: ${planned.log.slice(-3).join('\n')}`);
    const { hash } = JSON.parse(planned.results.at(-1) ?? '{}') as { hash?: string };
    const wanted = new Set(ids);
    const { hasMapping, hidden } = simulation.testCase;
    const texts = hidden.hashed.includes('member_no') ? new Set(ids.map(hashOf)) : wanted;
    const inRows = held.rows.flatMap(({ cells }) => {
      const id = cells.get('df_unified_id');
      return id !== undefined && texts.has(cells.get('member_no') ?? '') ? [id] : [];
    });
    const people = !purges ? [] : hasMapping ? this.#known(wanted) : inRows;
    for (const id of ids) this.asked.add(id);
    // A load at the same time may bring in what makes a person known: then they are purged as well.
    if (purges) for (const one of this.#known(wanted)) this.inDoubt.add(one);
    if (purges && !hasMapping) for (const one of texts) this.nameless.add(one);
    return {
      line: { command: 'forget', options: { ...options, execute: true, confirm: hash } },
      ...rest,
      purges,
      people: [...new Set(people)],
      memberNumbers: purges && !hasMapping ? [...texts] : [],
    };
  }

  /** A stream of people whose requests a platform hands on, with a state behind each. */
  #written(ids: readonly string[]): Verb {
    const { dir } = this.#simulation;
    for (const id of ids) this.asked.add(id);
    const descriptor = { name: 'people' };
    const input = ids.flatMap((id, i) => [
      { type: 'RECORD', record: { stream: 'people', data: { external_id: id }, emitted_at: 0 } },
      {
        type: 'STATE',
        state: { type: 'STREAM', stream: { stream_descriptor: descriptor, stream_state: { n: i + 1 } } },
      },
    ]);
    const catalog = join(dir, 'people.json');
    const schema = { type: 'object', properties: { external_id: { type: ['string'] } } };
    const stream = { ...descriptor, json_schema: schema, supported_sync_modes: ['incremental'] };
    const modes = { sync_mode: 'incremental', destination_sync_mode: 'append', cursor_field: [], primary_key: [] };
    writeFileSync(catalog, JSON.stringify({ streams: [{ stream, ...modes }] }));
    const words = ['write', '--config', join(dir, 'destination.json'), '--catalog', catalog];
    let failure: string | undefined;
    const hear = (message: Heard) => {
      failure = this.#heard(message) ?? failure;
    };
    const lines = input.map((message) => JSON.stringify(message));
    return {
      connector: 'destination',
      words,
      input: lines,
      output: () => outputTo(hear),
      ended: (code: number | undefined) => exitOf(code, failure),
    };
  }

  /** A state says that everybody before it was deleted: that must be on the disk by then. Gives what failed. */
  #heard({ type, state, trace }: Heard): string | undefined {
    const count = type === 'STATE' && !this.isConcurrent ? Number(state?.stream.stream_state.n) : 0;
    const decided = count === 0 ? 0 : this.#runs.decided;
    if (decided < count) this.#early.push(`a state confirms ${count} deletions, the ledger ${decided}`);
    return trace?.error?.failure_type;
  }

  #foundBy(): Readonly<Record<string, string>> {
    const { testCase, dir } = this.#simulation;
    if (!testCase.hasMapping) return { purgeColumn: 'member_no' };
    const file = join(dir, 'mapping.csv');
    const lines = this.#everybody().map(([external, unified]) => `${external},${unified}`);
    writeFileSync(file, `external_id,df_unified_id\n${[...new Set(lines)].join('\n')}\n`);
    return { mapping: file };
  }

  /** External ids with their `df_unified_id`s, as the service knows them. */
  #everybody(): [string, string][] {
    const rows = [...this.#simulation.original.truth({ from: START, to: addDays(START, 30) })];
    const both = rows.map((row): [string, string] => [row.get('member_no') ?? '', row.get('df_unified_id') ?? '']);
    return both.filter(([external, unified]) => external !== '' && unified !== '');
  }

  #known(ids: ReadonlySet<string>): string[] {
    return this.#everybody().flatMap(([external, unified]) => (ids.has(external) ? [unified] : []));
  }

  /**
   * Takes note of how an executed deletion ended; gives what is wrong with it. `isPunctual`: the clock was right, by which the
   * ledger's runs are told apart.
   */
  ended(planned: Planned, { code }: Ended, before: ReadonlyMap<string, number>, isPunctual: boolean): string[] {
    const { ids, people, cap, purges } = planned;
    if (this.isConcurrent) this.#isUnclear = true;
    else this.#runs.learn(ids);
    const isTimely = isPunctual && !this.#isUnclear;
    const now = this.counts();
    const own = new Set(ids);
    const isOwn = (id: string) => !this.isConcurrent || own.has(id);
    const touched = [...now].filter(([id, count]) => count > (before.get(id) ?? 0) && isOwn(id)).map(([id]) => id);
    const wrong: string[] = this.#early.splice(0);
    for (const id of touched) if (!this.asked.has(id)) wrong.push(`${id} was deleted and nobody asked for it`);
    const left = ids.length - planned.done;
    if (touched.length > cap) wrong.push(`${touched.length} people deleted above the cap of ${cap}`);
    if (isTimely && left > cap && touched.length > 0) wrong.push(`some of ${left} people deleted, the cap is ${cap}`);
    if (purges) this.isPurging = code !== 0;
    if (code !== 0) return wrong;
    for (const id of ids)
      if ((now.get(id) ?? 0) === 0) wrong.push(`${id} was never deleted, yet all is said to be done`);
    if (isTimely && touched.length !== left)
      wrong.push(`${touched.length} people were asked for, and ${left} of ${ids.length} were left`);
    for (const one of people) {
      this.purged.add(one);
      this.inDoubt.delete(one);
    }
    return wrong;
  }

  /** How often the service was asked to delete each id. */
  counts(): Map<string, number> {
    return new Map(this.#simulation.service.deletions().map(({ externalId, count }) => [externalId, count]));
  }

  /** The ledger, by the program's own proof and by what the service knows. */
  async ledgerProblems(): Promise<string[]> {
    const simulation = this.#simulation;
    const files = existsSync(simulation.ledger) ? readdirSync(simulation.ledger) : [];
    if (!files.some((name) => name.endsWith('.jsonl'))) return [];
    const options = { verifyLedger: simulation.ledger, config: join(simulation.dir, 'destination.json') };
    const { code, results } = await simulation.runOne({ command: 'forget', options });
    if (code !== 0) return [`the ledger is not whole: ${results.join(' ')}`];
    const text = files
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => readFileSync(join(simulation.ledger, name), 'utf8'));
    const noted = text.join('').split('"kind":"before"').length - 1;
    const sent = [...this.counts().values()].reduce((sum, count) => sum + count, 0);
    return sent <= noted ? [] : [`${sent} deletions were sent, the ledger has ${noted}`];
  }
}
