import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day } from '../../../src/base/days.ts';
import type { SeededRandom } from '../seeded-random.ts';
import { SERVICE_ID, TOKENS } from '../service/simulator.ts';

export const HOUR = 3_600_000;
export const START: Day = '2026-03-02';
const STALL_MS = 600_000;
/** What a stall lasts for real; where none is to come, a machine may be slow for long before it looks like one. */
const STALLED_MS = 600;
const SLOW_MS = 60_000;

/** Faults that an extraction has to live with, as the simulator spells them. */
const FAULTS: readonly object[] = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 502 },
  { kind: 'status', status: 503 },
  { kind: 'status', status: 504 },
  { kind: 'status', status: 408, body: '' },
  { kind: 'rate_limit', reset_in_s: 600 },
  { kind: 'rate_limit', reset: 'absent' },
  { kind: 'rate_limit', reset_in_s: -600 },
  { kind: 'rate_limit', remaining: 40, reset_in_s: 900 },
  { kind: 'refuse' },
  { kind: 'reset', at_byte: 0 },
  { kind: 'reset', at: 'mid_row' },
  { kind: 'reset', at: 'between_rows' },
  { kind: 'drop', at: 'mid_row' },
  { kind: 'drop', at: 'mid_quote', after_rows: 0 },
  { kind: 'drop', at: 'between_rows', after_rows: 1 },
  { kind: 'cut', at: 'mid_row' },
  { kind: 'cut', at: 'mid_quote', after_rows: 0 },
  { kind: 'cut', at_byte: 40 },
  { kind: 'stall', at: 'mid_row', after_rows: 1 },
  { kind: 'stall', at_byte: 0 },
  { kind: 'slow', bytes_per_s: 20_000 },
  { kind: 'json_200' },
  { kind: 'json_200', content_type: 'text/csv' },
  { kind: 'json_tail' },
  { kind: 'json_tail', after_rows: 2 },
  { kind: 'empty_body' },
  { kind: 'gzip', variant: 'good' },
  { kind: 'gzip', variant: 'cut' },
  { kind: 'gzip', variant: 'corrupt_trailer' },
  { kind: 'gzip', variant: 'not_gzip' },
  { kind: 'wrong_length', by: 100 },
  { kind: 'wrong_length', by: -25 },
  { kind: 'bom' },
  { kind: 'crlf' },
  { kind: 'row_short', row: 1 },
  { kind: 'row_long', row: 2 },
];

/** Faults whose answer is right all the same. */
export const HARMLESS = new Set(['slow', 'bom', 'crlf', 'gzip']);

/** A clock that moves when somebody sleeps, or is told to; a stall is over in a moment. */
export class ChaosClock implements Clock {
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
export class SkewedClock implements Clock {
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

export type Json = Record<string, unknown>;

/** What the service is like and what it is asked, drawn from a seed. */
export interface ChaosService {
  readonly scenario: Json;
  readonly config: Json;
  readonly settled: boolean;
  readonly rowsPerDay: number;
}

export function drawSettings(random: SeededRandom): ChaosService {
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

export interface Step {
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

export function drawStep(random: SeededRandom, hours: number): Step {
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
export const PEACE: Step = {
  hours: 0,
  skewHours: 0,
  jumpHours: 0,
  faults: [],
  end: 'whole',
  after: { what: 'turns', count: 0 },
};
