import { EVENT_KINDS, type EventRow, fullStamp, ITEM_EVENTS, kindsOf, shortStamp } from './event.ts';
import { hashText, hex8, oneOf } from './hashing.ts';
import { birthday, memberNumber, unifiedId } from './profiles.ts';

/** Generates the text of a cell for a row, drawn by a hash; an empty text is an absent value. */
type TextGenerator = (row: EventRow, hash: number, context: TextContext) => string;

interface TextContext {
  readonly seed: number;
  readonly serviceId: string;
}

/** One column of the export: the rows in which it may have a value, and the text of that value. */
export interface Column {
  readonly name: string;
  /** Hash of the name, so that the cells of one row are drawn from different hashes. */
  readonly salt: number;
  readonly textOf: TextGenerator;
  /** True for a system column, which is in every export, whatever `properties` has. */
  readonly isSystem: boolean;
  /** Whether the value belongs to an event, and is repeated in each of its rows, or to an item. */
  readonly grain: 'event' | 'item';
  /** Bits of the kinds of event that may have a value. */
  readonly kinds: number;
  /** Number of rows with a value among 256 rows. */
  readonly rowsOf256: number;
  /** Number of days with a value among 256 days; on the other days the column does not exist. */
  readonly daysOf256: number;
}

/** How the texts of a column are made, by a list to draw from or a function. Other keys replace those of `USUAL`. */
type Definition = { readonly texts: readonly string[] | TextGenerator } & Partial<Pick<Column, keyof typeof USUAL>>;
type Definitions = Readonly<Record<string, Definition>>;

const USUAL = { isSystem: false, grain: 'event', kinds: -1, rowsOf256: 256, daysOf256: 256 } as const;

function columnOf(name: string, { texts, ...definition }: Definition): Column {
  const textOf: TextGenerator = typeof texts === 'function' ? texts : (_row, hash) => oneOf(texts, hash);
  return { name, salt: hashText(name), textOf, ...USUAL, ...definition };
}

/** Generates one of `count` numbers from `least` on, with leading zeros up to a width. */
const number =
  (least: number, count: number, width = 1): TextGenerator =>
  (_row, hash) =>
    String(least + ((hash >>> 8) % count)).padStart(width, '0');

const bool: TextGenerator = (_row, hash) => (hash & 0x100 ? 'TRUE' : 'FALSE');

/** Generates lists as JSON text; one of four is the text `null`. */
const orNull =
  (...values: readonly string[]): TextGenerator =>
  (_row, hash) =>
    hash & 0x300 ? oneOf(values, hash) : 'null';

/** Generates the datetime of a row in one of the two forms. */
const stamp =
  (time: 'server' | 'correction' | 'occurred'): TextGenerator =>
  (row, hash) =>
    ((hash & 0x700) === 0 ? shortStamp : fullStamp)(row[time]);

/**
 * Generates an amount in the forms of the provider's doubles: whole, with a fraction, or large with an exponent. The
 * form follows from the bits that also decide whether there is a value.
 */
const amount: TextGenerator = (_row, hash) => {
  const whole = 100 + ((hash >>> 8) % 90_000);
  if ((hash & 0xf0) === 0) return `${1 + (hash >>> 29)}.${1 + ((hash >>> 9) % 9)}E7`;
  return (hash & 0x30) === 0x10 ? `${whole}.5` : `${whole}00`;
};

/** Generates whole numbers on one day, numbers with a fraction on the next, text on the third. */
const level: TextGenerator = (row, hash) => {
  const turn = ((row.day.number % 3) + 3) % 3;
  return turn === 0
    ? String(hash % 10)
    : turn === 1
      ? `${hash % 10}.25`
      : oneOf(['silver', 'gold', '7', '다이아'], hash);
};

const logId = ({ day, hash }: EventRow): string => `${day.digits}-${hex8(hash)}`;

/** A purchase has one row an item, and the id of each row has the position of its item. */
const detailId: TextGenerator = (row) => (row.rowCount > 1 ? `${logId(row)}:${row.item}` : logId(row));

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

const SIGN_UP = { kinds: kindsOf('df_sign_up') };
const PURCHASE = { kinds: kindsOf('df_purchase') };
const PAYMENT = { kinds: kindsOf('df_purchase', 'df_refund', 'df_add_payment_info') };
const SURVEY = { kinds: kindsOf('설문 응답', 'survey, "second" page', 'df_sign_up'), rowsOf256: 200 };
const ITEM = { grain: 'item', kinds: ITEM_EVENTS } as const;

const SYSTEM: Definitions = {
  df_unified_id: { texts: ({ user }, _hash, { seed }) => unifiedId(user, seed) },
  df_api_version: { texts: (_row, hash) => (hash % 7 === 0 ? 'v2' : 'v1') },
  df_server_datetime: { texts: stamp('server') },
  df_correction_datetime: { texts: stamp('correction') },
  df_event_detail_log_id: { texts: detailId },
  df_event_log_id: { texts: logId },
  event_name: { texts: ({ kind }) => EVENT_KINDS[kind].name },
};

const STANDARD: Definitions = {
  df_delivery_charge: { texts: ['0', '2500', '3000', '2999.5'], ...PURCHASE, rowsOf256: 180 },
  df_discount: { texts: amount, ...PAYMENT, rowsOf256: 120 },
  df_event_datetime: { texts: stamp('occurred') },
  df_keyword: { texts: KEYWORDS, kinds: kindsOf('df_view_search_result') },
  df_order_id: { texts: (row) => `${row.day.digits}${String(row.index).padStart(7, '0')}`, ...PAYMENT },
  df_payment_method: {
    texts: ['card', 'bank_transfer', '네이버페이', 'kakao_pay', 'point'],
    ...PAYMENT,
    rowsOf256: 240,
  },
  df_service_id: { texts: (_row, _hash, { serviceId }) => serviceId },
  df_sharing_channel: { texts: CHANNELS, kinds: kindsOf('df_share_product') },
  df_sign_channel: { texts: CHANNELS, kinds: kindsOf('df_sign_up', 'df_login') },
  df_source_type: { texts: ['ANDROID', 'IOS', 'WEB', 'SERVER'], rowsOf256: 250 },
  df_total_purchase_amount: { texts: amount, ...PURCHASE },
  df_total_refund_amount: { texts: amount, kinds: kindsOf('df_refund') },
  sum: { texts: (_row, hash) => String(hash % 1_000_000), kinds: kindsOf('df_purchase', 'df_refund', 'df_view_cart') },
  df_items_df_category1: { texts: CATEGORIES, ...ITEM },
  df_items_df_category2: { texts: CATEGORIES, ...ITEM, rowsOf256: 160 },
  df_items_df_category3: { texts: CATEGORIES, ...ITEM, rowsOf256: 60 },
  df_items_df_category4: { texts: CATEGORIES, ...ITEM, rowsOf256: 16 },
  df_items_df_category5: { texts: CATEGORIES, ...ITEM, rowsOf256: 4 },
  df_items_df_discount: { texts: ['0', '500', '1000.5', '10'], ...ITEM, rowsOf256: 90 },
  df_items_df_item_id: { texts: number(0, 100_000, 6), ...ITEM },
  df_items_df_item_name: { texts: ITEM_NAMES, ...ITEM },
  df_items_df_price: { texts: amount, ...ITEM },
  df_items_df_quantity: { texts: number(1, 9), ...ITEM },
};

const CUSTOM: Definitions = {
  member_no: { texts: (row) => memberNumber(row.user), rowsOf256: 200 },
  is_member: { texts: bool, rowsOf256: 220 },
  plan: { texts: PLANS, rowsOf256: 90 },
  age: { texts: number(14, 70), kinds: kindsOf('df_sign_up', 'df_login'), rowsOf256: 180 },
  score: { texts: ['0.1', '12.5', '-3', '99.99', '1.0E10', '0'], rowsOf256: 30 },
  big_id: { texts: (_row, hash) => `900719925474${String(hash % 10_000_000).padStart(7, '0')}`, rowsOf256: 25 },
  birthday: { texts: (_row, hash) => birthday(hash), ...SIGN_UP, rowsOf256: 200 },
  first_seen_at: { texts: (row) => new Date(row.occurred).toISOString(), rowsOf256: 20 },
  tags: { texts: orNull(...LISTS), rowsOf256: 50 },
  sizes: { texts: orNull('[1,2,3]', '[240]', '[]', '[9007199254740993]'), rowsOf256: 20 },
  ratings: { texts: orNull('[1.5,2]', '[0.1]', '[]', '[4,4.5,5]'), rowsOf256: 14, daysOf256: 170 },
  memo: { texts: MEMOS, kinds: kindsOf('df_purchase', 'df_refund'), rowsOf256: 160 },
  '가입 경로': { texts: ROUTES, ...SIGN_UP },
  'utm.source': { texts: PLANS, kinds: kindsOf('df_start_session'), rowsOf256: 100 },
  'answer "free"': { texts: MEMOS, ...SURVEY, daysOf256: 150 },
  'q1, q2': { texts: bool, ...SURVEY, daysOf256: 120 },
  Grade: { texts: ['A', 'B', 'C'], rowsOf256: 40, daysOf256: 200 },
  grade: { texts: number(1, 5), rowsOf256: 40, daysOf256: 140 },
  select: { texts: bool, rowsOf256: 12, daysOf256: 90 },
  'event 🎉': { texts: ROUTES, rowsOf256: 16, daysOf256: 60 },
  campaign_id: { texts: (_row, hash) => `00${(hash >>> 8) % 1_000}`, rowsOf256: 30, daysOf256: 40 },
  df_items_color: { texts: ['빨강', 'navy', '#00ff00', '검정/흰색', 'off-white'], ...ITEM, rowsOf256: 120 },
  df_items_옵션: { texts: MEMOS, ...ITEM, rowsOf256: 60, daysOf256: 180 },
  df_items_is_gift: { texts: bool, ...ITEM, rowsOf256: 100 },
  df_items_labels: { texts: orNull(...LISTS), ...ITEM, rowsOf256: 40 },
  level: { texts: level, rowsOf256: 60 },
};

/** All columns of exports, in the order of their names. */
export const COLUMNS: readonly Column[] = [
  ...Object.entries(SYSTEM).map(([name, definition]) => columnOf(name, { ...definition, isSystem: true })),
  ...Object.entries({ ...STANDARD, ...CUSTOM }).map(([name, definition]) => columnOf(name, definition)),
].sort((a, b) => (a.name < b.name ? -1 : 1));
