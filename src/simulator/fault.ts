import { mix, within } from './data/hash.ts';
import { FAULTS, type Fault, type Operation } from './scenario.ts';

/** The properties of a request with which a rule is compared. */
export interface RequestFacts {
  readonly operation: Operation;
  readonly from?: string;
  readonly to?: string;
  readonly externalId?: string;
}

/**
 * The faults of a scenario, in order: the first whose conditions hold happens. Counts requests from when the faults
 * were set.
 */
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

  /** Counts the request; returns its fault, if a rule applies. */
  next(request: RequestFacts): Fault | undefined {
    const nth = ++this.#count[request.operation];
    const index = this.#faults.findIndex((fault, i) => {
      const { times = Number.POSITIVE_INFINITY, probability } = fault.when;
      const happens = probability >= 1 || within(mix(mix(this.#seed, i), nth), probability);
      return this.#done[i] < times && happens && concerns(fault, request, nth);
    });
    if (index === -1) return undefined;
    this.#done[index]++;
    return this.#faults[index];
  }
}

function concerns(
  { kind, when }: Fault,
  { operation, from = '', to = '', externalId = '' }: RequestFacts,
  nth: number,
) {
  if (when.operation !== undefined && when.operation !== operation) return false;
  if (!(kind in FAULTS.both || kind in FAULTS[operation])) return false;
  if (when.nth !== undefined && ![when.nth].flat().includes(nth)) return false;
  if (when.after !== undefined && nth <= when.after) return false;
  if (when.day !== undefined && ![when.day].flat().some((day) => day >= from && day <= to)) return false;
  return when.external_id === undefined || [when.external_id].flat().includes(externalId);
}
