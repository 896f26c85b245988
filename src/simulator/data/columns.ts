import {
  EVENT_KINDS,
  type EventRow,
  fullStamp,
  hashText,
  hex8,
  ITEM_EVENTS,
  kindsOf,
  mix,
  shortStamp,
} from './event.ts';

/** Generates the text of a cell for a row, by `h`; an empty text is an absent value. */
type CellText = (row: EventRow, h: number, dataset: { readonly seed: number; readonly serviceId: string }) => string;

/** One column of the export: the rows in which it may have a value, and the text of that value. */
export interface Column {
  readonly name: string;
  /** Hash of the name, so that the cells of one row are drawn from different hashes. */
  readonly salt: number;
  readonly textOf: CellText;
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

/** A name; the texts, as a list to draw from or a function; the properties that differ from the usual. */
type Definition = readonly [string, readonly string[] | CellText, Partial<Column>?];

const USUAL = { isSystem: false, grain: 'event', kinds: -1, rowsOf256: 256, daysOf256: 256 } as const;

function columnOf([name, values, part]: Definition): Column {
  const textOf: CellText = typeof values === 'function' ? values : (_row, h) => pick(values, h);
  return { name, salt: hashText(name), textOf, ...USUAL, ...part };
}

const pick = (values: readonly string[], h: number): string => values[(h >>> 8) % values.length];

/** Generates one of `count` numbers from `least` on, with leading zeros up to a width. */
const number =
  (least: number, count: number, width = 1): CellText =>
  (_row, h) =>
    String(least + ((h >>> 8) % count)).padStart(width, '0');

const bool: CellText = (_row, h) => (h & 0x100 ? 'TRUE' : 'FALSE');

/** Generates lists as JSON text; an absent list is, as often as not, the text `null`. */
const orNull =
  (...values: readonly string[]): CellText =>
  (_row, h) =>
    h & 0x300 ? pick(values, h) : 'null';

/** Generates the datetime of a row in one of the two forms. */
const stamp =
  (time: 'server' | 'correction' | 'occurred'): CellText =>
  (row, h) =>
    ((h & 0x700) === 0 ? shortStamp : fullStamp)(row[time]);

/** Generates an amount in the forms of the provider's doubles: whole, with a fraction, or large with an exponent. */
const amount: CellText = (_row, h) => {
  const whole = 100 + ((h >>> 8) % 90_000);
  if ((h & 0xf0) === 0) return `${1 + (h >>> 29)}.${1 + ((h >>> 9) % 9)}E7`;
  return (h & 0x30) === 0x10 ? `${whole}.5` : `${whole}00`;
};

const twoDigits = (n: number) => String(n).padStart(2, '0');
const birthday = (h: number): string =>
  `${1940 + ((h >>> 8) % 75)}-${twoDigits(1 + ((h >>> 15) % 12))}-${twoDigits(1 + ((h >>> 20) % 28))}`;

/** Generates whole numbers on one day, numbers with a fraction on the next, text on the third. */
const level: CellText = (row, h) => {
  const turn = ((row.day.number % 3) + 3) % 3;
  return turn === 0 ? String(h % 10) : turn === 1 ? `${h % 10}.25` : pick(['silver', 'gold', '7', '다이아'], h);
};

const unifiedId = (user: number, seed: number): string => `u${hex8(mix(seed, user))}`;

/** The number by which the customer knows a user: the external id, with leading zeros. */
export const memberNumber = (user: number): string => String(user).padStart(8, '0');

const logId = ({ day, hash }: EventRow): string => `${day.compact}-${hex8(hash)}`;

/** A purchase has one row an item, and the id of each row has the position of its item. */
const detailId: CellText = (row) => (row.items > 1 ? `${logId(row)}:${row.item}` : logId(row));

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

const SYSTEM: readonly Definition[] = [
  ['df_unified_id', ({ user }, _h, { seed }) => unifiedId(user, seed)],
  ['df_api_version', (_row, h) => (h % 7 === 0 ? 'v2' : 'v1')],
  ['df_server_datetime', stamp('server')],
  ['df_correction_datetime', stamp('correction')],
  ['df_event_detail_log_id', detailId],
  ['df_event_log_id', logId],
  ['event_name', ({ kind }) => EVENT_KINDS[kind].name],
];

const STANDARD: readonly Definition[] = [
  ['df_delivery_charge', ['0', '2500', '3000', '2999.5'], { ...PURCHASE, rowsOf256: 180 }],
  ['df_discount', amount, { ...PAYMENT, rowsOf256: 120 }],
  ['df_event_datetime', stamp('occurred')],
  ['df_keyword', KEYWORDS, { kinds: kindsOf('df_view_search_result') }],
  ['df_order_id', (row) => `${row.day.compact}${String(row.index).padStart(7, '0')}`, PAYMENT],
  ['df_payment_method', ['card', 'bank_transfer', '네이버페이', 'kakao_pay', 'point'], { ...PAYMENT, rowsOf256: 240 }],
  ['df_service_id', (_row, _h, { serviceId }) => serviceId],
  ['df_sharing_channel', CHANNELS, { kinds: kindsOf('df_share_product') }],
  ['df_sign_channel', CHANNELS, { kinds: kindsOf('df_sign_up', 'df_login') }],
  ['df_source_type', ['ANDROID', 'IOS', 'WEB', 'SERVER'], { rowsOf256: 250 }],
  ['df_total_purchase_amount', amount, PURCHASE],
  ['df_total_refund_amount', amount, { kinds: kindsOf('df_refund') }],
  ['sum', (_row, h) => String(h % 1_000_000), { kinds: kindsOf('df_purchase', 'df_refund', 'df_view_cart') }],
  ['df_items_df_category1', CATEGORIES, ITEM],
  ['df_items_df_category2', CATEGORIES, { ...ITEM, rowsOf256: 160 }],
  ['df_items_df_category3', CATEGORIES, { ...ITEM, rowsOf256: 60 }],
  ['df_items_df_category4', CATEGORIES, { ...ITEM, rowsOf256: 16 }],
  ['df_items_df_category5', CATEGORIES, { ...ITEM, rowsOf256: 4 }],
  ['df_items_df_discount', ['0', '500', '1000.5', '10'], { ...ITEM, rowsOf256: 90 }],
  ['df_items_df_item_id', number(0, 100_000, 6), ITEM],
  ['df_items_df_item_name', ITEM_NAMES, ITEM],
  ['df_items_df_price', amount, ITEM],
  ['df_items_df_quantity', number(1, 9), ITEM],
];

const CUSTOM: readonly Definition[] = [
  ['member_no', (row) => memberNumber(row.user), { rowsOf256: 200 }],
  ['is_member', bool, { rowsOf256: 220 }],
  ['plan', PLANS, { rowsOf256: 90 }],
  ['age', number(14, 70), { kinds: kindsOf('df_sign_up', 'df_login'), rowsOf256: 180 }],
  ['score', ['0.1', '12.5', '-3', '99.99', '1.0E10', '0'], { rowsOf256: 30 }],
  ['big_id', (_row, h) => `900719925474${String(h % 10_000_000).padStart(7, '0')}`, { rowsOf256: 25 }],
  ['birthday', (_row, h) => birthday(h), { ...SIGN_UP, rowsOf256: 200 }],
  ['first_seen_at', (row) => new Date(row.occurred).toISOString(), { rowsOf256: 20 }],
  ['tags', orNull(...LISTS), { rowsOf256: 50 }],
  ['sizes', orNull('[1,2,3]', '[240]', '[]', '[9007199254740993]'), { rowsOf256: 20 }],
  ['ratings', orNull('[1.5,2]', '[0.1]', '[]', '[4,4.5,5]'), { rowsOf256: 14, daysOf256: 170 }],
  ['memo', MEMOS, { kinds: kindsOf('df_purchase', 'df_refund'), rowsOf256: 160 }],
  ['가입 경로', ROUTES, SIGN_UP],
  ['utm.source', PLANS, { kinds: kindsOf('df_start_session'), rowsOf256: 100 }],
  ['answer "free"', MEMOS, { ...SURVEY, daysOf256: 150 }],
  ['q1, q2', bool, { ...SURVEY, daysOf256: 120 }],
  ['Grade', ['A', 'B', 'C'], { rowsOf256: 40, daysOf256: 200 }],
  ['grade', number(1, 5), { rowsOf256: 40, daysOf256: 140 }],
  ['select', bool, { rowsOf256: 12, daysOf256: 90 }],
  ['event 🎉', ROUTES, { rowsOf256: 16, daysOf256: 60 }],
  ['campaign_id', (_row, h) => `00${(h >>> 8) % 1_000}`, { rowsOf256: 30, daysOf256: 40 }],
  ['df_items_color', ['빨강', 'navy', '#00ff00', '검정/흰색', 'off-white'], { ...ITEM, rowsOf256: 120 }],
  ['df_items_옵션', MEMOS, { ...ITEM, rowsOf256: 60, daysOf256: 180 }],
  ['df_items_is_gift', bool, { ...ITEM, rowsOf256: 100 }],
  ['df_items_labels', orNull(...LISTS), { ...ITEM, rowsOf256: 40 }],
  ['level', level, { rowsOf256: 60 }],
];

/** All columns of exports, in the order of their names. */
export const COLUMNS: readonly Column[] = [
  ...SYSTEM.map(([name, text]): Definition => [name, text, { isSystem: true }]),
  ...STANDARD,
  ...CUSTOM,
]
  .map(columnOf)
  .sort((a, b) => (a.name < b.name ? -1 : 1));

/** The attributes of a profile, and how many of 256 profiles have each. */
const ATTRIBUTES: readonly (readonly [name: string, fill: number, textOf: (h: number) => string])[] = [
  ['df_birth', 150, birthday],
  ['df_gender', 200, (h) => pick(['F', 'M'], h)],
  ['df_membership', 120, (h) => pick(['basic', 'gold', 'VIP'], h)],
  ['df_name', 230, (h) => pick(['김민수', '이서연', '박지훈', 'Anna Lee', 'O\'Neill, "Jo"'], h)],
  ['favourite_colour', 60, (h) => pick(['빨강', 'navy', '#00ff00'], h)],
];

/** The columns that a filter of properties selects from. */
export const PROFILE_PROPERTIES: readonly string[] = ATTRIBUTES.map(([name]) => name);

/** The profile of a user, by column; an absent value is an empty text. */
export function profileOf(user: number, seed: number): Readonly<Record<string, string>> {
  const attributes = ATTRIBUTES.map(([name, fill, textOf]) => {
    const h = mix(mix(seed, user), hashText(name));
    return [name, (h & 0xff) < fill ? textOf(h) : ''];
  });
  return {
    df_unified_id: unifiedId(user, seed),
    df_external_id: memberNumber(user),
    ...Object.fromEntries(attributes),
  };
}
