import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { addDays, type Day, dayAt } from '../../src/base/days.ts';
import { Stopped } from '../../src/base/signals.ts';
import { runCommandLine } from '../../src/cli/program.ts';
import { parseScenario, type Simulator, startSimulator } from '../../src/simulator/index.ts';
import { verifyDuckDb } from '../../src/targets/duckdb/read.ts';
import { EXPORT_FAULTS } from '../simulation/faults.ts';
import { copyLiving } from '../support/copy-living.ts';
import { DEAD_PID, ownerText } from '../support/processes/lock-owner.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SERVICE_ID, TOKENS } from '../support/service/simulator.ts';
import { query } from '../support/targets/query.ts';
import { compareRows, type Differences, storedIn } from '../support/targets/stored-rows.ts';
import { until } from '../support/wait.ts';

const HOUR = 3_600_000;
const START: Day = '2026-03-02';
const STALL_MS = 600_000;
/** What a stall lasts for real; where none is to come, a machine may be slow for long before it looks like one. */
const STALLED_MS = 600;
const SLOW_MS = 60_000;

/** Faults that an extraction has to handle. */
const FAULTS: readonly object[] = [
  ...EXPORT_FAULTS,
  ...['good', 'cut', 'corrupt_trailer', 'not_gzip'].map((variant) => ({ kind: 'gzip', variant })),
];

/** Faults whose answer is right all the same. */
const HARMLESS = new Set(['slow', 'bom', 'crlf', 'gzip']);

/** A clock that moves when somebody sleeps, or is told to; a stall is over in a moment. */
class ChaosClock implements Clock {
  time: number;
  /** Whether the service may stall now. */
  mayStall = false;

  constructor(time: number) {
    this.time = time;
  }

  now = () => this.time;

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.time += Math.max(0, ms);
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }

  after(ms: number, callback: () => void): () => void {
    const stall = this.mayStall ? STALLED_MS : SLOW_MS;
    return systemClock.after(ms >= STALL_MS ? stall : ms, callback);
  }
}

/** A machine whose clock is not the service's. */
class SkewedClock implements Clock {
  readonly #true: ChaosClock;
  skew: number;

  constructor(clock: ChaosClock, skew: number) {
    this.#true = clock;
    this.skew = skew;
  }

  now = () => this.#true.time + this.skew;
  sleep = (ms: number, signal?: AbortSignal) => this.#true.sleep(ms, signal);
  after = (ms: number, callback: () => void) => this.#true.after(ms, callback);
}

type Json = Record<string, unknown>;

/** What the service is like and what it is asked, drawn from a seed. */
interface ChaosService {
  readonly scenario: Json;
  readonly config: Json;
  readonly settled: boolean;
  readonly rowsPerDay: number;
}

function drawSettings(random: SeededRandom): ChaosService {
  const settled = random.chance(0.25);
  const quota = random.pick([100, 100, 12]);
  const inclusive = random.chance(0.5);
  const selectsOn = random.pick(['server', 'correction', 'event']);
  const idsRepeat = selectsOn === 'server' && random.chance(0.4);
  const scenario: Json = {
    days: {
      to_date_inclusive: inclusive,
      selects_on: selectsOn,
      zone_hours: random.pick([-12, -5, 0, 9, 9, 14]),
      cell_zone_hours: random.pick([0, 9]),
      future: random.pick(['empty', 'error']),
    },
    columns: {
      event_name: random.pick(['event_name', 'df_event_name']),
      type_drift: random.chance(0.7),
      hostile_names: random.chance(0.3),
    },
    rows: {
      by_day: Object.fromEntries(
        random.some([1, 4, 5, 9, 16, 23], 4).map((n) => [addDays(START, n), random.pick([0, 1, 2])]),
      ),
      order: random.pick(['time', 'reverse', 'shuffled', 'items_apart']),
      late: { share: settled ? 0 : random.pick([0, 0.2]), hours: 7 },
      corrected: { share: settled ? 0 : random.pick([0, 0.2]), hours: 8 },
      longest_delay_hours: settled ? 1 : 8,
    },
    ids: {
      first_item: random.pick([0, 1]),
      duplicate_share: idsRepeat ? 0.1 : 0,
      other_item_events: random.pick(['single', 'repeat_id', 'numbered']),
    },
    format: {
      framing: random.pick(['chunked', 'length']),
      final_newline: random.chance(0.7),
      gzip: random.pick(['never', 'accepted']),
      bom: random.chance(0.2),
      crlf: random.chance(0.2),
      content_type: random.pick(['text/csv;charset=UTF-8', 'application/octet-stream', 'text/plain']),
    },
    limits: {
      exports_per_hour: quota,
      window: random.pick(['fixed', 'sliding']),
      failed_exports_count: random.chance(0.5),
      concurrent_remaining: random.pick(['actual', 'zero']),
      headers: random.pick(['x-ratelimit', 'X-Rate-Limit', 'none']),
      headers_on: random.pick(['all', 'all', '429']),
      reset: random.pick(['ms', 's', 'absent', 'nonsense', 'past']),
    },
    too_big: random.chance(0.25)
      ? { days: [addDays(START, random.int(2, 20))], status: random.pick([500, 504]) }
      : random.chance(0.3)
        ? { longest_days: random.pick([1, 2]) }
        : {},
  };
  // Where nothing is said in time, only the configuration can know.
  const { headers, headers_on, reset } = scenario.limits as Json;
  const reported = headers !== 'none' && headers_on === 'all' && (reset === 'ms' || reset === 's');
  const config: Json = {
    service_id: SERVICE_ID,
    export_token: TOKENS.export,
    start_date: START,
    window_days: random.pick([1, 1, 2, 5]),
    delivery: settled ? 'settled' : 'auto',
    to_date_inclusive: random.chance(0.2) ? String(inclusive) : 'auto',
    exports_per_hour: reported ? random.pick([100, quota]) : quota,
    max_concurrent_exports: random.pick([1, 3, 5]),
    stall_minutes: STALL_MS / 60_000,
    memory_limit: '300MB',
    ...(random.chance(0.3) && { timezone: 'Asia/Seoul' }),
  };
  return { scenario, config, settled, rowsPerDay: random.int(6, 24) };
}

interface Step {
  readonly hours: number;
  /** How far this machine's clock is ahead of the service's, and by how much that changes on the way. */
  readonly skewHours: number;
  readonly jumpHours: number;
  readonly faults: readonly object[];
  /** `kill`: what lies on the disk at that moment is what the next run finds. */
  readonly end: 'whole' | 'stop' | 'kill';
  /** Of what, and how many, the end comes after. */
  readonly after: { readonly what: 'requests' | 'answers' | 'commits' | 'turns'; readonly count: number };
}

function drawStep(random: SeededRandom, hours: number): Step {
  const what = random.pick(['requests', 'answers', 'commits', 'turns'] as const);
  const isSkewed = random.chance(0.15);
  return {
    hours,
    skewHours: isSkewed ? random.pick([-30, -1.5, 0, 1.5, 30]) : 0,
    jumpHours: isSkewed ? random.pick([-5, 0, 5]) : 0,
    faults: random.some(FAULTS, 4).map((fault) => ({
      ...fault,
      when: { operation: 'export', probability: random.pick([0.1, 0.3, 0.7]), times: random.int(1, 6) },
    })),
    end: random.pick(['whole', 'whole', 'stop', 'kill', 'kill']),
    after: { what, count: what === 'turns' ? random.int(0, 4_000) : random.int(0, 9) },
  };
}

/** Nothing happens. */
const PEACE: Step = {
  hours: 0,
  skewHours: 0,
  jumpHours: 0,
  faults: [],
  end: 'whole',
  after: { what: 'turns', count: 0 },
};

export interface RunResult {
  readonly code: number;
  readonly log: readonly string[];
  readonly summary: Json;
  readonly requests: number;
}

export interface ChaosCounts {
  exports: number;
  faults: number;
  ends: number;
  refused429: number;
  rows: number;
  commits: number;
}

/** A month of one service under one seed. */
export class Chaos {
  readonly dir = mkdtempSync(join(tmpdir(), 'dfinery-chaos-'));
  readonly file = join(this.dir, 'events.duckdb');
  readonly spool = join(this.dir, 'spool');
  readonly random: SeededRandom;
  readonly clock = new ChaosClock(Date.parse(`${START}T00:00:00Z`) + 7 * 24 * HOUR);
  readonly service: ChaosService;
  readonly runs: RunResult[] = [];
  readonly sim: Simulator;
  /** Once the clock, or the service's word on what is left, was wrong, so is the quota's count: refusals are heard. */
  #wasMisled = false;
  readonly counts: ChaosCounts = { exports: 0, faults: 0, ends: 0, refused429: 0, rows: 0, commits: 0 };

  private constructor(random: SeededRandom, service: ChaosService, sim: Simulator, clock: ChaosClock) {
    this.random = random;
    this.service = service;
    this.sim = sim;
    this.clock = clock;
  }

  static async start(seed: number): Promise<Chaos> {
    const random = new SeededRandom(seed);
    const clock = new ChaosClock(Date.parse(`${START}T00:00:00Z`) + (random.int(4, 9) * 24 + random.int(0, 23)) * HOUR);
    const service = drawSettings(random);
    const sim = await startSimulator({
      seed,
      clock,
      tokens: TOKENS,
      serviceId: SERVICE_ID,
      rowsPerDay: service.rowsPerDay,
      scenario: parseScenario(service.scenario),
    });
    return new Chaos(random, service, sim, clock);
  }

  /** Runs under faults and ends for about three weeks, then in peace until all that was read is final. */
  async runSteps(steps: number): Promise<void> {
    writeFileSync(
      join(this.dir, 'config.json'),
      JSON.stringify({ ...this.service.config, base_url: this.sim.url, spool_dir: this.spool }),
    );
    for (let i = 0; i < steps; i++)
      await this.step(drawStep(this.random, this.random.int(1, Math.floor((17 * 24) / steps))));
    for (let i = 0; i < 3; i++) await this.peace();
  }

  async step(step: Step): Promise<void> {
    this.clock.time += step.hours * HOUR;
    this.sim.setScenario({ faults: step.faults });
    this.clock.mayStall = step.faults.some((fault) => 'kind' in fault && fault.kind === 'stall');
    if (step.faults.some((fault) => 'remaining' in fault)) this.#wasMisled = true;
    const result = await this.run(step);
    if (result.code !== 0 && result.code !== 3)
      throw new Error(`exit ${result.code}: ${result.log.slice(-5).join('\n')}`);
    this.once(result);
  }

  async peace(): Promise<void> {
    this.clock.time += 25 * HOUR;
    this.sim.setScenario({ faults: [] });
    this.clock.mayStall = false;
    const result = await this.run(PEACE);
    this.#frugal(result);
    if (result.code !== 0) throw new Error(`in peace: exit ${result.code}: ${result.log.slice(-5).join('\n')}`);
    this.once(result);
  }

  /** Where nothing is in doubt any more and nothing fails, an export a window is all it takes. */
  #frugal({ requests, summary, log }: RunResult): void {
    const { days, too_big: tooBig } = this.sim.scenario;
    if (days.future === 'error' || tooBig.days.length > 0 || tooBig.longest_days !== undefined) return;
    const isOpen =
      log.some((line) => / proves that | no_final_newline/.test(line)) || summary.to_date_inclusive === null;
    if (isOpen || requests <= Number(summary.windows)) return;
    throw new Error(`${requests} exports for ${summary.windows} windows\n${log.join('\n')}`);
  }

  /** Within a run no export is answered well twice, but for the one that shows that bodies end without a line end. */
  private once({ requests, log }: RunResult): void {
    const seen = new Map<string, number>();
    for (const { status, outcome, fault, body, done } of this.sim.requests().slice(-requests || Infinity)) {
      if (status === 429 && fault === undefined && !this.#wasMisled)
        throw new Error(`a 429: ${outcome}\n${log.join('\n')}`);
      const well = done && status === 200 && (outcome === 'ok' || (fault !== undefined && HARMLESS.has(fault)));
      if (well) seen.set(JSON.stringify(body), (seen.get(JSON.stringify(body)) ?? 0) + 1);
    }
    const again = [...seen].filter(([, count]) => count > 1);
    const most = (this.service.scenario.format as Json).final_newline === false ? 1 : 0;
    const gzip = log.some((line) => line.includes('gzip') || line.includes('no byte for'));
    if (again.length > most && !gzip) throw new Error(`asked again: ${JSON.stringify(again)}\n${log.join('\n')}`);
  }

  async run(step: Step): Promise<RunResult> {
    const machine = new SkewedClock(this.clock, step.skewHours * HOUR);
    if (step.skewHours !== 0 || step.jumpHours !== 0) this.#wasMisled = true;
    const controller = new AbortController();
    const before = this.sim.requests().length;
    const log: string[] = [];
    const results: string[] = [];
    const terminal = {
      note: (line: string) => log.push(line),
      record: async (line: string) => void log.push(line),
      result: (line: string) => results.push(line),
      interactive: false,
      columns: 80,
    };
    const argv = [
      'sync',
      'duckdb',
      this.file,
      '--config',
      join(this.dir, 'config.json'),
      '--json',
      '--log-level',
      'debug',
    ];
    const work = runCommandLine(argv, { terminal, clock: machine, env: () => undefined, signal: controller.signal });
    const over = { is: false };
    const restore = step.end === 'whole' ? undefined : this.#ender(step, controller, { before, log, over });
    const jump = setTimeout(() => {
      machine.skew += step.jumpHours * HOUR;
    }, 150);
    const code = await work;
    clearTimeout(jump);
    over.is = true;
    await (await restore)?.();
    // The service has noticed that everybody is gone.
    await until(() => this.sim.requests().every(({ done }) => done));
    const requests = this.sim.requests().length - before;
    const summary = JSON.parse(results.at(-1) ?? '{}') as Json;
    const result = { code, log, summary, requests };
    this.runs.push(result);
    this.#count(result);
    return result;
  }

  #count({ requests, summary }: RunResult): void {
    const seen = requests === 0 ? [] : this.sim.requests().slice(-requests);
    this.counts.exports += requests;
    this.counts.faults += seen.filter(({ fault }) => fault !== undefined).length;
    if (!this.#wasMisled)
      this.counts.refused429 += seen.filter(({ status, fault }) => status === 429 && fault === undefined).length;
    this.counts.commits += Number(summary.windows ?? 0);
    this.counts.rows += Number(summary.rows ?? 0);
  }

  async #ender(
    { after, end }: Step,
    controller: AbortController,
    { before, log, over }: { readonly before: number; readonly log: readonly string[]; readonly over: { is: boolean } },
  ): Promise<(() => void) | undefined> {
    const reached = (turn: number) => {
      const seen = this.sim.requests().slice(before);
      if (after.what === 'turns') return turn >= after.count;
      if (after.what === 'requests') return seen.length >= after.count;
      if (after.what === 'answers') return seen.filter(({ done }) => done).length >= after.count;
      return log.filter((line) => line.includes('is committed')).length >= after.count;
    };
    for (let turn = 0; !reached(turn); turn++) {
      if (over.is) return undefined;
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (over.is) return undefined;
    this.counts.ends++;
    const restore = end === 'kill' ? this.#remembered() : undefined;
    controller.abort(new Stopped('SIGTERM'));
    return restore;
  }

  /** The spool as it is now; called later, puts it back as a dead process would have left it. */
  #remembered(): () => void {
    const copy = mkdtempSync(join(tmpdir(), 'dfinery-chaos-'));
    copyLiving(this.spool, copy);
    return () => {
      rmSync(this.spool, { recursive: true, force: true });
      copyLiving(copy, this.spool);
      rmSync(copy, { recursive: true });
      for (const name of readdirSync(this.spool, { recursive: true }).map(String)) {
        const path = join(this.spool, name);
        if (name.endsWith('.lease')) writeFileSync(path, ownerText({ pid: DEAD_PID }));
        if (/quota-[0-9a-f]+\.json$/.test(name)) {
          writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`"pid":${process.pid}`, `"pid":${DEAD_PID}`));
        }
      }
    };
  }

  /** The last day whose rows can no longer change, and the cursor there should be. */
  wanted(): { readonly cursor: Day; readonly finalThrough: Day } {
    const cursor = dayAt(this.clock.now() - (this.service.settled ? 3 * HOUR : 0), -12);
    return { cursor, finalThrough: addDays(cursor, this.service.settled ? -1 : -2) };
  }

  async differences(): Promise<Differences> {
    const { finalThrough } = this.wanted();
    const stored = await storedIn(this.file);
    const truth = this.sim.truth({ from: START, to: finalThrough });
    const maybe = this.sim.truth({ from: addDays(finalThrough, 1), to: addDays(finalThrough, 5) });
    return compareRows(stored, truth, maybe, this.service.config.timezone === undefined ? undefined : 9);
  }

  verify() {
    return verifyDuckDb({ file: this.file, lockWaitMs: 0, memoryLimit: '300MB', clock: systemClock });
  }

  async cursor(): Promise<unknown> {
    const [{ state }] = await query(this.file, 'SELECT CAST(state AS VARCHAR) AS state FROM _dfinery_state');
    return (JSON.parse(String(state)) as Json).from_date;
  }

  /** What stays in the spool folder, the quota's ledger aside. */
  leftovers(): string[] {
    return readdirSync(this.spool, { recursive: true })
      .map(String)
      .filter((name) => /\.(csv|json|part|tmp|lease)$/.test(name) && !/quota-[0-9a-f]+\.json|malformed-/.test(name));
  }

  async close(): Promise<void> {
    await this.sim.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
