import type { Day } from '../base/days.ts';
import type { ImplausibleDay } from './doubtful-days.ts';

/** What the days of an extraction come to; it grows while they are delivered. */
export class DaysReport {
  /** Whether an export contains its `to_date`, if that is known. */
  includesEnd: boolean | undefined;
  /** Days that an earlier run wanted, or that the caller named, and that the service no longer exports. */
  readonly gaps: Day[] = [];
  /** Days that the caller named, and that were not over when they were loaded. */
  readonly openDays: Day[] = [];
  readonly implausibleDays: ImplausibleDay[] = [];
}
