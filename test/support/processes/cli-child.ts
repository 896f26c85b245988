import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day, dayAt } from '../../../src/base/days.ts';
import { newFolder } from '../new-folder.ts';
import { SERVICE_ID, startTestService, TOKENS } from '../service/start-service.ts';
import type { ScenarioPatch, TestService, TestServiceOptions } from '../service/test-service.ts';
import { query } from '../targets/query.ts';
import { until } from '../wait.ts';
import { type CommandOutput, runHere } from './command-line.ts';

/** The built command line; `npm test` builds it first. */
export const PROGRAM = process.env.DFINERY_CLI ?? resolve(import.meta.dirname, '../../../dist/bin/dfinery-elt.js');

/** One today for all of a test file: midnight may pass in the middle of it. */
const TODAY = dayAt(systemClock.now());
export const daysBack = (count: number): Day => addDays(TODAY, -count);

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Json = Record<string, unknown>;

/** A run of the command line as a process of its own. */
export class CliChild {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(program: string, argv: readonly string[], env: Record<string, string>) {
    this.process = spawn(program, argv, { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, ...env } });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve, reject) => {
      this.process.once('error', reject);
      this.process.once('close', (code, signal) => {
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Resolves when stderr has what is looked for; throws when the process ends before. */
  async says(what: string, times = 1): Promise<void> {
    const hasSaid = () => this.stderr.split(what).length > times;
    let isOver = false;
    void this.ended.finally(() => {
      isOver = true;
    });
    await until(() => hasSaid() || isOver);
    if (!hasSaid()) throw new Error(`it never said ${what} ${times} times:\n${this.stderr}`);
  }
}

/** A folder with a configuration, a database, a spool; and a simulator by the system's clock. */
export class CliFixture {
  readonly dir = newFolder();
  readonly file = join(this.dir, 'events.duckdb');
  readonly spool = join(this.dir, 'spool');
  readonly sim: TestService;
  readonly #children = new Set<CliChild>();
  #configs = 0;

  private constructor(sim: TestService) {
    this.sim = sim;
  }

  static async start(scenario: ScenarioPatch = {}, more: Partial<TestServiceOptions> = {}): Promise<CliFixture> {
    return new CliFixture(await startTestService(scenario, { clock: systemClock, rowsPerDay: 60, ...more }));
  }

  /** The service and the spool folder as variables. */
  get variables(): Record<string, string> {
    return {
      DFINERY_BASE_URL: this.sim.url,
      DFINERY_SERVICE_ID: SERVICE_ID,
      DFINERY_EXPORT_TOKEN: TOKENS.export,
      DFINERY_SPOOL_DIR: this.spool,
    };
  }

  config(more: Json = {}): string {
    const path = join(this.dir, `config-${++this.#configs}.json`);
    const value = {
      base_url: this.sim.url,
      service_id: SERVICE_ID,
      export_token: TOKENS.export,
      spool_dir: this.spool,
      memory_limit: '300MB',
      start_date: daysBack(7),
      end_date: daysBack(2),
      ...more,
    };
    writeFileSync(path, JSON.stringify(value));
    return path;
  }

  start(argv: readonly string[], env: Record<string, string> = {}): CliChild {
    return this.#started(new CliChild(process.execPath, [PROGRAM, ...argv], { TMPDIR: this.dir, ...env }));
  }

  /** Starts the command line through a program that gets it as its last words. */
  startWords([command, ...words]: readonly string[], argv: readonly string[], env: Record<string, string> = {}) {
    const all = [...words, process.execPath, PROGRAM, ...argv];
    return this.#started(new CliChild(command ?? '', all, { TMPDIR: this.dir, ...env }));
  }

  /**
   * Runs the command line in this process, which is quicker: for tests that do not depend on the start of a process,
   * its signals or its streams.
   */
  run(argv: readonly string[], env: Record<string, string> = {}): Promise<CommandOutput> {
    return runHere(argv, { env });
  }

  sync(config: Json = {}, more: readonly string[] = []): Promise<CommandOutput> {
    return this.run(this.syncArgs(config, more));
  }

  syncArgs(config: Json = {}, more: readonly string[] = []): string[] {
    return this.syncInto('duckdb', this.file, config, more);
  }

  syncInto(target: string, place: string, config: Json, more: readonly string[] = []): string[] {
    return ['sync', target, place, '--config', this.config(config), '--json', ...more];
  }

  #started(child: CliChild): CliChild {
    this.#children.add(child);
    return child;
  }

  async verify(file = this.file) {
    return summaryIn(await this.run(['verify', 'duckdb', file, '--json'])).differences;
  }

  async rows(file = this.file): Promise<number> {
    const [{ n }] = await query(file, 'SELECT count(*) AS n FROM events');
    return Number(n);
  }

  /** Files of the spool folder. */
  spooled(folder = this.spool): string[] {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name);
  }

  async close(): Promise<void> {
    for (const { process } of this.#children) process.kill('SIGKILL');
    // A child that still writes would put files into folders that are being removed.
    await Promise.allSettled([...this.#children].map(({ ended }) => ended));
    await this.sim.close();
  }
}

/** The summary: the last line of stdout. */
export const summaryIn = ({ stdout }: Pick<Ended, 'stdout'>): Json =>
  JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Json;
