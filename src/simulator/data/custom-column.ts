import type { Scenario } from '../scenario.ts';
import { type ColumnSpec, column } from './column.ts';
import { ITEM_EVENTS, maskOf } from './event-name.ts';
import { pick } from './standard-column.ts';
import { COLORS, LISTS, MEMOS, PLANS, ROUTES } from './text.ts';

const truth = (_row: unknown, h: number) => (h & 0x100 ? 'TRUE' : 'FALSE');
const two = (n: number) => String(n).padStart(2, '0');
const survey = maskOf('설문 응답', 'survey, "second" page', 'df_sign_up');
const item = { grain: 'item', events: ITEM_EVENTS } as const;

/** Lists as JSON text; an absent list is, as often as not, the text `null`. */
const list = (values: readonly string[]) => (_row: unknown, h: number) => (h & 0x300 ? pick(values, h) : 'null');

const birthday = (_row: unknown, h: number) =>
  `${1940 + ((h >>> 8) % 75)}-${two(1 + ((h >>> 15) % 12))}-${two(1 + ((h >>> 20) % 28))}`;

/** Whole on one day, with a fraction on the next, text on the third. */
const level: ColumnSpec['text'] = (row, h) => {
  const turn = ((row.plan.number % 3) + 3) % 3;
  return turn === 0 ? String(h % 10) : turn === 1 ? `${h % 10}.25` : pick(['silver', 'gold', '7', '다이아'], h);
};

const BASE: readonly ColumnSpec[] = [
  column('member_no', { fill: 200, text: (row) => memberNumber(row.user) }),
  column('is_member', { fill: 220, text: truth }),
  column('plan', { fill: 90, text: (_r, h) => pick(PLANS, h) }),
  column('age', {
    events: maskOf('df_sign_up', 'df_login'),
    fill: 180,
    text: (_r, h) => String(14 + ((h >>> 8) % 70)),
  }),
  column('score', { fill: 30, text: (_r, h) => pick(['0.1', '12.5', '-3', '99.99', '1.0E10', '0'], h) }),
  column('big_id', { fill: 25, text: (_r, h) => `900719925474${String(h % 10_000_000).padStart(7, '0')}` }),
  column('birthday', { events: maskOf('df_sign_up'), fill: 200, text: birthday }),
  column('first_seen_at', { fill: 20, text: (row) => new Date(row.occurred).toISOString() }),
  column('tags', { fill: 50, free: true, text: list(LISTS) }),
  column('sizes', { fill: 20, free: true, text: list(['[1,2,3]', '[240]', '[]', '[9007199254740993]']) }),
  column('ratings', { fill: 14, free: true, days: 170, text: list(['[1.5,2]', '[0.1]', '[]', '[4,4.5,5]']) }),
  column('memo', {
    events: maskOf('df_purchase', 'df_refund'),
    fill: 160,
    free: true,
    text: (_r, h) => pick(MEMOS, h),
  }),
  column('가입 경로', { events: maskOf('df_sign_up'), free: true, text: (_r, h) => pick(ROUTES, h) }),
  column('utm.source', { events: maskOf('df_start_session'), fill: 100, text: (_r, h) => pick(PLANS, h) }),
  column('answer "free"', { events: survey, fill: 200, days: 150, free: true, text: (_r, h) => pick(MEMOS, h) }),
  column('q1, q2', { events: survey, fill: 200, days: 120, text: truth }),
  column('Grade', { fill: 40, days: 200, text: (_r, h) => pick(['A', 'B', 'C'], h) }),
  column('grade', { fill: 40, days: 140, text: (_r, h) => String(1 + ((h >>> 8) % 5)) }),
  column('select', { fill: 12, days: 90, text: truth }),
  column('event 🎉', { fill: 16, days: 60, free: true, text: (_r, h) => pick(ROUTES, h) }),
  column('campaign_id', { fill: 30, days: 40, text: (_r, h) => `00${(h >>> 8) % 1_000}` }),
  column('df_items_color', { ...item, fill: 120, text: (_r, h) => pick(COLORS, h) }),
  column('df_items_옵션', { ...item, fill: 60, days: 180, free: true, text: (_r, h) => pick(MEMOS, h) }),
  column('df_items_is_gift', { ...item, fill: 100, text: truth }),
  column('df_items_labels', { ...item, fill: 40, free: true, text: list(LISTS) }),
];

/** The number by which the customer knows a user: the external id, with leading zeros. */
export const memberNumber = (user: number): string => String(user).padStart(8, '0');

export function customColumns(scenario: Scenario): ColumnSpec[] {
  return scenario.columns.type_drift ? [...BASE, column('level', { fill: 60, text: level })] : [...BASE];
}

/** Names that are keys of every object, ours, an empty key's, or need quoting everywhere. */
export const hostileColumns: readonly ColumnSpec[] = [
  '__proto__',
  'constructor',
  '_key',
  '_rescued',
  '_dfinery_window',
  'event_date',
  'item_position',
  '_KEY',
  'df_items_',
  'df_unknown',
  'df_items_df_event_log_id',
  'a"b',
  "a'b",
  'a\nb',
  'a\\b',
  ' padded ',
  'ORDER',
  'İ',
  'i̇',
].map((name) => column(name, { fill: 40, free: true, text: (_r, h) => pick(PLANS, h) }));

/** Any number of columns, in every header, each with a value in one row of 256. */
export function extraColumns(count: number): ColumnSpec[] {
  return Array.from({ length: count }, (_, i) =>
    column(`x_${String(i).padStart(5, '0')}`, { isListed: true, fill: 1, text: (_r, h) => String(h) }),
  );
}

export function ownColumns(scenario: Scenario): ColumnSpec[] {
  return scenario.columns.own.map((own) =>
    column(own.name, {
      fill: Math.round(own.share * 256),
      free: true,
      text: (row) => own.values[(own.per === 'day' ? row.plan.number : row.index) % own.values.length] ?? '',
      ...(own.days && { onDay: (day: string) => own.days?.includes(day) === true }),
    }),
  );
}
