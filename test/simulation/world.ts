import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stopped } from '../../src/base/signals.ts';
import { parseScenario, type Simulator, startSimulator } from '../../src/simulator/index.ts';
import { SERVICE_ID } from '../support/service/simulator.ts';
import { type Line, runLine, shownLine } from './command-line.ts';
import { randomOf, seedChance } from './machine/chance.ts';

import { bury } from './machine/engine.ts';
import { forgetProcesses } from './machine/identity.ts';
import { forgetInstants, noteInstant } from './machine/instants.ts';
import { serveIn } from './machine/network.ts';
import { MachineProcess } from './machine/process.ts';
import { clockOf, running, Scheduler } from './machine/scheduler.ts';
import { type Act, type End, START, type Story } from './story.ts';

export const HOUR = 3_600_000;
/** Where nothing but memory is written, if the machine has such a place. */
const ROOT = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const KEYS = { suppression: 's'.repeat(40), ledger: 'l'.repeat(40) };
/** What is asked for beside the system columns: few, as every one costs time. */
export const PROPERTIES = ['member_no', 'level', 'memo', 'Grade', 'grade', 'df_items_color', 'plan code', 'later'];

/** How a process ended; without a code it was killed. */
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

/** A service, a machine and a folder, at an instant of their own. */
export class World {
  readonly story: Story;
  readonly scheduler: Scheduler;
  readonly dir: string;
  readonly place: string;
  readonly spool: string;
  readonly ledger: string;
  readonly suppression: string;
  readonly service: Simulator;
  /** The same service, had no row ever come late, been corrected or deleted. */
  readonly original: Simulator;
  /** The same with rows corrected as there. */
  readonly corrected: Simulator;
  /** Every run so far, oldest first. */
  readonly history: string[] = [];
  tokens = { export: 'export-token-1', import: 'import-token-1' };

  private constructor(story: Story, parts: Pick<World, 'scheduler' | 'dir' | 'service' | 'original' | 'corrected'>) {
    this.story = story;
    this.scheduler = parts.scheduler;
    this.dir = parts.dir;
    this.service = parts.service;
    this.original = parts.original;
    this.corrected = parts.corrected;
    this.place = join(this.dir, { duckdb: 'events.duckdb', parquet: 'lake', delta: 'delta' }[story.target]);
    this.spool = join(this.dir, 'spool');
    this.ledger = join(this.dir, 'ledger');
    this.suppression = join(this.dir, 'suppression.jsonl');
  }

  static async start(story: Story): Promise<World> {
    seedChance(story.order + 1);
    forgetInstants();
    forgetProcesses();
    const begin = Date.parse(`${START}T00:00:00Z`) + story.hoursBefore * HOUR;
    const scheduler = new Scheduler(begin, story.order === 0 ? undefined : randomOf(story.order));
    noteInstant(begin);
    serveIn(scheduler);
    const dir = mkdtempSync(join(ROOT, 'dfinery-world-'));
    const common = {
      seed: 7,
      clock: clockOf(scheduler, () => 0),
      serviceId: SERVICE_ID,
      tokens: { export: 'export-token-1', import: 'import-token-1' },
      rowsPerDay: story.rowsPerDay,
    };
    const rows = { ...(story.scenario.rows as object), ...WHOLE };
    const corrected = parseScenario({ ...story.scenario, rows });
    const original = parseScenario({ ...story.scenario, rows: { ...rows, corrected: { share: 0 } } });
    const world = new World(story, {
      scheduler,
      dir,
      original: await startSimulator({ ...common, scenario: original }),
      corrected: await startSimulator({ ...common, scenario: corrected }),
      service: await startSimulator({ ...common, scenario: parseScenario(story.scenario) }),
    });
    mkdirSync(join(dir, 'tmp'), { mode: 0o700 });
    process.env.TMPDIR = join(dir, 'tmp');
    writeFileSync(world.suppression, '', { mode: 0o600 });
    world.configure();
    return world;
  }

  /** Writes the configurations with the tokens that are known now. */
  configure(): void {
    const common = { base_url: this.service.url, service_id: SERVICE_ID };
    const source = {
      ...common,
      ...this.story.config,
      export_token: this.tokens.export,
      start_date: START,
      properties: PROPERTIES,
      properties_condition_type: 'include',
      spool_dir: this.spool,
      memory_limit: '300MB',
      suppression_file: this.suppression,
      suppression_key: KEYS.suppression,
    };
    const destination = {
      ...common,
      import_token: this.tokens.import,
      max_deletions_per_sync: 3,
      ledger_dir: this.ledger,
      ...(this.story.hasLedgerKey && { ledger_key: KEYS.ledger }),
    };
    writeFileSync(join(this.dir, 'source.json'), JSON.stringify(source), { mode: 0o600 });
    writeFileSync(join(this.dir, 'destination.json'), JSON.stringify(destination), { mode: 0o600 });
  }

  /** Lets time pass in which nothing runs. */
  pass(hours: number): void {
    this.scheduler.now += hours * HOUR;
    const until = Date.now() + 5;
    while (Date.now() < until);
    noteInstant(this.scheduler.now);
  }

  /** Runs command lines at the same time, each a process, until all of them have ended or were killed. */
  async run(lines: readonly { readonly line: Line; readonly how: SpawnOptions }[]): Promise<Ended[]> {
    const all = lines.map(({ line, how }) => this.#spawn(line, how));
    await this.scheduler.until(() => all.every(({ ended, process }) => process.isDead || ended.code !== undefined));
    await this.scheduler.settle();
    for (const { process } of all) {
      if (process.isDead) bury(process);
      process.isDead = true;
    }
    for (const { ended } of all) this.history.push(`${ended.what}: ${ended.code ?? 'killed'}`);
    noteInstant(this.scheduler.now);
    return all.map(({ ended }) => ended);
  }

  async runOne(line: Line, how: SpawnOptions = {}): Promise<Ended> {
    return (await this.run([{ line, how }]))[0];
  }

  #spawn(line: Line, { end, disk, clock }: SpawnOptions) {
    const controller = new AbortController();
    const stop = end?.how === 'stop' ? () => controller.abort(new Stopped('SIGTERM')) : undefined;
    const process = new MachineProcess(this.scheduler, end, stop);
    if (disk !== undefined) process.diskLeft = disk;
    const log: string[] = [];
    const results: string[] = [];
    const ended: { -readonly [K in keyof Ended]: Ended[K] } = {
      what: shownLine(line),
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
    const env = (name: string) => (name === 'DFINERY_SUPPRESSION_KEY' ? KEYS.suppression : undefined);
    const io = { terminal, clock: clockOf(this.scheduler, clock?.skewMs ?? (() => 0)), env, signal: controller.signal };
    running.run(process, () => {
      void runLine(line, io).then((code) => {
        // Nobody hears what a dead process says in its last breath.
        if (!process.isDead) ended.code = code;
      });
    });
    return { ended, process };
  }

  /** What a process of a story runs. */
  lineOf({ what }: Pick<Act, 'what'>): Line {
    const { target, tables } = this.story;
    const place = { [target === 'duckdb' ? 'file' : target === 'parquet' ? 'dir' : 'url']: this.place };
    if (what === 'compact') return { command: `compact ${target}`, options: place };
    const config = join(this.dir, 'source.json');
    const refresh = what === 'refresh' && { fullRefresh: true };
    return { command: `sync ${target}`, options: { ...place, config, tables, ...refresh } };
  }

  get verifyLine(): Line {
    return { ...this.lineOf({ what: 'compact' }), command: `verify ${this.story.target}` };
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.original.close();
    await this.corrected.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Every row is there as soon as it can be, and stays. */
const WHOLE = { late: { share: 0 }, of_deleted_profiles: 'kept' };
