import { type Act, START, type Step, type Story, type TargetName } from './story.ts';

/** Stories that are told, not drawn. */

export const actOf = (what: Act['what'], more: Partial<Act> = {}): Act => ({
  what,
  users: [1],
  end: undefined,
  disk: undefined,
  ...more,
});

export const stepOf = (acts: readonly Act[], more: Partial<Step> = {}): Step => ({
  hours: 0,
  skewHours: 0,
  jumpHours: 0,
  faults: [],
  isReissued: false,
  acts,
  ...more,
});

/** A service without peculiarities, three days old. */
export const storyOf = (target: TargetName, steps: readonly Step[], more: Partial<Story> = {}): Story => ({
  target,
  steps,
  tables: 'events',
  order: 0,
  hasLedgerKey: false,
  rowsPerDay: 4,
  hoursBefore: 62,
  isSettled: false,
  scenario: { rows: { users: 6, by_day: { [START]: 3 } } },
  config: { window_days: 3, to_date_inclusive: 'true' },
  ...more,
});
