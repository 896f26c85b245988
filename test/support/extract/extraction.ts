import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../../src/base/clock.ts';
import { addDays, type Day, dayAt, daysOf } from '../../../src/base/days.ts';
import { UserError } from '../../../src/base/errors.ts';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../../../src/extract/checked-day.ts';
import { type ExportSettings, scannerOptionsOf } from '../../../src/extract/export-settings.ts';
import { type ExportState, stateAfter } from '../../../src/extract/export-state.ts';
import { type DayBatch, Extraction } from '../../../src/extract/extract.ts';
import type { ExtractDeps } from '../../../src/extract/extract-deps.ts';
import { ObservedService } from '../../../src/extract/observed-service.ts';
import { type Plan, type PlanInput, planRun } from '../../../src/extract/which-days.ts';
import { NO_QUOTA_REPORT, type QuotaReport } from '../../../src/http/quota-report.ts';
import type {
  EventRequest,
  ExportAnswer,
  ExportRequest,
  ExportService,
} from '../../../src/service/export/export-service.ts';
import { NOT_FOUND } from '../../../src/service/export/outcomes.ts';
import { LeapingClock } from '../clock.ts';

export const HOUR = 3_600_000;
export const at = (text: string): number => Date.parse(text);

/** An event as the service has it; instants in ms, UTC. */
export interface FakeRow {
  readonly id: string;
  readonly event: string;
  readonly occurred: number;
  readonly arrived: number;
}

export interface FakeServiceSettings {
  readonly rows: readonly FakeRow[];
  readonly inclusive: boolean;
  /** What a single day, `from_date` = `to_date`, is answered with: as ranges are, with all its rows, with none, or with a 400. */
  readonly singleDays: 'as_ranges' | 'whole' | 'empty' | 'refused';
  /** Both ends of a range mean midnight, and rows of that very instant are in it. */
  readonly daysAreInstants: boolean;
  readonly selects: 'occurred' | 'arrived';
  readonly zoneHours: number;
  readonly future: 'empty' | 'error';
  readonly historyDays: number;
  /** More rows than this are too many for one export. */
  readonly most: number;
  readonly hasFinalNewline: boolean;
  /** What a day without rows is answered with: a header alone, or one of the other forms. */
  readonly noRows: 'header' | '204' | '404' | 'no byte' | 'an empty list';
  /** Milliseconds after its end until a day's rows appear. */
  readonly lagMs: number;
  /** True to deliver rows in another order each time. */
  readonly shuffles: boolean;
  /** Milliseconds that the service's clock is ahead of ours. */
  readonly clockAhead: number;
  /** Replaces an answer; `undefined` leaves it. The number counts the requests, from 1. */
  readonly fault: (request: EventRequest, count: number) => Fault | undefined;
  /** An answer comes when this resolves. */
  readonly until: (request: EventRequest) => Promise<void> | undefined;
}

export type Fault =
  | {
      readonly refuse: 'retry' | 'retry_or_split' | 'wait' | 'config' | 'gone' | 'invalid';
      /** By default the kind, and 400. */
      readonly code?: string;
      readonly status?: number;
      readonly quotaReport?: Partial<QuotaReport>;
    }
  | { readonly body: (csv: string) => string | Uint8Array }
  /** What the body throws behind its first bytes. */
  | { readonly breaks: unknown };

const DEFAULTS: FakeServiceSettings = {
  rows: [],
  inclusive: true,
  singleDays: 'as_ranges',
  daysAreInstants: false,
  selects: 'arrived',
  zoneHours: 0,
  future: 'empty',
  historyDays: 30,
  most: Number.POSITIVE_INFINITY,
  hasFinalNewline: true,
  noRows: 'header',
  lagMs: 0,
  shuffles: false,
  clockAhead: 0,
  fault: () => undefined,
  until: () => undefined,
};

const HEADER =
  'df_api_version,df_correction_datetime,df_event_detail_log_id,df_event_log_id,df_server_datetime,df_unified_id,event_name';

export class FakeService implements ExportService {
  settings: FakeServiceSettings;
  readonly requests: EventRequest[] = [];
  readonly #clock: Clock;
  /** Exports under way now, and the most there ever were. */
  busy = 0;
  busiest = 0;

  constructor(clock: Clock, settings: Partial<FakeServiceSettings>) {
    this.#clock = clock;
    this.settings = { ...DEFAULTS, ...settings };
  }

  get sent(): number {
    return this.requests.length;
  }

  /** `2026-01-01..2026-01-02` of every request so far. */
  get ranges(): string[] {
    return this.requests.map(({ from, to }) => `${from}..${to}`);
  }

  async export<T>(request: ExportRequest, signal: AbortSignal, use: (answer: ExportAnswer) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (!('from' in request)) throw new Error('no profile is asked for');
    this.requests.push(request);
    const answer = await this.#answer(request);
    if (answer.kind === 'data') this.busiest = Math.max(this.busiest, ++this.busy);
    return use(answer).finally(() => {
      if (answer.kind === 'data') this.busy--;
    });
  }

  async #answer(request: EventRequest): Promise<ExportAnswer> {
    const fault = this.settings.fault(request, this.requests.length);
    await this.settings.until(request);
    const refused = fault !== undefined && 'refuse' in fault ? fault : undefined;
    const kind = refused?.refuse ?? this.#refusal(request);
    const common = { quotaReport: { ...NO_QUOTA_REPORT, ...refused?.quotaReport }, serverTime: this.#now() };
    if (kind !== undefined)
      return {
        ...common,
        kind,
        code: refused?.code ?? kind,
        clause: `the fake says ${kind}`,
        status: refused?.status ?? 400,
      };
    const isEmpty = this.selected(request).length === 0;
    const { noRows } = this.settings;
    if (fault === undefined && isEmpty && noRows !== 'header') return { ...common, ...emptyAnswer(noRows) };
    const csv = this.#csv(request);
    const text = fault !== undefined && 'body' in fault ? fault.body(csv) : csv;
    const end = fault !== undefined && 'breaks' in fault ? fault : undefined;
    return { ...common, kind: 'data', bytes: chunks(text, end) };
  }

  selected(request: Pick<EventRequest, 'from' | 'to'> & Partial<EventRequest>): FakeRow[] {
    const { from, to } = request;
    const { singleDays } = this.settings;
    const form = from === to ? singleDays : 'as_ranges';
    const inclusive = form === 'as_ranges' ? this.settings.inclusive : form === 'whole';
    return this.settings.rows.filter((row) => {
      const day = this.dayOf(row);
      const inside = day >= from && (inclusive ? day <= to : day < to);
      if (this.settings.daysAreInstants && !(inside && (day < to || this.#isMidnight(row)))) return false;
      return inside && row.arrived + this.settings.lagMs <= this.#now() && matches(row, request);
    });
  }

  dayOf(row: FakeRow): Day {
    return dayAt(row[this.settings.selects], this.settings.zoneHours);
  }

  #isMidnight(row: FakeRow): boolean {
    return (row[this.settings.selects] + this.settings.zoneHours * HOUR) % (24 * HOUR) === 0;
  }

  #now(): number {
    return this.#clock.now() + this.settings.clockAhead;
  }

  #refusal(request: EventRequest) {
    const today = dayAt(this.#now(), this.settings.zoneHours);
    if (request.from < addDays(today, -this.settings.historyDays)) return 'gone' as const;
    if (this.settings.future === 'error' && request.to > today) return 'invalid' as const;
    if (request.from === request.to && this.settings.singleDays === 'refused') return 'invalid' as const;
    if (this.selected(request).length > this.settings.most) return 'retry_or_split' as const;
    return undefined;
  }

  #csv(request: EventRequest): string {
    const rows = this.selected(request);
    const turn = this.settings.shuffles && rows.length > 0 ? this.requests.length % rows.length : 0;
    const lines = [...rows.slice(turn), ...rows.slice(0, turn)].map(csvOf);
    const text = [HEADER, ...lines].join('\n');
    return this.settings.hasFinalNewline ? `${text}\n` : text;
  }
}

const emptyAnswer = (noRows: '204' | '404' | 'no byte' | 'an empty list') => ({
  kind: 'empty' as const,
  code: noRows === '404' ? NOT_FOUND : noRows,
  clause: `the fake answered with ${noRows}`,
  status: 200,
});

async function* chunks(
  text: string | Uint8Array,
  end: { readonly breaks: unknown } | undefined,
): AsyncGenerator<Uint8Array> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  for (let i = 0; i < bytes.length; i += 97) {
    await Promise.resolve();
    yield bytes.subarray(i, i + 97);
    if (end !== undefined) throw end.breaks;
  }
}

function matches(row: FakeRow, request: Partial<EventRequest>): boolean {
  const names = request.events ?? [];
  if (names.length === 0 || request.eventsCondition === 'all') return true;
  return names.includes(row.event) === (request.eventsCondition === 'include');
}

const stamp = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
const csvOf = ({ id, event, occurred, arrived }: FakeRow): string =>
  `1,${stamp(occurred)},${id},${id},${stamp(arrived)},u-${id},${event}`;

/** `perDay` events a day, spread over it, that arrive as they occur. */
export function steadyRows(first: Day, last: Day, perDay: number, event = 'df_login'): FakeRow[] {
  return daysOf(first, last).flatMap((day) =>
    Array.from({ length: perDay }, (_, i) => {
      const occurred = at(`${day}T00:00:00Z`) + Math.floor(((i + 0.5) * 24 * HOUR) / perDay);
      return { id: `${event}-${day}-${i}`, event, occurred, arrived: occurred };
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
  /** Ids in the order they were delivered, repetitions included. */
  readonly appended: string[] = [];
  /** Days of each commit. */
  readonly commits: Day[][] = [];

  prior(): StoredLoads {
    const stored = [...this.receipts].map(([day, receipt]) => {
      return [day, { ...receipt, rows_stored: this.days.get(day)?.length ?? 0 }] as const;
    });
    return { state: this.state, receipts: new Map(stored) };
  }

  async commit({ days, commitInfo }: DayBatch): Promise<void> {
    this.commits.push(days.map(({ receipt }) => receipt.day));
    for (const download of days) await this.#replace(download);
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
    this.appended.push(...ids);
    if (mayShareRows(receipt)) {
      const after = new Set(this.days.get(addDays(day, 1)));
      ids = ids.filter((id) => !after.has(id));
      const own = new Set(ids);
      const before = this.days.get(addDays(day, -1));
      if (before !== undefined)
        this.days.set(
          addDays(day, -1),
          before.filter((id) => !own.has(id)),
        );
    }
    this.days.set(day, ids);
    this.receipts.set(day, receipt);
  }

  /** Ids of all stored rows, sorted. */
  ids(): string[] {
    return [...this.days.values()].flat().sort();
  }
}

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
};

export const planFor = (
  clock: Clock,
  stored: StoredLoads,
  settings: Partial<ExportSettings>,
  more: Partial<PlanInput> = {},
): Plan => planRun({ settings: { ...SETTINGS, ...settings }, ...stored, now: clock.now(), ...more });

/** The share of a pause of the policy that is waited for (full jitter). */
const JITTER = 0.5;

/** A spool folder of one test, a service, a clock, a target, and the runs between them. */
export class Fixture {
  readonly spoolDir = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
  readonly clock: LeapingClock;
  readonly service: FakeService;
  readonly log: LogEvent[] = [];
  target = new FakeTarget();
  controller = new AbortController();
  /** The last run. */
  extraction: Extraction | undefined;

  constructor(now: string, serviceSettings: Partial<FakeServiceSettings>) {
    this.clock = new LeapingClock(at(now));
    this.service = new FakeService(this.clock, serviceSettings);
  }

  deps(): ExtractDeps {
    const { clock } = this;
    const logger = createLogger(
      (event) => this.log.push(event),
      'debug',
      (text) => text,
    );
    return {
      service: new ObservedService(this.service, SETTINGS, { clock, logger }),
      scannerOptions: scannerOptionsOf(SETTINGS),
      clock,
      random: () => JITTER,
      logger,
      signal: this.controller.signal,
      spoolDir: this.spoolDir,
      maxConcurrentExports: 3,
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
    try {
      await this.run(settings, more);
    } catch (error) {
      if (error instanceof UserError) return error;
      throw error;
    }
    throw new Error('the run did not fail');
  }

  events(name: string): LogEvent[] {
    return this.log.filter((event) => event.event === name);
  }

  close(): void {
    rmSync(this.spoolDir, { recursive: true, force: true });
  }
}
