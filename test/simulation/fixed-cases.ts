import type { Step } from './actions.ts';
import { START } from './common.ts';
import type { TargetName, TestCase } from './test-case.ts';

// Fixed test cases: these are not generated.

/** A test case of these steps, with a plain service that is three days old. */
export const caseOf = (target: TargetName, steps: readonly Step[], more: Partial<TestCase> = {}): TestCase => ({
  target,
  steps,
  tables: 'events',
  order: 0,
  hasLedgerKey: false,
  hasMapping: false,
  publishes: false,
  diskMs: 0,
  latencyMs: 0,
  hidden: { dropped: [], hashed: [] },
  rowsPerDay: 4,
  hoursBefore: 62,
  isSettled: false,
  keepsRows: true,
  settleHours: 3,
  lookback: 1,
  readsAgain: true,
  scenario: { rows: { users: 6, by_day: { [START]: 3 } } },
  config: { window_days: 3, to_date_inclusive: 'true' },
  ...more,
});
