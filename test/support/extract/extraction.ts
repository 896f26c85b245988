import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../../src/base/clock.ts';
import { type Day, daysOf } from '../../../src/base/days.ts';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import { extractWindows } from '../../../src/extract/extract.ts';
import { type Plan, type PlanInput, type PlanSettings, planRun } from '../../../src/extract/plan/plan.ts';
import type { ExtractDeps, ExtractOptions } from '../../../src/extract/ports.ts';
import { newTally, type Tally } from '../../../src/extract/summary.ts';
import type { PriorLoads, Receipt, State, Window } from '../../../src/extract/window.ts';
import { copyLiving } from '../chaos/copy.ts';
import { DEAD_PID, holderText } from '../processes/holder.ts';
import { at, FakeClock, FakeService, type FakeServiceSettings } from './fake-service.ts';

export * from './fake-service.ts';

/** A target that keeps rows by id, receipts, and the state, as every sink does. */
export class FakeTarget {
  state: State | undefined;
  readonly covered = new Set<Day>();
  readonly rows = new Map<string, string>();
  /** Ids in the order they were appended, repetitions included. */
  readonly appended: string[] = [];
  readonly receipts: Receipt[] = [];

  prior(more: Partial<PriorLoads> = {}): PriorLoads {
    return { state: this.state, covered: new Set(this.covered), eventNames: [], ...more };
  }

  async commit(window: Window): Promise<void> {
    for (const file of window.files) {
      const [header, ...lines] = (await readFile(file.path, 'utf8')).trimEnd().split('\n');
      const id = header.split(',').indexOf('df_event_detail_log_id');
      for (const line of lines) {
        const key = line.split(',')[id];
        this.rows.set(key, line);
        this.appended.push(key);
      }
    }
    const { covers_from: first, covers_to: last } = window.receipt;
    if (last !== null) for (const day of daysOf(first, last)) this.covered.add(day);
    this.receipts.push(window.receipt);
    this.state = JSON.parse(JSON.stringify(window.state)) as State;
  }

  ids(): string[] {
    return [...this.rows.keys()].sort();
  }
}

export const SETTINGS: PlanSettings = {
  baseUrl: 'http://127.0.0.1:1',
  serviceId: 'svc',
  events: [],
  eventsCondition: 'all',
  properties: [],
  propertiesCondition: 'all',
  columnsDrop: [],
  columnsHash: [],
  hashKey: undefined,
  startDate: undefined,
  endDate: undefined,
  windowDays: 1,
  lookbackDays: 1,
  settleHours: 3,
  toDateInclusive: 'auto',
  historyDays: 30,
  onGap: 'fail',
};

export const planFor = (
  clock: Clock,
  prior: PriorLoads,
  settings: Partial<PlanSettings>,
  more: Partial<PlanInput> = {},
): Plan => planRun({ settings: { ...SETTINGS, ...settings }, delivery: 'fresh', prior, now: clock.now(), ...more });

/** A spool folder of one test, a service, a clock, a target, and the runs between them. */
export class Fixture {
  readonly spoolDir = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
  readonly clock: FakeClock;
  readonly service: FakeService;
  readonly log: LogEvent[] = [];
  target = new FakeTarget();
  controller = new AbortController();
  options: Partial<ExtractOptions> = {};
  tally: Tally = newTally();

  constructor(now: string, serviceSettings: Partial<FakeServiceSettings>) {
    this.clock = new FakeClock(at(now));
    this.service = new FakeService(this.clock, serviceSettings);
  }

  deps(): ExtractDeps {
    this.tally = newTally();
    return {
      service: this.service,
      clock: this.clock,
      random: () => 0.5,
      logger: createLogger(
        (event) => this.log.push(event),
        'debug',
        (text) => text,
      ),
      signal: this.controller.signal,
      spoolDir: this.spoolDir,
      tally: this.tally,
      options: { maxConcurrentExports: 3, emptyBody: 'retry', timezone: undefined, ...this.options },
    };
  }

  windows(settings: Partial<PlanSettings> = {}, more: Partial<PlanInput> = {}, prior: Partial<PriorLoads> = {}) {
    return extractWindows(planFor(this.clock, this.target.prior(prior), settings, more), this.deps());
  }

  /** One run to its end; `crashAfter` windows are committed before the consumer fails. */
  async run(
    settings: Partial<PlanSettings> = {},
    more: Partial<PlanInput> = {},
    crashAfter = Number.POSITIVE_INFINITY,
  ) {
    let count = 0;
    for await (const window of this.windows(settings, more)) {
      if (count++ === crashAfter) break;
      await this.target.commit(window);
    }
    return this;
  }

  /** Ends an extraction as `kill -9` would: what lies in the spool at this moment stays, and its lease is a dead one. */
  async kill(windows: AsyncGenerator<Window>): Promise<void> {
    const copy = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
    copyLiving(this.spoolDir, copy);
    await windows.return(undefined);
    rmSync(this.spoolDir, { recursive: true });
    copyLiving(copy, this.spoolDir);
    rmSync(copy, { recursive: true });
    for (const name of readdirSync(this.spoolDir, { recursive: true }).map(String)) {
      const dead = holderText({ pid: DEAD_PID });
      if (name.endsWith('.lease')) writeFileSync(join(this.spoolDir, name), dead);
    }
  }

  events(name: string): LogEvent[] {
    return this.log.filter((event) => event.event === name);
  }

  close(): void {
    rmSync(this.spoolDir, { recursive: true, force: true });
  }
}
