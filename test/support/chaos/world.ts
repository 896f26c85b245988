import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day } from '../../../src/base/days.ts';
import type { Dice } from '../dice.ts';
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
export interface ChaosWorld {
  readonly scenario: Json;
  readonly config: Json;
  readonly settled: boolean;
  readonly rowsPerDay: number;
}

export function drawWorld(dice: Dice): ChaosWorld {
  const settled = dice.chance(0.25);
  const quota = dice.pick([100, 100, 12]);
  const inclusive = dice.chance(0.5);
  const selectsOn = dice.pick(['server', 'correction', 'event']);
  const idsRepeat = selectsOn === 'server' && dice.chance(0.4);
  const scenario: Json = {
    days: {
      to_date_inclusive: inclusive,
      selects_on: selectsOn,
      zone_hours: dice.pick([-12, -5, 0, 9, 9, 14]),
      cell_zone_hours: dice.pick([0, 9]),
      future: dice.pick(['empty', 'error']),
    },
    columns: {
      event_name: dice.pick(['event_name', 'df_event_name']),
      type_drift: dice.chance(0.7),
      hostile_names: dice.chance(0.3),
    },
    rows: {
      by_day: Object.fromEntries(
        dice.some([1, 4, 5, 9, 16, 23], 4).map((n) => [addDays(START, n), dice.pick([0, 1, 2])]),
      ),
      order: dice.pick(['time', 'reverse', 'shuffled', 'items_apart']),
      late: { share: settled ? 0 : dice.pick([0, 0.2]), hours: 7 },
      corrected: { share: settled ? 0 : dice.pick([0, 0.2]), hours: 8 },
      longest_delay_hours: settled ? 1 : 8,
    },
    ids: {
      first_item: dice.pick([0, 1]),
      duplicate_share: idsRepeat ? 0.1 : 0,
      other_item_events: dice.pick(['single', 'repeat_id', 'numbered']),
    },
    format: {
      framing: dice.pick(['chunked', 'length']),
      final_newline: dice.chance(0.7),
      gzip: dice.pick(['never', 'accepted']),
      bom: dice.chance(0.2),
      crlf: dice.chance(0.2),
      content_type: dice.pick(['text/csv;charset=UTF-8', 'application/octet-stream', 'text/plain']),
    },
    limits: {
      exports_per_hour: quota,
      window: dice.pick(['fixed', 'sliding']),
      failed_exports_count: dice.chance(0.5),
      concurrent_remaining: dice.pick(['actual', 'zero']),
      headers: dice.pick(['x-ratelimit', 'X-Rate-Limit', 'none']),
      headers_on: dice.pick(['all', 'all', '429']),
      reset: dice.pick(['ms', 's', 'absent', 'nonsense', 'past']),
    },
    too_big: dice.chance(0.25)
      ? { days: [addDays(START, dice.int(2, 20))], status: dice.pick([500, 504]) }
      : dice.chance(0.3)
        ? { longest_days: dice.pick([1, 2]) }
        : {},
  };
  // Where nothing is said in time, only the configuration can know.
  const { headers, headers_on, reset } = scenario.limits as Json;
  const told = headers !== 'none' && headers_on === 'all' && (reset === 'ms' || reset === 's');
  const config: Json = {
    service_id: SERVICE_ID,
    export_token: TOKENS.export,
    start_date: START,
    window_days: dice.pick([1, 1, 2, 5]),
    delivery: settled ? 'settled' : 'auto',
    to_date_inclusive: dice.chance(0.2) ? String(inclusive) : 'auto',
    exports_per_hour: told ? dice.pick([100, quota]) : quota,
    max_concurrent_exports: dice.pick([1, 3, 5]),
    stall_minutes: STALL_MS / 60_000,
    memory_limit: '300MB',
    ...(dice.chance(0.3) && { timezone: 'Asia/Seoul' }),
  };
  return { scenario, config, settled, rowsPerDay: dice.int(6, 24) };
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

export function drawStep(dice: Dice, hours: number): Step {
  const what = dice.pick(['requests', 'answers', 'commits', 'turns'] as const);
  const isSkewed = dice.chance(0.15);
  return {
    hours,
    skewHours: isSkewed ? dice.pick([-30, -1.5, 0, 1.5, 30]) : 0,
    jumpHours: isSkewed ? dice.pick([-5, 0, 5]) : 0,
    faults: dice.some(FAULTS, 4).map((fault) => ({
      ...fault,
      when: { operation: 'export', probability: dice.pick([0.1, 0.3, 0.7]), times: dice.int(1, 6) },
    })),
    end: dice.pick(['whole', 'whole', 'stop', 'kill', 'kill']),
    after: { what, count: what === 'turns' ? dice.int(0, 4_000) : dice.int(0, 9) },
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
