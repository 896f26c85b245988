import { startOf } from '../base/days.ts';
import { DAY_MS } from '../base/durations.ts';
import type { Random } from '../base/runtime.ts';
import { type EventRow, fullStamp, ITEM_EVENTS, shortStamp } from './events.ts';
import { drawBirthday, memberNumber } from './people.ts';
import { drawNumber, drawOne, hashText, hex8 } from './random.ts';

type DrawText = (row: EventRow, random: Random) => string;

/** One column of the export: the rows in which it may have a value, and the text of that value. */
export interface Column {
  readonly name: string;
  /** Hash of the name: a seed, so that the cells of one row do not depend on each other. */
  readonly salt: number;
  readonly drawText: DrawText;
  /** True for a column that is in every export, whatever `properties` has. */
  readonly isSystem: boolean;
  /** True if each item of an event has a value of its own; else all rows of the event have the same. */
  readonly isOfItem: boolean;
  /** The kinds of event that may have a value; undefined: all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Share of the rows that have a value. */
  readonly share: number;
  /** Share of the days that have a value; on the other days the column does not exist. */
  readonly dayShare: number;
}

/** The texts of a column, to draw from or as a function. The other keys are those of `Column`. */
interface Definition extends Partial<Pick<Column, 'isOfItem' | 'share' | 'dayShare'>> {
  readonly texts: readonly string[] | DrawText;
  readonly kinds?: readonly string[];
}
type Definitions = Readonly<Record<string, Definition>>;

const columnsOf = (definitions: Definitions, isSystem: boolean): Column[] =>
  Object.entries(definitions).map(([name, { texts, kinds, isOfItem = false, share = 1, dayShare = 1 }]) => ({
    name,
    salt: hashText(name),
    drawText: typeof texts === 'function' ? texts : (_row, random) => drawOne(random, texts),
    isSystem,
    isOfItem,
    kinds: kinds && new Set(kinds),
    share,
    dayShare,
  }));

/** Draws one of `count` numbers from `least` on, with leading zeros up to a width. */
const number =
  (least: number, count: number, width = 1): DrawText =>
  (_row, random) =>
    String(least + drawNumber(random, count)).padStart(width, '0');

/** Writes a datetime of the row, one of eight in the short form. */
const stamp =
  (time: 'server' | 'correction' | 'occurred'): DrawText =>
  (row, random) =>
    (random() < 1 / 8 ? shortStamp : fullStamp)(row[time]);

/** Draws an amount in the forms of the provider's doubles: whole, with a fraction, or large with an exponent. */
const amount: DrawText = (_row, random) => {
  const whole = 100 + drawNumber(random, 90_000);
  return drawOne(random, [`${whole}00`, `${whole}00`, `${whole}.5`, `${1 + (whole % 8)}.${1 + (whole % 9)}E7`]);
};

/** Draws whole numbers on one day, numbers with a fraction on the next, text on the third. */
const level: DrawText = ({ day }, random) => {
  const turn = (startOf(day) / DAY_MS) % 3;
  const digit = drawNumber(random, 10);
  return [`${digit}`, `${digit}.25`, drawOne(random, ['silver', 'gold', '7', '다이아'])][turn];
};

const digitsOf = ({ day }: EventRow): string => day.replaceAll('-', '');

const logId = (row: EventRow): string => `${digitsOf(row)}-${hex8(row.hash)}`;

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

const ROUTES = ['검색', '지인 추천', '광고, 배너', 'instagram'];

const LISTS = ['["a","b"]', '["신상품"]', '[]', '["x, y","say \\"hi\\""]', '["줄\\n바꿈"]', '[null,"a"]', '["1","2"]'];

const BOOLEANS = ['TRUE', 'FALSE'];

const SIGN_UP = { kinds: ['df_sign_up'] };
const PURCHASE = { kinds: ['df_purchase'] };
const PAYMENT = { kinds: ['df_purchase', 'df_refund', 'df_add_payment_info'] };
const SURVEY = { kinds: ['설문 응답', 'survey, "second" page', 'df_sign_up'], share: 0.8 };
const ITEM = { isOfItem: true, kinds: ITEM_EVENTS };

const SYSTEM: Definitions = {
  df_unified_id: { texts: (row) => row.unifiedId },
  df_api_version: { texts: ['v1', 'v1', 'v1', 'v1', 'v1', 'v1', 'v2'] },
  df_server_datetime: { texts: stamp('server') },
  df_correction_datetime: { texts: stamp('correction') },
  // A purchase has one row an item, and the id of each row has the position of its item.
  df_event_detail_log_id: { texts: (row) => (row.rowCount > 1 ? `${logId(row)}:${row.item}` : logId(row)) },
  df_event_log_id: { texts: logId },
  event_name: { texts: (row) => row.kind },
};

const STANDARD: Definitions = {
  df_delivery_charge: { texts: ['0', '2500', '3000', '2999.5'], ...PURCHASE, share: 0.7 },
  df_discount: { texts: amount, ...PAYMENT, share: 0.47 },
  df_event_datetime: { texts: stamp('occurred') },
  df_keyword: { texts: KEYWORDS, kinds: ['df_view_search_result'] },
  df_order_id: { texts: (row) => `${digitsOf(row)}${String(row.index).padStart(7, '0')}`, ...PAYMENT },
  df_payment_method: {
    texts: ['card', 'bank_transfer', '네이버페이', 'kakao_pay', 'point'],
    ...PAYMENT,
    share: 0.94,
  },
  df_service_id: { texts: (row) => row.serviceId },
  df_sharing_channel: { texts: CHANNELS, kinds: ['df_share_product'] },
  df_sign_channel: { texts: CHANNELS, kinds: ['df_sign_up', 'df_login'] },
  df_source_type: { texts: ['ANDROID', 'IOS', 'WEB', 'SERVER'], share: 0.98 },
  df_total_purchase_amount: { texts: amount, ...PURCHASE },
  df_total_refund_amount: { texts: amount, kinds: ['df_refund'] },
  sum: { texts: number(0, 1_000_000), kinds: ['df_purchase', 'df_refund', 'df_view_cart'] },
  df_items_df_category1: { texts: CATEGORIES, ...ITEM },
  df_items_df_category2: { texts: CATEGORIES, ...ITEM, share: 0.62 },
  df_items_df_category3: { texts: CATEGORIES, ...ITEM, share: 0.23 },
  df_items_df_category4: { texts: CATEGORIES, ...ITEM, share: 0.06 },
  df_items_df_category5: { texts: CATEGORIES, ...ITEM, share: 0.02 },
  df_items_df_discount: { texts: ['0', '500', '1000.5', '10'], ...ITEM, share: 0.35 },
  df_items_df_item_id: { texts: number(0, 100_000, 6), ...ITEM },
  df_items_df_item_name: { texts: ITEM_NAMES, ...ITEM },
  df_items_df_price: { texts: amount, ...ITEM },
  df_items_df_quantity: { texts: number(1, 9), ...ITEM },
};

const CUSTOM: Definitions = {
  member_no: { texts: (row) => memberNumber(row.user), share: 0.78 },
  is_member: { texts: BOOLEANS, share: 0.86 },
  plan: { texts: PLANS, share: 0.35 },
  age: { texts: number(14, 70), kinds: ['df_sign_up', 'df_login'], share: 0.7 },
  score: { texts: ['0.1', '12.5', '-3', '99.99', '1.0E10', '0'], share: 0.12 },
  big_id: {
    texts: (_row, random) => `900719925474${String(drawNumber(random, 10_000_000)).padStart(7, '0')}`,
    share: 0.1,
  },
  birthday: { texts: (_row, random) => drawBirthday(random), ...SIGN_UP, share: 0.78 },
  first_seen_at: { texts: (row) => new Date(row.occurred).toISOString(), share: 0.08 },
  tags: { texts: ['null', ...LISTS], share: 0.2 },
  sizes: { texts: ['null', '[1,2,3]', '[240]', '[]', '[9007199254740993]'], share: 0.08 },
  ratings: { texts: ['null', '[1.5,2]', '[0.1]', '[]', '[4,4.5,5]'], share: 0.05, dayShare: 0.66 },
  memo: { texts: MEMOS, kinds: ['df_purchase', 'df_refund'], share: 0.62 },
  '가입 경로': { texts: ROUTES, ...SIGN_UP },
  'utm.source': { texts: PLANS, kinds: ['df_start_session'], share: 0.39 },
  'answer "free"': { texts: MEMOS, ...SURVEY, dayShare: 0.59 },
  'q1, q2': { texts: BOOLEANS, ...SURVEY, dayShare: 0.47 },
  Grade: { texts: ['A', 'B', 'C'], share: 0.16, dayShare: 0.78 },
  grade: { texts: number(1, 5), share: 0.16, dayShare: 0.55 },
  select: { texts: BOOLEANS, share: 0.05, dayShare: 0.35 },
  'event 🎉': { texts: ROUTES, share: 0.06, dayShare: 0.23 },
  campaign_id: { texts: (_row, random) => `00${drawNumber(random, 1_000)}`, share: 0.12, dayShare: 0.16 },
  df_items_color: { texts: ['빨강', 'navy', '#00ff00', '검정/흰색', 'off-white'], ...ITEM, share: 0.47 },
  df_items_옵션: { texts: MEMOS, ...ITEM, share: 0.23, dayShare: 0.7 },
  df_items_is_gift: { texts: BOOLEANS, ...ITEM, share: 0.39 },
  df_items_labels: { texts: ['null', ...LISTS], ...ITEM, share: 0.16 },
  level: { texts: level, share: 0.23 },
};

/** All columns of exports, in the order of their names. */
export const COLUMNS: readonly Column[] = [
  ...columnsOf(SYSTEM, true),
  ...columnsOf(STANDARD, false),
  ...columnsOf(CUSTOM, false),
].sort((a, b) => (a.name < b.name ? -1 : 1));
