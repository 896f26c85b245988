import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../../src/base/clock.ts';
import { addDays, type Day, dayAt, daysOf } from '../../../src/base/days.ts';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import {
  type ExtractCounts,
  type ExtractDeps,
  type ExtractOptions,
  newExtractCounts,
} from '../../../src/extract/deps.ts';
import { extractWindows } from '../../../src/extract/extract.ts';
import { type Plan, type PlanInput, type PlanSettings, planRun } from '../../../src/extract/plan/plan.ts';
import type { ExportState, PriorLoads, Receipt, Window } from '../../../src/extract/window.ts';
import type { ExportAnswer, ExportRequest, ExportService } from '../../../src/service/export/protocol.ts';
import { type LimitHeaders, NO_LIMITS } from '../../../src/service/http/headers.ts';
import { copyLiving } from '../copy-living.ts';
import { DEAD_PID, ownerText } from '../processes/lock-owner.ts';

export const HOUR = 3_600_000;
export const at = (text: string): number => Date.parse(text);

/** A clock that only sleeping moves. */
export class FakeClock implements Clock {
  time: number;
  slept = 0;
  constructor(time: number) {
    this.time = time;
  }
  now(): number {
    return this.time;
  }
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.time += ms;
    this.slept += ms;
  }
  after(): () => void {
    return () => {};
  }
}

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
  readonly finalNewline: boolean;
  readonly endDeclared: boolean;
  /** Milliseconds that the service's clock is ahead of ours. */
  readonly clockAhead: number;
  /** Replaces an answer; `undefined` leaves it. The number counts the requests, from 1. */
  readonly fault: (request: ExportRequest, count: number) => Fault | undefined;
}

export type Fault =
  | {
      readonly refuse: 'retry' | 'retry_or_split' | 'wait' | 'config' | 'gone' | 'invalid';
      /** By default the kind. */
      readonly code?: string;
      readonly limits?: Partial<LimitHeaders>;
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
  finalNewline: true,
  endDeclared: false,
  clockAhead: 0,
  fault: () => undefined,
};

const HEADER =
  'df_api_version,df_correction_datetime,df_event_detail_log_id,df_event_log_id,df_server_datetime,df_unified_id,event_name';

export class FakeService implements ExportService {
  settings: FakeServiceSettings;
  readonly requests: ExportRequest[] = [];
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

  /** The length of a body is declared for a request alone that wants it uncompressed. */
  async exportEvents(request: ExportRequest, signal: AbortSignal, uncompressed = false): Promise<ExportAnswer> {
    signal.throwIfAborted();
    this.requests.push(request);
    const fault = this.settings.fault(request, this.requests.length);
    await Promise.resolve();
    const refused = fault !== undefined && 'refuse' in fault ? fault : undefined;
    const kind = refused?.refuse ?? this.#refusal(request);
    const common = { limits: { ...NO_LIMITS, ...refused?.limits }, serverTime: this.#now() };
    if (kind !== undefined)
      return { ...common, kind, code: refused?.code ?? kind, message: `the fake says ${kind}.`, status: 400 };
    const csv = this.#csv(request);
    const text = fault !== undefined && 'body' in fault ? fault.body(csv) : csv;
    const body = this.#body(text, fault !== undefined && 'breaks' in fault ? fault : undefined);
    return { ...common, ...body, endDeclared: this.settings.endDeclared && uncompressed };
  }

  selected(request: Pick<ExportRequest, 'from' | 'to'> & Partial<ExportRequest>): FakeRow[] {
    const { from, to } = request;
    const { singleDays } = this.settings;
    const form = from === to ? singleDays : 'as_ranges';
    const inclusive = form === 'as_ranges' ? this.settings.inclusive : form === 'whole';
    return this.settings.rows.filter((row) => {
      const day = this.dayOf(row);
      const inside = day >= from && (inclusive ? day <= to : day < to);
      if (this.settings.daysAreInstants && !(inside && (day < to || this.#isMidnight(row)))) return false;
      return inside && row.arrived <= this.#now() && matches(row, request);
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

  #refusal(request: ExportRequest) {
    const today = dayAt(this.#now(), this.settings.zoneHours);
    if (request.from < addDays(today, -this.settings.historyDays)) return 'gone' as const;
    if (this.settings.future === 'error' && request.to > today) return 'invalid' as const;
    if (request.from === request.to && this.settings.singleDays === 'refused') return 'invalid' as const;
    if (this.selected(request).length > this.settings.most) return 'retry_or_split' as const;
    return undefined;
  }

  #csv(request: ExportRequest): string {
    const lines = this.selected(request).map(csvOf);
    const text = [HEADER, ...lines].join('\n');
    return this.settings.finalNewline ? `${text}\n` : text;
  }

  #body(text: string | Uint8Array, end: { readonly breaks: unknown } | undefined) {
    this.busy++;
    this.busiest = Math.max(this.busiest, this.busy);
    let open = true;
    const close = async () => {
      if (open) this.busy--;
      open = false;
    };
    return { kind: 'data' as const, endDeclared: this.settings.endDeclared, close, bytes: chunks(text, close, end) };
  }
}

async function* chunks(
  text: string | Uint8Array,
  close: () => Promise<void>,
  end: { readonly breaks: unknown } | undefined,
): AsyncGenerator<Uint8Array> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  for (let i = 0; i < bytes.length; i += 97) {
    await Promise.resolve();
    yield bytes.subarray(i, i + 97);
    if (end !== undefined) throw end.breaks;
  }
  await close();
}

function matches(row: FakeRow, request: Partial<ExportRequest>): boolean {
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

/** A target that keeps rows by id, receipts, and the state, as every sink does. */
export class FakeTarget {
  state: ExportState | undefined;
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
    this.state = JSON.parse(JSON.stringify(window.state)) as ExportState;
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

/** The share of a pause of the policy that is waited for (full jitter). */
export const JITTER = 0.5;

/** A spool folder of one test, a service, a clock, a target, and the runs between them. */
export class Fixture {
  readonly spoolDir = mkdtempSync(join(tmpdir(), 'dfinery-test-'));
  readonly clock: FakeClock;
  readonly service: FakeService;
  readonly log: LogEvent[] = [];
  target = new FakeTarget();
  controller = new AbortController();
  options: Partial<ExtractOptions> = {};
  maxWaitMs: number | undefined;
  onWait: ExtractDeps['onWait'];
  counts: ExtractCounts = newExtractCounts();

  constructor(now: string, serviceSettings: Partial<FakeServiceSettings>) {
    this.clock = new FakeClock(at(now));
    this.service = new FakeService(this.clock, serviceSettings);
  }

  deps(): ExtractDeps {
    this.counts = newExtractCounts();
    return {
      service: this.service,
      clock: this.clock,
      random: () => JITTER,
      logger: createLogger(
        (event) => this.log.push(event),
        'debug',
        (text) => text,
      ),
      signal: this.controller.signal,
      spoolDir: this.spoolDir,
      maxWaitMs: this.maxWaitMs,
      onWait: this.onWait,
      counts: this.counts,
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
      const dead = ownerText({ pid: DEAD_PID });
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
