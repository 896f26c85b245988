import { mix, within } from '../data/hash.ts';
import type { Operation } from '../request-log.ts';
import type { Fault, When } from './fault.ts';

/** What a rule is held against. */
export interface RequestFacts {
  readonly operation: Operation;
  readonly from?: string;
  readonly to?: string;
  readonly days?: number;
  readonly isFiltered?: boolean;
  readonly externalId?: string;
}

/** The faults of a scenario, in order: the first whose conditions hold happens. Counts requests from when the faults were set. */
export class FaultRules {
  readonly #faults: readonly Fault[];
  readonly #seed: number;
  readonly #done: number[];
  readonly #count = { export: 0, delete: 0 };

  constructor(faults: readonly Fault[], seed: number) {
    this.#faults = faults;
    this.#seed = seed;
    this.#done = faults.map(() => 0);
  }

  /** Counts the request, and says which fault it meets. */
  next(request: RequestFacts): Fault | undefined {
    const nth = ++this.#count[request.operation];
    const index = this.#faults.findIndex((fault, i) => {
      const chance = mix(mix(this.#seed, i), nth);
      return this.#done[i] < (fault.when.times ?? Number.POSITIVE_INFINITY) && applies(fault, request, nth, chance);
    });
    if (index === -1) return undefined;
    this.#done[index]++;
    return this.#faults[index];
  }
}

const EXPORT_ONLY: ReadonlySet<string> = new Set([
  'json_200',
  'json_tail',
  'empty_body',
  'header_only',
  'gzip',
  'endless',
  'bom',
  'crlf',
  'row_short',
  'row_long',
  'cut',
  'drop',
  'slow',
  'wrong_length',
]);
const DELETE_ONLY: ReadonlySet<string> = new Set(['code', 'cut_after']);

function applies(fault: Fault, request: RequestFacts, nth: number, chance: number): boolean {
  const { when } = fault;
  if (when.operation !== undefined && when.operation !== request.operation) return false;
  if ((request.operation === 'export' ? DELETE_ONLY : EXPORT_ONLY).has(fault.kind)) return false;
  if (when.nth !== undefined && ![when.nth].flat().includes(nth)) return false;
  if (when.after !== undefined && nth <= when.after) return false;
  return concerns(when, request) && (when.probability >= 1 || within(chance, when.probability));
}

function concerns(when: When, request: RequestFacts): boolean {
  const { from = '', to = '' } = request;
  if (when.day !== undefined && ![when.day].flat().some((day) => day >= from && day <= to)) return false;
  if (when.least_days !== undefined && (request.days ?? 0) < when.least_days) return false;
  if (when.unfiltered && request.isFiltered) return false;
  return when.external_id === undefined || [when.external_id].flat().includes(request.externalId ?? '');
}
