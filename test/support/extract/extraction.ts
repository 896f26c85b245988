import { readFile } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { addDays, type Day, dayAt, daysOf } from '../../../src/base/days.ts';
import { UserError } from '../../../src/base/errors.ts';
import type { LogEvent } from '../../../src/base/log.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../../../src/extract/checked-day.ts';
import { type ExportSettings, scannerOptionsOf } from '../../../src/extract/export-settings.ts';
import { type CommitInfo, type ExportState, stateAfter } from '../../../src/extract/export-state.ts';
import type { ExtractDeps } from '../../../src/extract/extract-deps.ts';
import { Extraction } from '../../../src/extract/extraction.ts';
import { ObservedService } from '../../../src/extract/observed-service.ts';
import { type PlanInput, planRun, type RunPlan } from '../../../src/extract/which-days.ts';
import type { ExportClient } from '../../../src/service/export/client.ts';
import { LeapingClock } from '../clock.ts';
import { newFolder } from '../new-folder.ts';
import { CANARY, exportService, logRecorder } from '../service/service.ts';
import { type ScenarioPatch, TestService, type TruthRow } from '../service/test-service.ts';

export const HOUR = 3_600_000;
export const at = (text: string): number => Date.parse(text);

/** An event; its instants are ms, UTC. */
interface EventRow {
  readonly id: string;
  readonly event: string;
  /** When it arrived: its day, and its `df_server_datetime`. */
  readonly at: number;
  /** When it happened, if that was earlier. */
  readonly happened?: number;
  /** From when on the service shows it, if that is later. */
  readonly shownFrom?: number;
}

/** Days of UTC, whatever the limits. */
export interface ServiceSettings extends ScenarioPatch {
  readonly rows?: readonly EventRow[];
  /** Milliseconds that the service's clock is ahead of ours. */
  readonly clockAhead?: number;
}

const stamp = (ms: number, zoneHours: number): string =>
  new Date(ms + zoneHours * HOUR).toISOString().replace('T', ' ').replace('Z', '');

/** `perDay` events a day, spread over it. */
export function steadyRows(first: Day, last: Day, perDay: number, event = 'df_login'): EventRow[] {
  return daysOf(first, last).flatMap((day) =>
    Array.from({ length: perDay }, (_, i) => {
      const time = at(`${day}T00:00:00Z`) + Math.floor(((i + 0.5) * 24 * HOUR) / perDay);
      return { id: `${event}-${day}-${i}`, event, at: time };
    }),
  );
}

type StoredLoads = Pick<PlanInput, 'state' | 'receipts'>;

/** A place that replaces days, keeps a receipt each, and the state, as every target does. */
class FakeTarget {
  state: ExportState | undefined;
  readonly receipts = new Map<Day, Receipt & { pruned?: boolean }>();
  /** Ids of the stored rows by day. */
  readonly days = new Map<Day, readonly string[]>();
  /** Days of each commit. */
  readonly commits: Day[][] = [];

  prior(): StoredLoads {
    const stored = [...this.receipts].map(([day, receipt]) => {
      return [day, { ...receipt, rows_stored: this.days.get(day)?.length ?? 0 }] as const;
    });
    return { state: this.state, receipts: new Map(stored) };
  }

  async commit({ checkedDays, commitInfo }: { checkedDays: readonly CheckedDay[]; commitInfo: CommitInfo }) {
    this.commits.push(checkedDays.map(({ receipt }) => receipt.day));
    for (const download of checkedDays) await this.#replace(download);
    this.state = JSON.parse(JSON.stringify(stateAfter(this.state, this.receipts, commitInfo))) as ExportState;
  }

  async #replace({ receipt, files }: CheckedDay): Promise<void> {
    const { day } = receipt;
    let ids: string[] = [];
    for (const { path } of files) {
      const [header, ...lines] = (await readFile(path, 'utf8')).trimEnd().split('\n');
      const id = header.split(',').indexOf('df_event_detail_log_id');
      ids.push(...lines.map((line) => line.split(',')[id]));
    }
    if (mayShareRows(receipt)) {
      const after = new Set(this.days.get(addDays(day, 1)));
      ids = ids.filter((id) => !after.has(id));
      const dayBefore = addDays(day, -1);
      const idsBefore = this.days.get(dayBefore)?.filter((id) => !ids.includes(id));
      if (idsBefore !== undefined) this.days.set(dayBefore, idsBefore);
    }
    this.days.set(day, ids);
    this.receipts.set(day, receipt);
  }

  /** Ids of all stored rows, sorted. */
  ids(): string[] {
    return [...this.days.values()].flat().sort();
  }
}

const MOST_AT_ONCE = 3;
export const SETTINGS: ExportSettings = {
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
  timezone: undefined,
  lookbackDays: 1,
  settleHours: 3,
  toDateInclusive: 'auto',
  historyDays: 30,
  onGap: 'fail',
  userProfiles: false,
  maxConcurrentExports: MOST_AT_ONCE,
  columnTypes: new Map(),
  suppressionFile: undefined,
  suppressionKey: undefined,
};

export const planFor = (
  clock: Clock,
  stored: StoredLoads,
  settings: Partial<ExportSettings>,
  more: Partial<PlanInput> = {},
): RunPlan => planRun({ settings: { ...SETTINGS, ...settings }, ...stored, now: clock.now(), ...more });

/** The share of a pause of the policy that is waited for (full jitter). */
const JITTER = 0.5;

interface ExportBody {
  readonly from_date: Day;
  readonly to_date: Day;
  readonly events?: readonly string[];
  readonly events_condition_type: string;
}

function byDay(rows: readonly EventRow[], zoneHours: number): Map<Day, TruthRow[]> {
  const days = new Map<Day, TruthRow[]>();
  for (const { id, event, at, happened = at, shownFrom: from = at } of rows) {
    const cells = new Map([
      ['df_api_version', '1'],
      ['df_correction_datetime', stamp(happened, zoneHours)],
      ['df_event_detail_log_id', id],
      ['df_event_log_id', id],
      ['df_server_datetime', stamp(at, zoneHours)],
      ['df_unified_id', `u-${id}`],
      ['event_name', event],
    ]);
    const day = dayAt(at, zoneHours);
    days.set(day, [...(days.get(day) ?? []), { cells, from }]);
  }
  return days;
}

/** A spool folder, a service, a clock, a target, and the runs between them, until the end of the test. */
export class Fixture {
  readonly spoolDir = newFolder();
  readonly clock: LeapingClock;
  readonly sim: TestService;
  readonly #recorder = logRecorder();
  readonly log = this.#recorder.events;
  readonly logger = this.#recorder.logger;
  target = new FakeTarget();
  controller = new AbortController();
  /** The last run. */
  extraction: Extraction | undefined;
  readonly #client: ExportClient;
  readonly #service: { days: ReadonlyMap<Day, readonly TruthRow[]> };
  /** Requests that are no longer counted. */
  #forgotten = 0;

  private constructor(clock: LeapingClock, sim: TestService, service: { days: ReadonlyMap<Day, readonly TruthRow[]> }) {
    this.clock = clock;
    this.sim = sim;
    this.#service = service;
    this.#client = exportService(sim.url, { clock }).service;
  }

  static async start(now: string, { rows = [], clockAhead = 0, ...scenario }: ServiceSettings): Promise<Fixture> {
    const clock = new LeapingClock(at(now));
    const zone = scenario.days?.zone_hours ?? 0;
    const service = { days: byDay(rows, zone) };
    const sim = await TestService.start({
      clock: { now: () => clock.now() + clockAhead, sleep: async () => {}, after: () => () => {} },
      exportToken: CANARY,
      serviceId: 'svc-1',
      scenario: {
        ...scenario,
        days: { ...scenario.days, zone_hours: zone },
        limits: { exports_per_hour: 10_000, concurrent_exports: MOST_AT_ONCE },
      },
      truth: (day) => service.days.get(day) ?? [],
    });
    const fixture = new Fixture(clock, sim, service);
    onTestFinished(() => fixture.close());
    return fixture;
  }

  /** The service answers in another way from now on. */
  serve({ rows, ...scenario }: ServiceSettings): void {
    if (rows !== undefined) this.#service.days = byDay(rows, this.sim.scenario.days.zone_hours);
    this.sim.setScenario(scenario);
  }

  /** The exports since `forgetRequests`. */
  get requests() {
    return this.sim
      .requests()
      .slice(this.#forgotten)
      .map(({ body, end, status }) => {
        const { from_date: from, to_date: to, events = [], events_condition_type: condition } = body as ExportBody;
        return { from, to, events, condition, end, status };
      });
  }

  forgetRequests(): void {
    this.#forgotten = this.sim.requests().length;
  }

  /** `2026-01-01..2026-01-02` of every request. */
  get ranges(): string[] {
    return this.requests.map(({ from, to }) => `${from}..${to}`);
  }

  /** The ids of the rows of days. */
  ids(from: Day, to: Day): string[] {
    return this.sim.truth({ from, to }).map((cells) => cells.get('df_event_detail_log_id') ?? '');
  }

  deps(): ExtractDeps {
    const { clock, logger } = this;
    return {
      service: new ObservedService(this.#client, SETTINGS, { clock, logger }),
      scannerOptions: scannerOptionsOf(SETTINGS),
      clock,
      random: () => JITTER,
      logger,
      signal: this.controller.signal,
      spoolDir: this.spoolDir,
    };
  }

  batches(settings: Partial<ExportSettings> = {}, more: Partial<PlanInput> = {}) {
    this.extraction = new Extraction(planFor(this.clock, this.target.prior(), settings, more), this.deps());
    return this.extraction.batches();
  }

  /** One run to its end; `crashAfter` batches are committed before the consumer fails. */
  async run(
    settings: Partial<ExportSettings> = {},
    more: Partial<PlanInput> = {},
    crashAfter = Number.POSITIVE_INFINITY,
  ) {
    let count = 0;
    for await (const batch of this.batches(settings, more)) {
      if (count++ === crashAfter) break;
      await this.target.commit(batch);
    }
    return this;
  }

  /** As `run`; returns what it failed with. */
  async failure(settings: Partial<ExportSettings> = {}, more: Partial<PlanInput> = {}): Promise<UserError> {
    const error: unknown = await this.run(settings, more).catch((thrown: unknown) => thrown);
    if (error instanceof UserError) return error;
    throw error === this ? new Error('the run did not fail') : error;
  }

  events(name: string): LogEvent[] {
    return this.log.filter((event) => event.event === name);
  }

  async close(): Promise<void> {
    await this.#client.close();
    await this.sim.close();
  }
}
