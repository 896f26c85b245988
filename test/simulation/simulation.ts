import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../../src/base/random.ts';
import { Stopped } from '../../src/base/signals.ts';
import { parseScenario, type Simulator, startSimulator } from '../../src/simulator/index.ts';
import { SERVICE_ID } from '../support/service/simulator.ts';
import type { End } from './actions.ts';
import { type Line, runLine, shownLine } from './command-line.ts';
import { HOUR, KEYS, START } from './common.ts';
import { runVerb, type Verb } from './connectors.ts';
import { randomOf, seedChance } from './machine/chance.ts';
import { closeAfterDeath } from './machine/engine.ts';
import { forgetProcesses } from './machine/identity.ts';
import { forgetInstants, noteInstant } from './machine/instants.ts';
import { forgetNames, keepNamesIn } from './machine/names.ts';
import { serveIn } from './machine/network.ts';
import { forgetAllUnsynced, loseUnsynced } from './machine/power.ts';
import { MachineProcess } from './machine/process.ts';
import { clockOf, running, Scheduler } from './machine/scheduler.ts';
import { type Held, type SimulatedTarget, type StoredTarget, TARGET_NAMES, TARGETS } from './places.ts';
import { Platform } from './platform.ts';
import type { TestCase } from './test-case.ts';

const HALF_DAY = 12 * HOUR;
/** A folder in memory, if the machine has one. */
const ROOT = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** The work of a process: a command line, or a verb of a connector. */
export type Work = Line | Verb;

/** How a process ended; `code` is undefined if it was killed. */
export interface Ended {
  readonly what: string;
  readonly code: number | undefined;
  readonly log: readonly string[];
  readonly results: readonly string[];
  readonly process: MachineProcess;
}

export interface SpawnOptions {
  readonly end?: End | undefined;
  readonly disk?: number | undefined;
  readonly clock?: { readonly skewMs: () => number };
}

/** A service, a machine and a folder, with a clock of their own. */
export class Simulation {
  readonly testCase: TestCase;
  readonly scheduler: Scheduler;
  readonly dir: string;
  /** The target; undefined for the platform. */
  readonly target: SimulatedTarget | undefined;
  readonly place: string;
  readonly spool: string;
  readonly ledger: string;
  readonly suppression: string;
  /** The place of another user, who loads the same days into another target. */
  readonly other: string;
  readonly otherTarget: StoredTarget;
  /** The path of the copy for readers. */
  readonly published: string;
  readonly service: Simulator;
  /** The service as it would be if no row were ever late, corrected or deleted. */
  readonly original: Simulator;
  /** The service of `original` with corrected rows. */
  readonly corrected: Simulator;
  /** Every run so far, oldest first. */
  readonly history: string[] = [];
  /** The platform that runs the Airbyte connectors. */
  readonly platform = new Platform();
  readonly #processes = new Set<MachineProcess>();
  /** Decides how much of what is not synced a power cut takes: everything if `order` is 0. */
  readonly #powerChance: Random;
  tokens = { export: 'export-token-1', import: 'import-token-1' };

  private constructor(
    testCase: TestCase,
    parts: Pick<Simulation, 'scheduler' | 'dir' | 'service' | 'original' | 'corrected'>,
  ) {
    this.testCase = testCase;
    this.#powerChance = testCase.order === 0 ? () => 0 : randomOf(testCase.order + 2);
    this.scheduler = parts.scheduler;
    this.dir = parts.dir;
    this.service = parts.service;
    this.original = parts.original;
    this.corrected = parts.corrected;
    this.target = testCase.target === 'airbyte' ? undefined : TARGETS[testCase.target];
    this.place = join(this.dir, this.target?.place ?? 'platform');
    this.spool = join(this.dir, 'spool');
    this.ledger = join(this.dir, 'ledger');
    this.suppression = join(this.dir, 'suppression.jsonl');
    this.other = join(this.dir, 'other');
    const after = (TARGET_NAMES as readonly string[]).indexOf(testCase.target) + 1;
    this.otherTarget = TARGET_NAMES[after % TARGET_NAMES.length];
    this.published = join(this.dir, 'published.duckdb');
  }

  static async start(testCase: TestCase): Promise<Simulation> {
    seedChance(testCase.order + 1);
    forgetInstants();
    forgetProcesses();
    forgetAllUnsynced();
    const begin = Date.parse(`${START}T00:00:00Z`) + testCase.hoursBefore * HOUR;
    const scheduler = new Scheduler(begin, testCase.order === 0 ? undefined : randomOf(testCase.order));
    noteInstant(begin);
    serveIn(scheduler);
    const dir = mkdtempSync(join(ROOT, 'dfinery-simulation-'));
    const common = {
      seed: 7,
      clock: clockOf(scheduler, () => 0),
      serviceId: SERVICE_ID,
      tokens: { export: 'export-token-1', import: 'import-token-1' },
      rowsPerDay: testCase.rowsPerDay,
    };
    const { latencyMs } = testCase;
    const rows = { ...(testCase.scenario.rows as object), ...WHOLE };
    const corrected = parseScenario({ ...testCase.scenario, rows });
    const original = parseScenario({ ...testCase.scenario, rows: { ...rows, corrected: { share: 0 } } });
    const simulation = new Simulation(testCase, {
      scheduler,
      dir,
      original: await startSimulator({ ...common, scenario: original }),
      corrected: await startSimulator({ ...common, scenario: corrected }),
      service: await startSimulator({ ...common, latencyMs, scenario: parseScenario(testCase.scenario) }),
    });
    mkdirSync(join(dir, 'tmp'), { mode: 0o700 });
    keepNamesIn(join(dir, 'aside'));
    process.env.TMPDIR = join(dir, 'tmp');
    writeFileSync(simulation.suppression, '', { mode: 0o600 });
    return simulation;
  }

  /** Advances the clock while nothing runs; with `beforeNoonMs` to this long before the next noon in UTC. */
  pass(hours: number, beforeNoonMs?: number): void {
    this.scheduler.now += hours * HOUR;
    // A machine syncs names on its own in less time than that.
    if (hours > 0) forgetNames();
    if (beforeNoonMs !== undefined) {
      const noon = Math.ceil((this.scheduler.now + beforeNoonMs - HALF_DAY) / (2 * HALF_DAY)) * 2 * HALF_DAY + HALF_DAY;
      this.scheduler.now = noon - beforeNoonMs;
    }
    const until = Date.now() + 5;
    while (Date.now() < until);
    noteInstant(this.scheduler.now);
  }

  /** The present content of the target. */
  async held(): Promise<Held> {
    return this.target === undefined ? this.platform.held : this.target.held(this.place);
  }

  /** Runs commands at the same time, each in a process, until all of them have ended or were killed. */
  async run(lines: readonly { readonly line: Work; readonly how: SpawnOptions }[]): Promise<Ended[]> {
    const all = lines.map(({ line, how }) => this.#spawn(line, how));
    await this.scheduler.until(() => all.every(({ ended, process }) => process.isDead || ended.code !== undefined));
    await this.scheduler.settle();
    for (const { process } of all) {
      if (process.isDead) closeAfterDeath(process);
      if (process.isDead) this.platform.ended(undefined);
      process.isDead = true;
      this.#processes.delete(process);
    }
    for (const { ended } of all) this.history.push(`${ended.what}: ${ended.code ?? 'killed'}`);
    noteInstant(this.scheduler.now);
    return all.map(({ ended }) => ended);
  }

  async runOne(line: Work, how: SpawnOptions = {}): Promise<Ended> {
    return (await this.run([{ line, how }]))[0];
  }

  /** Kills every process, and takes back what was not synced. */
  #cutPower(): void {
    for (const process of this.#processes) process.kill();
    loseUnsynced(this.dir, this.#powerChance);
  }

  #spawn(line: Work, { end, disk, clock }: SpawnOptions) {
    const controller = new AbortController();
    const before = {
      stop: () => controller.abort(new Stopped('SIGTERM')),
      power: () => this.#cutPower(),
      kill: undefined,
    };
    const process = new MachineProcess(this.scheduler, end, end && before[end.how]);
    if (disk !== undefined) process.diskLeft = disk;
    process.diskMs = this.testCase.diskMs;
    process.place = 'command' in line && Object.values(line.options).includes(this.other) ? this.other : this.place;
    this.#processes.add(process);
    const log: string[] = [];
    const results: string[] = [];
    const ended: { -readonly [K in keyof Ended]: Ended[K] } = {
      what: 'connector' in line ? line.words[0] : shownLine(line),
      code: undefined,
      log,
      results,
      process,
    };
    const terminal = {
      note: (line: string) => void log.push(line),
      record: async (line: string) => void log.push(line),
      result: (line: string) => void results.push(line),
      interactive: false,
      columns: 80,
    };
    const hash = this.testCase.hidden.hashed.length > 0 ? KEYS.hash : undefined;
    const variables = new Map([
      ['DFINERY_SUPPRESSION_KEY', KEYS.suppression],
      ['DFINERY_HASH_KEY', hash],
    ]);
    const env = (name: string) => variables.get(name);
    const io = { terminal, clock: clockOf(this.scheduler, clock?.skewMs ?? (() => 0)), env, signal: controller.signal };
    running.run(process, () => {
      const work = 'connector' in line ? runVerb(line, io) : runLine(line, io);
      void work.then((code) => {
        // A killed process has no exit code.
        if (!process.isDead) ended.code = 'connector' in line ? line.ended(code) : code;
      });
    });
    return { ended, process };
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.original.close();
    await this.corrected.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Every row is exported from its day on, and stays. */
const WHOLE = { late: { share: 0 }, of_deleted_profiles: 'kept' };
