import { configError } from '../base/errors.ts';

/** What a place remembers of the suppression list with which people were purged from it. */
export interface SuppressionMark {
  /** Number of lines of the list, and the hash of these lines (hex). */
  readonly length: number;
  readonly head: string;
}

/** The suppression list of a run. */
export interface SuppressionList {
  /** True if the list is the marked one, or a longer copy of it. */
  extends(mark: SuppressionMark): boolean;
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
  if (stored === undefined || list?.extends(stored) === true) return;
  const found = list === undefined ? 'this run has none' : 'this run has another one, or a shorter copy of it';
  throw configError(
    `${place} was purged with a suppression list of ${stored.length} lines, and ${found}: give that list in ` +
      'suppression_file, so that nobody returns.',
  );
}
