import { configError } from '../base/errors.ts';

/** What a place remembers of the suppression list with which people were purged from it. */
export interface SuppressionMark {
  /** Number of lines of the list, and the hash of these lines (hex). */
  readonly length: number;
  readonly head: string;
}

/** The suppression list of a run. */
export interface SuppressionList {
  readonly length: number;
  /** The hash (hex) of its first lines. */
  headOf(length: number): string;
}

/**
 * Throws a configuration failure unless a run has the list that a place was purged with, or a longer copy of it: else
 * people would return with the next load.
 */
export function checkSuppression(
  stored: SuppressionMark | undefined,
  list: SuppressionList | undefined,
  place: string,
): void {
  if (stored === undefined) return;
  const what = `${place} was purged with a suppression list of ${stored.length} lines`;
  const advice = 'give suppression_file and suppression_key of that list, so that nobody returns';
  if (list === undefined) throw configError(`${what}, and this run has none: ${advice}.`);
  if (list.length < stored.length) throw configError(`${what}, and this one has ${list.length}: ${advice}.`);
  if (list.headOf(stored.length) !== stored.head) throw configError(`${what}, and this is another one: ${advice}.`);
}
