export interface GuardLimits {
  readonly maxDeletionsPerSync: number;
  readonly maxDeletionsPercent: number | undefined;
  readonly knownProfiles: number | undefined;
}

/** A percentage has no exact binary form: 0.57 of 10,000 must not come out below 57. */
const ROUNDING = 1 + 2 ** -40;

/** The limit that `count`, the ids about to be requested in this run, exceeds, as a sentence; undefined if none. */
export function guardProblem(count: number, limits: GuardLimits): string | undefined {
  const { maxDeletionsPerSync: most, maxDeletionsPercent: percent, knownProfiles: known } = limits;
  if (count > most) {
    return `${count} profiles are to be deleted, more than max_deletions_per_sync allows (${most}). If that is meant, raise max_deletions_per_sync to ${count} or more and run again.`;
  }
  if (percent === undefined || known === undefined || count * 100 <= percent * known * ROUNDING) return undefined;
  const share = ((count * 100) / known).toFixed(2);
  return `${count} profiles are to be deleted, ${share} % of known_profiles (${known}), more than max_deletions_percent allows (${percent} %). If that is meant, raise max_deletions_percent and run again.`;
}
