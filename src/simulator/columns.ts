import { DAY_MS } from '../base/clock.ts';
import { startOf } from '../base/days.ts';
import type { Random } from '../base/runtime.ts';
import { type EventRow, fullTimestamp, ITEM_EVENTS, shortTimestamp } from './events.ts';
import { drawBirthday, externalId, unifiedId } from './people.ts';
import { drawFrom, drawNumber, hashOf, hexOf } from './random.ts';

type DrawText = (row: EventRow, random: Random) => string;

/** One column of the export: the rows in which it may have a value, and the text of that value. */
export interface Column {
  readonly name: string;
  /** Hash of the name: a seed, so that the cells of one row do not depend on each other. */
  readonly seed: number;
  readonly draw: DrawText;
  /** True for a column that is in every export, whatever `properties` has. */
  readonly isSystem: boolean;
  /** True if each item of an event has a value of its own; else all rows of the event have the same. */
  readonly isPerItem: boolean;
  /** The names of the events that may have a value; absent: all. */
  readonly eventNames?: readonly string[];
  /** Share of the rows that have a value. */
  readonly share: number;
  /** Share of the days that have a value; on the other days the column does not exist. */
  readonly dayShare: number;
}

const oneOf =
  (texts: readonly string[]): DrawText =>
  (_row, random) =>
    drawFrom(random, texts);

/** Draws a whole number from `least` to `most`, with leading zeros up to a width. */
const between =
  (least: number, most: number, width = 1): DrawText =>
  (_row, random) =>
    String(least + drawNumber(random, most - least + 1)).padStart(width, '0');

/** Writes a datetime of the row, one of eight in the short form. */
const timestamp =
  (time: 'receivedAt' | 'sentAt' | 'occurredAt'): DrawText =>
  (row, random) =>
    (random() < 1 / 8 ? shortTimestamp : fullTimestamp)(row[time]);

/** Draws an amount in the forms of the provider's doubles: whole, with a fraction, or large with an exponent. */
const amount: DrawText = (_row, random) => {
  const whole = 100 + drawNumber(random, 90_000);
  return drawFrom(random, [`${whole}00`, `${whole}00`, `${whole}.5`, `${1 + (whole % 8)}.${1 + (whole % 9)}E7`]);
};

/** Draws whole numbers on one day, numbers with a fraction on the next, text on the third. */
const level: DrawText = ({ day }, random) => {
  const turn = (startOf(day) / DAY_MS) % 3;
  const digit = drawNumber(random, 10);
  return [`${digit}`, `${digit}.25`, drawFrom(random, ['silver', 'gold', '7', '다이아'])][turn];
};

const digitsOf = ({ day }: EventRow): string => day.replaceAll('-', '');

const logId = (row: EventRow): string => `${digitsOf(row)}-${hexOf(row.hash)}`;

// Texts as people type them: texts that a CSV has to quote, and texts that look like something that they are not.

const KEYWORDS = [
  '여름 원피스',
  '노트북 15"',
  'red, blue',
  "O'Neill",
  '선물 🎁',
  'null',
  '007',
  'TRUE',
  'e\u0301te\u0301',
  '=1+1',
];

const MEMOS = [
  '문 앞에 놓아 주세요',
  'line one\r\nline two\n',
  'He said "no", then left',
  '""',
  ',',
  '\\',
  '\n',
  '2026-01-01',
];

const ITEM_NAMES = ['린넨 셔츠', '운동화 270mm', 'Wool coat, long', '27" 모니터', 'USB-C 케이블 (2m)', 'Notebook A5'];
const CATEGORIES = ['패션', '가전', '식품', '스포츠', 'Home & Living', '도서/문구', 'Kids, baby'];
const CHANNELS = ['kakao', 'facebook', 'email', 'apple', 'link'];
const PLANS = ['free', 'basic', 'pro', '기업'];
const SIGN_UP_ROUTES = ['검색', '지인 추천', '광고, 배너', 'instagram'];
const LISTS = ['["a","b"]', '["신상품"]', '[]', '["x, y","say \\"hi\\""]', '["줄\\n바꿈"]', '[null,"a"]', '["1","2"]'];
const BOOLEANS = ['TRUE', 'FALSE'];

const SIGN_UP = { eventNames: ['df_sign_up'] };
const PURCHASE = { eventNames: ['df_purchase'] };
const PAYMENT = { eventNames: ['df_purchase', 'df_refund', 'df_add_payment_info'] };
const SURVEY = { eventNames: ['설문 응답', 'survey, "second" page', 'df_sign_up'], share: 0.8 };
const ITEM = { isPerItem: true, eventNames: ITEM_EVENTS };
const SYSTEM = { isSystem: true };

/** What the columns have, by name. */
const COLUMN_RULES: Readonly<Record<string, Pick<Column, 'draw'> & Partial<Column>>> = {
  df_unified_id: { draw: (row) => unifiedId(row.user), ...SYSTEM },
  df_api_version: { draw: oneOf(['v1', 'v1', 'v1', 'v1', 'v1', 'v1', 'v2']), ...SYSTEM },
  df_server_datetime: { draw: timestamp('receivedAt'), ...SYSTEM },
  df_correction_datetime: { draw: timestamp('sentAt'), ...SYSTEM },
  // An event of several items has one row an item: the id of each row has the position of its item.
  df_event_detail_log_id: { draw: (row) => (row.rowCount > 1 ? `${logId(row)}:${row.item}` : logId(row)), ...SYSTEM },
  df_event_log_id: { draw: logId, ...SYSTEM },
  event_name: { draw: (row) => row.eventName, ...SYSTEM },
  df_delivery_charge: { draw: oneOf(['0', '2500', '3000', '2999.5']), ...PURCHASE, share: 0.7 },
  df_discount: { draw: amount, ...PAYMENT, share: 0.47 },
  df_event_datetime: { draw: timestamp('occurredAt') },
  df_keyword: { draw: oneOf(KEYWORDS), eventNames: ['df_view_search_result'] },
  df_order_id: { draw: (row) => `${digitsOf(row)}${String(row.index).padStart(7, '0')}`, ...PAYMENT },
  df_payment_method: {
    draw: oneOf(['card', 'bank_transfer', '네이버페이', 'kakao_pay', 'point']),
    ...PAYMENT,
    share: 0.94,
  },
  df_service_id: { draw: (row) => row.serviceId },
  df_sharing_channel: { draw: oneOf(CHANNELS), eventNames: ['df_share_product'] },
  df_sign_channel: { draw: oneOf(CHANNELS), eventNames: ['df_sign_up', 'df_login'] },
  df_source_type: { draw: oneOf(['ANDROID', 'IOS', 'WEB', 'SERVER']), share: 0.98 },
  df_total_purchase_amount: { draw: amount, ...PURCHASE },
  df_total_refund_amount: { draw: amount, eventNames: ['df_refund'] },
  sum: { draw: between(0, 999_999), eventNames: ['df_purchase', 'df_refund', 'df_view_cart'] },
  df_items_df_category1: { draw: oneOf(CATEGORIES), ...ITEM },
  df_items_df_category2: { draw: oneOf(CATEGORIES), ...ITEM, share: 0.62 },
  df_items_df_category3: { draw: oneOf(CATEGORIES), ...ITEM, share: 0.23 },
  df_items_df_category4: { draw: oneOf(CATEGORIES), ...ITEM, share: 0.06 },
  df_items_df_category5: { draw: oneOf(CATEGORIES), ...ITEM, share: 0.02 },
  df_items_df_discount: { draw: oneOf(['0', '500', '1000.5', '10']), ...ITEM, share: 0.35 },
  df_items_df_item_id: { draw: between(0, 99_999, 6), ...ITEM },
  df_items_df_item_name: { draw: oneOf(ITEM_NAMES), ...ITEM },
  df_items_df_price: { draw: amount, ...ITEM },
  df_items_df_quantity: { draw: between(1, 9), ...ITEM },
  member_no: { draw: (row) => externalId(row.user), share: 0.78 },
  is_member: { draw: oneOf(BOOLEANS), share: 0.86 },
  plan: { draw: oneOf(PLANS), share: 0.35 },
  age: { draw: between(14, 83), eventNames: ['df_sign_up', 'df_login'], share: 0.7 },
  score: { draw: oneOf(['0.1', '12.5', '-3', '99.99', '1.0E10', '0']), share: 0.12 },
  big_id: {
    draw: (_row, random) => `900719925474${String(drawNumber(random, 10_000_000)).padStart(7, '0')}`,
    share: 0.1,
  },
  birthday: { draw: (_row, random) => drawBirthday(random), ...SIGN_UP, share: 0.78 },
  first_seen_at: { draw: (row) => new Date(row.occurredAt).toISOString(), share: 0.08 },
  tags: { draw: oneOf(['null', ...LISTS]), share: 0.2 },
  sizes: { draw: oneOf(['null', '[1,2,3]', '[240]', '[]', '[9007199254740993]']), share: 0.08 },
  ratings: { draw: oneOf(['null', '[1.5,2]', '[0.1]', '[]', '[4,4.5,5]']), share: 0.05, dayShare: 0.66 },
  memo: { draw: oneOf(MEMOS), eventNames: ['df_purchase', 'df_refund'], share: 0.62 },
  '가입 경로': { draw: oneOf(SIGN_UP_ROUTES), ...SIGN_UP },
  'utm.source': { draw: oneOf(PLANS), eventNames: ['df_start_session'], share: 0.39 },
  'answer "free"': { draw: oneOf(MEMOS), ...SURVEY, dayShare: 0.59 },
  'q1, q2': { draw: oneOf(BOOLEANS), ...SURVEY, dayShare: 0.47 },
  Grade: { draw: oneOf(['A', 'B', 'C']), share: 0.16, dayShare: 0.78 },
  grade: { draw: between(1, 5), share: 0.16, dayShare: 0.55 },
  select: { draw: oneOf(BOOLEANS), share: 0.05, dayShare: 0.35 },
  'event 🎉': { draw: oneOf(SIGN_UP_ROUTES), share: 0.06, dayShare: 0.23 },
  campaign_id: { draw: (_row, random) => `00${drawNumber(random, 1_000)}`, share: 0.12, dayShare: 0.16 },
  df_items_color: { draw: oneOf(['빨강', 'navy', '#00ff00', '검정/흰색', 'off-white']), ...ITEM, share: 0.47 },
  df_items_옵션: { draw: oneOf(MEMOS), ...ITEM, share: 0.23, dayShare: 0.7 },
  df_items_is_gift: { draw: oneOf(BOOLEANS), ...ITEM, share: 0.39 },
  df_items_labels: { draw: oneOf(['null', ...LISTS]), ...ITEM, share: 0.16 },
  level: { draw: level, share: 0.23 },
};

const DEFAULT_RULES = { isSystem: false, isPerItem: false, share: 1, dayShare: 1 };

/** All columns of exports, in the order of their names. */
export const COLUMNS: readonly Column[] = Object.entries(COLUMN_RULES)
  .map(([name, rules]) => ({ ...DEFAULT_RULES, name, seed: hashOf(name), ...rules }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));
