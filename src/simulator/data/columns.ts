import { addDays } from '../../base/days.ts';
import type { Scenario } from '../scenario.ts';
import { type DatasetParameters, EVENT_KINDS, ITEM_EVENTS, maskOf, type Row, UNNAMED } from './event.ts';
import { hex8, mix, within } from './hash.ts';
import {
  CATEGORIES,
  CHANNELS,
  COLORS,
  ITEM_NAMES,
  KEYWORDS,
  LISTS,
  MEMOS,
  PAYMENTS,
  PLANS,
  ROUTES,
  SOURCES,
} from './text.ts';

/** One column of the export: where it may have a value, and the text of that value. */
export interface ColumnSpec {
  readonly name: string;
  /** System columns are in every export, whatever `properties` says. */
  readonly isSystem: boolean;
  /** In the header even where no row has a value. */
  readonly isListed: boolean;
  /** Whose value it is: an event's, repeated on each of its rows, or an item's. */
  readonly grain: 'event' | 'item';
  /** Bits of the event kinds that may carry it. */
  readonly events: number;
  /** Of 256 rows, how many have a value. */
  readonly fill: number;
  /** Of 256 days, how many know the column at all. */
  readonly days: number;
  /** Whether the text may need CSV quotes. */
  readonly free: boolean;
  /** The text for a row, drawn from `h`; an empty text is an absent value. */
  readonly text: (row: Row, h: number, parameters: DatasetParameters) => string;
  /** Overrides `days` where the days are named. */
  readonly onDay?: (day: string) => boolean;
}

export interface Column extends ColumnSpec {
  readonly salt: number;
}

const EVERY = 256;
const ALL_EVENTS = -1;

/** A column with what is usual, but for the parts given. */
const column = (name: string, part: Partial<ColumnSpec> & Pick<ColumnSpec, 'text'>): ColumnSpec => ({
  name,
  isSystem: false,
  isListed: false,
  grain: 'event',
  events: ALL_EVENTS,
  fill: EVERY,
  days: EVERY,
  free: false,
  ...part,
});

const pick = (from: readonly string[], h: number): string => from[(h >>> 8) % from.length];

const stamp = (ms: number, h: number, parameters: DatasetParameters): string =>
  (h & 0x700) === 0 ? parameters.stamps.short(ms) : parameters.stamps.full(ms);

export function systemColumns(scenario: Scenario): ColumnSpec[] {
  const always = { isSystem: true } as const;
  return [
    column('df_unified_id', { ...always, text: (row, _h, parameters) => unifiedId(row, parameters) }),
    column('df_api_version', { ...always, text: (_row, h) => (h % 7 === 0 ? 'v2' : 'v1') }),
    column(scenario.columns.event_name, {
      ...always,
      free: true,
      text: (row) => (row.kind === UNNAMED ? '' : EVENT_KINDS[row.kind].name),
    }),
    column('df_server_datetime', { ...always, text: (row, h, parameters) => stamp(row.server, h, parameters) }),
    column('df_correction_datetime', { ...always, text: (row, h, parameters) => stamp(row.correction, h, parameters) }),
    column('df_event_detail_log_id', { ...always, text: detailId }),
    column('df_event_log_id', {
      ...always,
      text: (row, _h, parameters) => carriedId(row, parameters) ?? logId(row, parameters),
    }),
  ];
}

function unifiedId({ hash, user }: Row, { seed, scenario }: DatasetParameters): string {
  return within(mix(hash, 41), scenario.rows.anonymous_share) ? '' : `u${hex8(mix(seed, user))}`;
}

/** Unique to an event: its day and a hash that no other event of the day has; a duplicate has its neighbour's. */
function logId(row: Row, parameters: DatasetParameters): string {
  if (within(mix(row.hash, 42), parameters.scenario.ids.reused_share)) return idOfDayBefore(row, parameters);
  return `${row.plan.compact}-${hex8(isDuplicate(row, parameters) ? mix(row.plan.hash, row.index + 15) : row.hash)}`;
}

/** The id of the event of the same number on the day before, where that goes on. */
function carriedId(row: Row, parameters: DatasetParameters): string | undefined {
  if (!within(mix(row.hash, 40), parameters.scenario.ids.carried_share)) return undefined;
  return idOfDayBefore(row, parameters);
}

function idOfDayBefore({ plan, index }: Row, { seed }: DatasetParameters): string {
  const before = mix(mix(seed, plan.number - 1), index + 16);
  return `${addDays(plan.day, -1).replaceAll('-', '')}-${hex8(before)}`;
}

function isDuplicate(row: Row, parameters: DatasetParameters): boolean {
  return row.index > 0 && within(mix(row.hash, 20), parameters.scenario.ids.duplicate_share);
}

function detailId(row: Row, _h: number, parameters: DatasetParameters): string {
  const { ids } = parameters.scenario;
  if (within(mix(row.hash, 21 + row.item), ids.missing_share)) return '';
  const isNumbered = row.items > 1 && (EVENT_KINDS[row.kind].items === 'many' || ids.other_item_events === 'numbered');
  return isNumbered ? `${logId(row, parameters)}:${row.item + ids.first_item}` : logId(row, parameters);
}

/** Won or euro, as the provider's doubles come: whole, with a fraction, or with an exponent when large. */
function amount(_row: Row, h: number): string {
  const whole = 100 + ((h >>> 8) % 90_000);
  if ((h & 0xf0) === 0) return `${1 + (h >>> 29)}.${1 + ((h >>> 9) % 9)}E7`;
  return (h & 0x30) === 0x10 ? `${whole}.5` : `${whole}00`;
}

const purchase = maskOf('df_purchase', 'df_refund', 'df_add_payment_info');

export const standardColumns: readonly ColumnSpec[] = [
  column('df_delivery_charge', {
    events: maskOf('df_purchase'),
    fill: 180,
    text: (_r, h) => pick(['0', '2500', '3000', '2999.5'], h),
  }),
  column('df_discount', { events: purchase, fill: 120, text: amount }),
  column('df_event_datetime', { text: (row, h, parameters) => stamp(row.occurred, h, parameters) }),
  column('df_keyword', { events: maskOf('df_view_search_result'), free: true, text: (_r, h) => pick(KEYWORDS, h) }),
  column('df_order_id', {
    events: purchase,
    text: (row) => `${row.plan.compact}${String(row.index).padStart(7, '0')}`,
  }),
  column('df_payment_method', { events: purchase, fill: 240, text: (_r, h) => pick(PAYMENTS, h) }),
  column('df_service_id', { free: true, text: (_r, _h, parameters) => parameters.serviceId }),
  column('df_sharing_channel', { events: maskOf('df_share_product'), text: (_r, h) => pick(CHANNELS, h) }),
  column('df_sign_channel', { events: maskOf('df_sign_up', 'df_login'), text: (_r, h) => pick(CHANNELS, h) }),
  column('df_source_type', { fill: 250, text: (_r, h) => pick(SOURCES, h) }),
  column('df_total_purchase_amount', { events: maskOf('df_purchase'), text: amount }),
  column('df_total_refund_amount', { events: maskOf('df_refund'), text: amount }),
  column('sum', { events: maskOf('df_purchase', 'df_refund', 'df_view_cart'), text: (_r, h) => String(h % 1_000_000) }),
];

const item = { grain: 'item', events: ITEM_EVENTS } as const;
const category = (n: number, fill: number) =>
  column(`df_items_df_category${n}`, { ...item, fill, free: true, text: (_r, h) => pick(CATEGORIES, h) });

export const itemColumns: readonly ColumnSpec[] = [
  category(1, 256),
  category(2, 160),
  category(3, 60),
  category(4, 16),
  category(5, 4),
  column('df_items_df_discount', { ...item, fill: 90, text: (_r, h) => pick(['0', '500', '1000.5', '10'], h) }),
  column('df_items_df_item_id', { ...item, text: (_r, h) => String((h >>> 8) % 100_000).padStart(6, '0') }),
  column('df_items_df_item_name', { ...item, free: true, text: (_r, h) => pick(ITEM_NAMES, h) }),
  column('df_items_df_price', { ...item, text: amount }),
  column('df_items_df_quantity', { ...item, text: (_r, h) => String(1 + ((h >>> 8) % 9)) }),
];

const truth = (_row: unknown, h: number) => (h & 0x100 ? 'TRUE' : 'FALSE');
const two = (n: number) => String(n).padStart(2, '0');
const survey = maskOf('설문 응답', 'survey, "second" page', 'df_sign_up');
const ofItem = { grain: 'item', events: ITEM_EVENTS } as const;

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
  column('df_items_color', { ...ofItem, fill: 120, text: (_r, h) => pick(COLORS, h) }),
  column('df_items_옵션', { ...ofItem, fill: 60, days: 180, free: true, text: (_r, h) => pick(MEMOS, h) }),
  column('df_items_is_gift', { ...ofItem, fill: 100, text: truth }),
  column('df_items_labels', { ...ofItem, fill: 40, free: true, text: list(LISTS) }),
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
