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
 * Gives the fault of each request, if a rule applies: of the faults of a scenario the first whose conditions hold.
 * Counts requests from when the faults were set.
 */
export function faultRules(faults: readonly Fault[], seed: number) {
  const done = faults.map(() => 0);
  const count = { export: 0, delete: 0 };
  return (request: RequestFacts): Fault | undefined => {
    const nth = ++count[request.operation];
    const index = faults.findIndex((fault, i) => {
      const { times = Number.POSITIVE_INFINITY, probability } = fault.when;
      const happens = probability >= 1 || within(mix(mix(seed, i), nth), probability);
      return done[i] < times && happens && concerns(fault, request, nth);
    });
    if (index !== -1) done[index]++;
    return faults[index];
  };
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
