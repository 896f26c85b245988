import type { Kind } from './simulation.ts';

const LARGE_DAYS = ['2026-03-01', '2026-03-09', '2026-03-15'];

/** Services of every plausible kind. */
const KINDS: readonly Kind[] = [
  { name: 'the end day is included, days begin in Seoul', scenario: { limits: { exports_per_hour: 40 } } },
  {
    name: 'the end day is excluded, rows come in another order each time',
    truth: { zoneHours: 0 },
    scenario: { days: { to_date_inclusive: false }, format: { shuffles_rows: true } },
  },
  {
    name: 'instants are compared with midnight, days begin in Los Angeles',
    truth: { zoneHours: -8 },
    scenario: { days: { compares: 'instants' } },
    append: 'never',
  },
  {
    name: 'single days are refused, an empty day is 204',
    truth: { emptyEvery: 6 },
    scenario: { days: { single_days: 'error', to_date_inclusive: false, empty: '204' } },
    append: 'false',
  },
  {
    name: 'no line end at the end, the rows shuffled, an empty day is 404, today is a 500',
    truth: { emptyEvery: 5 },
    scenario: { format: { final_newline: false, shuffles_rows: true }, days: { empty: '404', today: 500 } },
    append: 'true',
  },
  {
    name: 'a provider that lags for two days, an empty day has zero bytes, today is a 400',
    truth: { lagHours: 50, isRestless: false },
    scenario: { days: { empty: 'zero_bytes', today: 400, future: 'limit' } },
    append: 'true',
  },
  {
    name: 'the history is short, an empty day is an empty list, today is a 404',
    truth: { emptyEvery: 7, zoneHours: 5.5 },
    scenario: { days: { history_days: 9, empty: 'list', today: 404 } },
    config: { history_days: 9, on_gap: 'warn' },
  },
  {
    name: 'some days are too large, few exports an hour, no reset is named',
    scenario: {
      isTooBig: ({ from, to, events }) =>
        events.condition === 'all' && LARGE_DAYS.some((day) => day >= from && day <= to),
      limits: { exports_per_hour: 30, names_reset: false },
      format: { framing: 'length' },
    },
    append: 'true',
  },
];

export const RUNS = 24;
const SEEDS = (process.env.SIMULATION_SEEDS ?? '1').split(',').map(Number);
export const HOURS = [3, 9, 14, 24, 24, 25, 31];

export const CASES = SEEDS.flatMap((seed) => KINDS.map((kind) => ({ seed, kind, name: kind.name })));
