import { addDays } from '../../base/days.ts';
import type { Scenario } from '../scenario.ts';
import { type ColumnSpec, column } from './column.ts';
import type { DatasetParameters } from './dataset-parameters.ts';
import type { Row } from './event.ts';
import { EVENT_KINDS, ITEM_EVENTS, maskOf, UNNAMED } from './event-name.ts';
import { hex8, mix, within } from './hash.ts';
import { CATEGORIES, CHANNELS, ITEM_NAMES, KEYWORDS, PAYMENTS, SOURCES } from './text.ts';

export const pick = (from: readonly string[], h: number): string => from[(h >>> 8) % from.length];

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
