import type { Scenario } from './scenario.ts';

/** What a group has left: requests, and when that changes (ms UTC). */
export interface Allowance {
  readonly isOver: boolean;
  readonly remaining: number;
  readonly resetAt: number;
}

type WindowKind = Scenario['limits']['window'];

/** Counts requests over `length` ms of the injected clock. Fixed: from the first request of a window on. Sliding: the last `length` ms. */
export class RequestWindow {
  readonly #length: number;
  #times: number[] = [];
  #start = Number.NEGATIVE_INFINITY;

  constructor(length: number) {
    this.#length = length;
  }

  allowance(kind: WindowKind, limit: number, now: number): Allowance {
    this.#removeOld(kind, now);
    const remaining = Math.max(0, limit - this.#times.length);
    const since = kind === 'fixed' ? this.#start : (this.#times[0] ?? now);
    return {
      isOver: remaining === 0,
      remaining,
      resetAt: Math.max(now, (this.#times.length ? since : now) + this.#length),
    };
  }

  take(now: number): void {
    if (this.#times.length === 0) this.#start = now;
    this.#times.push(now);
  }

  giveBack(): void {
    this.#times.pop();
  }

  #removeOld(kind: WindowKind, now: number): void {
    if (kind === 'fixed') {
      if (now >= this.#start + this.#length) this.#times = [];
      return;
    }
    const stale = this.#times.findIndex((time) => time > now - this.#length);
    if (stale !== 0) this.#times.splice(0, stale === -1 ? this.#times.length : stale);
  }
}

const CYCLE = { export: '1h', delete: '1m' } as const;

/** The limit headers of an answer, in the scenario's spelling and with its kind of reset. */
export function limitHeaders(
  limits: Scenario['limits'],
  operation: 'export' | 'delete',
  allowance: { readonly remaining: number; readonly resetAt: number },
  now: number,
): Record<string, string> {
  if (limits.headers === 'none') return {};
  const isUpper = limits.headers === 'X-Rate-Limit';
  const name = (part: string) => (isUpper ? `X-Rate-Limit-${part}` : `x-ratelimit-${part.toLowerCase()}`);
  const cycle = isUpper ? CYCLE[operation].toUpperCase() : CYCLE[operation];
  const reset = resetText(limits.reset, allowance.resetAt, now);
  return {
    [name('Limit')]: cycle,
    [name('Remaining')]: String(allowance.remaining),
    ...(reset !== undefined && { [name('Reset')]: reset }),
  };
}

function resetText(kind: Scenario['limits']['reset'], at: number, now: number): string | undefined {
  if (kind === 'absent') return undefined;
  if (kind === 'nonsense') return 'soon';
  if (kind === 'past') return String(Math.round(now - 60_000));
  return kind === 's' ? String(Math.ceil(at / 1_000)) : String(Math.round(at));
}
