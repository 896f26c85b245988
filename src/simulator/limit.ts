import type { Clock } from '../base/clock.ts';
import type { Operation, Scenario } from './scenario.ts';

const LIMITS = {
  export: { key: 'exports_per_hour', length: 3_600_000, cycle: '1h' },
  delete: { key: 'deletions_per_minute', length: 60_000, cycle: '1m' },
} as const;

/** Counts the requests of one operation, and writes the limit headers of its answers. */
export class RequestLimit {
  readonly #operation: Operation;
  readonly #service: { readonly clock: Clock; readonly scenario: Scenario };
  #times: number[] = [];

  constructor(operation: Operation, service: { readonly clock: Clock; readonly scenario: Scenario }) {
    this.#operation = operation;
    this.#service = service;
  }

  /**
   * The remaining requests, within a fixed window, which its first request opens, or within the time just past; and the
   * instant at which their number changes (ms UTC).
   */
  allowance() {
    const { key, length } = LIMITS[this.#operation];
    const { window, [key]: limit } = this.#service.scenario.limits;
    const now = this.#service.clock.now();
    const isOld = (time: number) => time <= now - length;
    if (window === 'sliding') this.#times = this.#times.filter((time) => !isOld(time));
    else if (this.#times.slice(0, 1).some(isOld)) this.#times = [];
    const [first = now] = this.#times;
    return { remaining: Math.max(0, limit - this.#times.length), resetAt: Math.max(now, first + length) };
  }

  count(): void {
    this.#times.push(this.#service.clock.now());
  }

  giveBack(): void {
    this.#times.pop();
  }

  /** The limit headers of an answer, in the scenario's spelling. `refusal` replaces values in the headers of a 429. */
  headers(refusal?: { remaining?: number; resetAt?: number | undefined }): Record<string, string> {
    const { headers, headers_on, reset } = this.#service.scenario.limits;
    if (headers === 'none' || (headers_on === '429' && refusal === undefined)) return {};
    const { remaining, resetAt } = { ...this.allowance(), ...refusal };
    const { cycle } = LIMITS[this.#operation];
    const shown = {
      Limit: headers === 'X-Rate-Limit' ? cycle.toUpperCase() : cycle,
      Remaining: String(remaining),
      Reset: resetAt === undefined ? undefined : resetText(reset, resetAt, this.#service.clock.now()),
    };
    return Object.fromEntries(
      Object.entries(shown).flatMap(([part, value]) => {
        if (value === undefined) return [];
        return [[headers === 'X-Rate-Limit' ? `X-Rate-Limit-${part}` : `x-ratelimit-${part.toLowerCase()}`, value]];
      }),
    );
  }
}

function resetText(kind: Scenario['limits']['reset'], at: number, now: number): string | undefined {
  if (kind === 'absent') return undefined;
  if (kind === 'nonsense') return 'soon';
  if (kind === 'past') return String(Math.round(now - 60_000));
  return kind === 's' ? String(Math.ceil(at / 1_000)) : String(Math.round(at));
}
