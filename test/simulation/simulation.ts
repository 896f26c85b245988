import { renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { addDays, type Day, dayAt, daysOf } from '../../src/base/days.ts';
import { LeapingClock } from '../support/clock.ts';
import { newFolder } from '../support/new-folder.ts';
import { CliChild, PROGRAM } from '../support/processes/cli-child.ts';
import { type CommandOutput, runHere } from '../support/processes/command-line.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { type Fault, type FaultRule, limited, refusal } from '../support/service/faults.ts';
import { SERVICE_ID, startTestService, TOKENS } from '../support/service/start-service.ts';
import type { ScenarioPatch, TestService } from '../support/service/test-service.ts';
import type { TargetName } from '../support/targets/place.ts';
import { violations } from './invariants.ts';
import { OwnedPlace } from './owned-place.ts';
import { PEOPLE, personOf, Truth, type TruthOptions } from './truth.ts';

const HOUR = 3_600_000;
const BEGIN = Date.UTC(2026, 2, 4, 5);
export const START: Day = '2026-02-27';
const MOST_SHOWN = 6;
const PROCESSES = resolve(import.meta.dirname, '../support/processes');

/** A service: how its rows come and go, and how it answers. */
export interface Kind {
  readonly name: string;
  readonly truth?: Partial<TruthOptions>;
  readonly scenario?: ScenarioPatch;
  readonly config?: Readonly<Record<string, unknown>>;
  /** `to_date_inclusive` under plain append, which refuses to begin if the newest days prove nothing; `never`: neither is true. */
  readonly append?: 'true' | 'false' | 'never';
}

/** What happens to a run, or between two. */
export type Disturbance =
  | 'none'
  | 'cut'
  | 'early_end'
  | 'kill'
  | 'kill_step'
  | 'full_disk'
  | 'remove_day'
  | 'forget'
  | 'back_up'
  | 'restore';

/** A service over a truth, a machine with a clock, and runs of the command line; until the end of the test. */
export class World {
  readonly dir = newFolder();
  readonly clock: LeapingClock;
  readonly service: TestService;
  readonly truth: Truth;
  readonly random: SeededRandom;
  readonly kind: Kind;

  private constructor(kind: Kind, seed: number, clock: LeapingClock, truth: Truth, service: TestService) {
    this.kind = kind;
    this.random = new SeededRandom(seed);
    this.clock = clock;
    this.truth = truth;
    this.service = service;
  }

  static async open(kind: Kind, seed: number): Promise<World> {
    const clock = new LeapingClock(BEGIN);
    const truth = new Truth({ seed, zoneHours: 9, isRestless: true, ...kind.truth });
    const scenario = { ...kind.scenario, days: { zone_hours: kind.truth?.zoneHours ?? 9, ...kind.scenario?.days } };
    const service = await startTestService(scenario, { clock, truth: (day) => truth.rows(day) });
    onTestFinished(() => service.close());
    return new World(kind, seed, clock, truth, service);
  }

  /** The configuration that every kind of run has. */
  get settings(): Readonly<Record<string, unknown>> {
    return {
      base_url: this.service.url,
      service_id: SERVICE_ID,
      export_token: TOKENS.export,
      start_date: START,
      ...this.kind.config,
    };
  }

  /** Writes the configuration of the command line; returns its path. */
  config(): string {
    const path = join(this.dir, 'dfinery.json');
    const more = {
      spool_dir: join(this.dir, 'spool'),
      memory_limit: '300MB',
      erasure: { ledger_dir: join(this.dir, 'ledger') },
    };
    // Other processes may be reading it.
    writeFileSync(`${path}.new`, JSON.stringify({ ...this.settings, ...more }));
    renameSync(`${path}.new`, path);
    return path;
  }

  /** Runs the command line in this process, by the clock of the world. */
  run(words: readonly string[]): Promise<CommandOutput> {
    return runHere([...words, '--config', this.config(), '--json'], { clock: this.clock });
  }

  /** Runs it as a process whose clock shows the same time. */
  start(words: readonly string[], env: Readonly<Record<string, string>>, shell?: string): CliChild {
    const preloads = ['clock.cjs', 'kill-after.cjs'].flatMap((name) => ['-r', join(PROCESSES, name)]);
    const argv = [process.execPath, ...preloads, PROGRAM, ...words, '--config', this.config(), '--json'];
    const [program = '', ...rest] = shell === undefined ? argv : ['bash', '-c', `${shell}; exec "$@"`, 'bash', ...argv];
    return new CliChild(program, rest, { CLOCK_AT: String(this.clock.now()), TMPDIR: this.dir, ...env });
  }
}

/** Runs of `sync` into one place, with what happens between and in them, and what must hold after each. */
export class Simulation {
  readonly world: World;
  readonly place: OwnedPlace;
  /** What happened so far, for the message of a failure. */
  readonly happened: string[] = [];
  readonly #backup: string;
  readonly #forgotten = new Set<string>();
  readonly #removed = new Set<Day>();
  readonly #lost = new Set<Day>();
  /** Removed and lost days, the cursor and the start of the last run, at the time of the backup. */
  #saved: { removed: Day[]; lost: Day[]; cursor: Day; readAt: number } | undefined;
  #cursor: Day = START;
  #readAt = BEGIN;

  constructor(world: World, target: TargetName) {
    this.world = world;
    this.place = new OwnedPlace(target, world.dir);
    this.#backup = join(world.dir, 'backup');
  }

  /** Lets hours pass, then runs once. */
  async step(hours: number, disturbance: Disturbance): Promise<void> {
    const { clock, service } = this.world;
    clock.pass(hours * HOUR);
    this.happened.push(`${new Date(clock.now()).toISOString()} ${disturbance}`);
    service.setScenario({ fault: this.#faultRule(disturbance) });
    const before = service.requests().length;
    const at = clock.now();
    if (disturbance === 'kill' || disturbance === 'kill_step' || disturbance === 'full_disk')
      await this.#inProcess(disturbance);
    else await this.#between(disturbance);
    service.setScenario({ fault: () => undefined });
    const refused = service
      .requests()
      .slice(before)
      .filter(({ status, fault }) => status === 429 && fault === undefined);
    // Without a reset it asks after one minute, two, four …: seven or eight times in an hour.
    const taken = Math.ceil((clock.now() - at) / HOUR);
    const most = service.scenario.limits.names_reset ? 0 : 8 * taken;
    expect(refused.length, this.#story('exports beyond the quota')).toBeLessThanOrEqual(most);
  }

  async #between(disturbance: Disturbance): Promise<void> {
    if (disturbance === 'remove_day') await this.#removeDay();
    if (disturbance === 'back_up') this.#backUp();
    if (disturbance === 'restore') await this.#restore();
    if (disturbance === 'forget') await this.#forget();
    const at = this.world.clock.now();
    const { code, stdout, stderr } = await this.world.run(['sync', ...this.place.words]);
    this.happened.push(`  exit ${code}`);
    const mayFail = disturbance === 'cut' || disturbance === 'early_end';
    if (code !== 0 && !(mayFail && code === 3)) throw new Error(this.#story(`exit ${code}:\n${stderr}`));
    const { next_from_date: cursor, gaps } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
    if (code === 0) {
      for (const day of gaps ?? []) this.#lost.add(day);
      expect(cursor >= this.#cursor, this.#story(`cursor ${cursor} after ${this.#cursor}`)).toBe(true);
      this.#cursor = cursor;
      this.#readAt = at;
      await this.#check();
    }
  }

  /** A process that is killed, or whose disk is full. */
  async #inProcess(disturbance: 'kill' | 'kill_step' | 'full_disk'): Promise<void> {
    const { random } = this.world;
    const words = ['sync', ...this.place.words];
    if (disturbance === 'full_disk') {
      const child = this.world.start(words, {}, `ulimit -f ${random.pick([1, 8, 40])}; trap "" XFSZ`);
      const { code, signal, stderr } = await child.ended;
      this.happened.push(`  exit ${code ?? signal}`);
      expect([0, 3], this.#story(`exit ${code ?? signal} on a full disk:\n${stderr}`)).toContain(code);
      return;
    }
    const env = disturbance === 'kill_step' ? { KILL_AFTER: String(random.int(1, 12)) } : {};
    const child = this.world.start(words, env);
    const timer = setTimeout(
      () => child.process.kill('SIGKILL'),
      disturbance === 'kill' ? random.int(250, 1_500) : 60_000,
    );
    const { code, signal, stderr } = await child.ended;
    clearTimeout(timer);
    this.happened.push(`  exit ${code ?? signal}`);
    if (code !== null && code !== 0) throw new Error(this.#story(`exit ${code}:\n${stderr}`));
  }

  #faultRule(disturbance: Disturbance): FaultRule {
    const { random, clock } = this.world;
    if (disturbance === 'early_end') {
      // Clean, between two rows: nobody can tell, but a day that is read again later is then whole.
      const today = this.#today();
      let isOver = false;
      return ({ from }) => {
        if (isOver || from !== today) return undefined;
        isOver = true;
        return { kind: 'cut', at: 'between_rows', after_rows: 1 };
      };
    }
    if (disturbance !== 'cut') return () => undefined;
    const failure = JSON.stringify({ result: 'fail', message: 'client_connection_closed' });
    const faults: readonly Fault[] = [
      { kind: 'reset', after_rows: 1 },
      { kind: 'drop', at: 'between_rows', after_rows: 2 },
      { kind: 'cut', after_rows: 0 },
      refusal(200, { message: 'client_connection_closed' }),
      { kind: 'body', change: (csv) => csv + failure },
      // Without its last cell in the first row.
      { kind: 'body', change: (csv) => csv.replace(/^(.*\n.*),.*/, '$1') },
      { kind: 'refuse' },
      { kind: 'wrong_length' },
      { kind: 'gzip' },
      refusal(503),
      limited(random.pick([undefined, clock.now() + 30_000])),
    ];
    const first = random.int(1, 3);
    const drawn = Array.from({ length: random.int(1, 3) }, () => random.pick(faults));
    return (_request, nth) => drawn[nth - first];
  }

  #today(): Day {
    return dayAt(this.world.clock.now());
  }

  async #removeDay(): Promise<void> {
    const stored = [...(await this.place.stored()).keys()].sort();
    // Not a day that the next run reads anyway.
    const old = stored.filter((day) => day < addDays(this.#cursor, -2));
    if (old.length === 0) return;
    const day = this.world.random.pick(old);
    this.happened.push(`  ${day} removed`);
    await this.place.removeDay(day);
    this.#removed.add(day);
    const isExported = day > addDays(this.#today(), 1 - this.world.service.scenario.days.history_days);
    if (!isExported || this.world.random.chance(0.5)) return;
    // It counts as pruned until somebody asks for it.
    await this.#succeeds(['sync', ...this.place.words]);
    expect((await this.place.stored()).has(day), this.#story(`${day} came back unasked`)).toBe(false);
    await this.#succeeds(['sync', ...this.place.words, '--from', day, '--to', day]);
    this.#removed.delete(day);
  }

  #backUp(): void {
    if (!this.place.exists) return;
    this.place.backUp(this.#backup);
    this.#saved = { removed: [...this.#removed], lost: [...this.#lost], cursor: this.#cursor, readAt: this.#readAt };
  }

  async #restore(): Promise<void> {
    if (this.#saved === undefined) return;
    this.place.restore(this.#backup);
    const { removed, lost, cursor } = this.#saved;
    this.#cursor = cursor;
    for (const [set, days] of [
      [this.#removed, removed],
      [this.#lost, lost],
    ] as const) {
      set.clear();
      for (const day of days) set.add(day);
    }
    // What came late to these days can no longer be read.
    const oldest = addDays(this.#today(), 2 - this.world.service.scenario.days.history_days);
    for (const day of daysOf(addDays(cursor, -2), addDays(oldest, -1))) this.#lost.add(day);
    if (this.#forgotten.size > 0) await this.#purge(['--suppressed']);
  }

  async #forget(): Promise<void> {
    const member = this.world.random.pick(PEOPLE);
    this.happened.push(`  ${member} forgotten`);
    await this.#purge(['--id', member, '--by-column', 'member_no']);
    this.#forgotten.add(personOf(member));
  }

  /** Plans a purge of this place, then executes what was planned. */
  async #purge(words: readonly string[]): Promise<void> {
    if (!this.place.exists) return;
    const argv = ['forget', ...words, '--in', ...this.place.words, '--purge-only'];
    const plan = await this.#succeeds(argv);
    await this.#succeeds([...argv, '--execute', '--confirm', String(JSON.parse(plan).hash)]);
  }

  /** Runs a command that must end with 0; returns its last line. */
  async #succeeds(words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.world.run(words);
    if (code !== 0) throw new Error(this.#story(`${words.join(' ')} ended with ${code}:\n${stderr}`));
    return stdout.trimEnd().split('\n').at(-1) ?? '';
  }

  async #check(): Promise<void> {
    const problems = violations({
      stored: await this.place.stored(),
      truth: this.world.truth,
      start: START,
      cursor: this.#cursor,
      readAt: this.#readAt,
      forgotten: this.#forgotten,
      removed: this.#removed,
      lost: this.#lost,
    });
    if (problems.length > 0) throw new Error(this.#story(problems.slice(0, MOST_SHOWN).join('\n')));
  }

  /** The place agrees with itself, to its last byte. */
  async verify(): Promise<void> {
    await this.#succeeds(['verify', ...this.place.words]);
  }

  #story(what: string): string {
    return `${what}\n${this.happened.join('\n')}`;
  }
}
