import { createWriteStream, existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { daysBetween } from '../src/base/days.ts';

/** A kind of rows of prepared exports. Columns stand in alphabetical order; a row is CSV text without a line end. */
interface RowKind {
  readonly columns: readonly string[];
  row(day: string, i: number): string;
}

/** Columns of an export of which most cells are empty: 46, 360 bytes a row. */
// biome-ignore format: one glance is enough
const SPARSE_COLUMNS = [
  'campaign', 'coupon_codes', 'df_api_version', 'df_correction_datetime', 'df_delivery_charge', 'df_discount',
  'df_event_datetime', 'df_event_detail_log_id', 'df_event_log_id', 'df_event_name', 'df_items_brand',
  'df_items_df_category1', 'df_items_df_category2', 'df_items_df_category3', 'df_items_df_category4',
  'df_items_df_category5', 'df_items_df_discount', 'df_items_df_item_id', 'df_items_df_item_name', 'df_items_df_price',
  'df_items_df_quantity', 'df_items_tags', 'df_keyword', 'df_order_id', 'df_payment_method', 'df_server_datetime',
  'df_service_id', 'df_sharing_channel', 'df_sign_channel', 'df_source_type', 'df_total_purchase_amount',
  'df_total_refund_amount', 'df_unified_id', 'first_visit', 'grade', 'is_member', 'last_login', 'memo', 'note', 'page',
  'referrer', 'score', 'sum', 'user_agent', 'utm_source', 'visits',
] as const;

const EVENTS = ['df_start_session', 'df_end_session', 'df_sign_up', 'df_purchase', 'df_view_product_details'];
const MEMOS = [
  '"안녕하세요, 고객님. ""특가"" 상품입니다"',
  '"two\nlines, and a comma"',
  '빠른 배송 부탁드립니다',
  '"a ""quoted"" word"',
];
const AGENT = 'Mozilla/5.0 (Linux; Android 14; SM-S911N) AppleWebKit/537.36 (KHTML like Gecko) Chrome/126.0 Mobile';

/** Version of the rows; it changes with them, so that no kept file has other rows. */
export const DATA_VERSION = 2;

/** Distance between the first values of two days. It is larger than the rows of a day where there are several days. */
const SHIFT = 104_729;
const SHIFTED_DAYS = 64;

/**
 * The number from which all values of row `i` of a day follow. Values differ from day to day:
 * in one file of all days, repeated values would be compressed away. An id ends with `i` itself.
 */
const shifted = (day: string, i: number): number => i + SHIFT * (daysBetween('1970-01-01', day) % SHIFTED_DAYS);

const idOf = (day: string, n: number, i: number): string =>
  `${day.replaceAll('-', '')}-${Math.imul(n, 2654435761) >>> 0}-${i}`;

const two = (n: number) => (n < 10 ? `0${n}` : `${n}`);

function sparseRow(day: string, i: number): string {
  const [y, m, d] = day.split('-').map(Number) as [number, number, number];
  const n = shifted(day, i);
  const h = n % 24;
  const minute = (n * 7) % 60;
  const dash = `${day} ${two(h)}:${two(minute)}:${two((n * 13) % 60)}.${String((n * 37) % 1000).padStart(3, '0')}`;
  const at = n % 3 === 0 ? `${y}.${m}.${d} ${h}:${two(minute)}` : dash;
  const event = EVENTS[n % EVENTS.length] as string;
  const buys = event === 'df_purchase';
  const id = idOf(day, n, i);
  const value: Record<string, string | undefined> = {
    campaign: n % 5 === 0 ? `spring-${n % 40}` : undefined,
    coupon_codes: n % 8 === 0 ? '"[""A1"",""B2""]"' : n % 2 === 0 ? 'null' : undefined,
    df_api_version: '2.0',
    df_correction_datetime: at,
    df_delivery_charge: buys ? '2500.0' : undefined,
    df_discount: buys && n % 4 === 0 ? `${(n % 100) / 4}` : undefined,
    df_event_datetime: at,
    df_event_detail_log_id: buys ? `${id}:1` : id,
    df_event_log_id: id,
    df_event_name: event,
    df_items_brand: buys ? 'acme' : undefined,
    df_items_df_category1: buys ? 'clothes' : undefined,
    df_items_df_item_id: buys ? `0${n % 5000}` : undefined,
    df_items_df_item_name: buys ? `"상품 ${n % 900}, large"` : undefined,
    df_items_df_price: buys ? `${(n % 9000) + 0.5}` : undefined,
    df_items_df_quantity: buys ? `${1 + (n % 3)}` : undefined,
    df_items_tags: buys ? 'null' : undefined,
    df_order_id: buys ? `000${n}` : undefined,
    df_payment_method: buys ? 'card' : undefined,
    df_server_datetime: dash,
    df_service_id: 'svc-1',
    df_source_type: n % 2 === 0 ? 'ANDROID' : 'IOS',
    df_total_purchase_amount: buys ? `${(n % 90_000) + 0.25}` : undefined,
    df_unified_id: `u-${(n * 40503) % 1_000_003}`,
    first_visit: n % 11 === 0 ? day : undefined,
    is_member: n % 2 === 0 ? 'TRUE' : n % 3 === 0 ? 'FALSE' : undefined,
    memo: MEMOS[n % 9],
    page: `/products/${n % 7000}/details`,
    referrer: n % 2 === 0 ? `https://www.example.com/search?q=${n % 5000}&sort=popular` : undefined,
    score: n % 3 === 0 ? `${(n % 1000) / 8}` : undefined,
    sum: n % 7 === 0 ? `${n}` : undefined,
    user_agent: n % 5 < 4 ? AGENT : undefined,
    visits: `${n % 200}`,
  };
  return SPARSE_COLUMNS.map((name) => value[name] ?? '').join(',');
}

/** Columns of an export of which most cells are filled: 31, 320 bytes a row. */
// biome-ignore format: one glance is enough
const FILLED_COLUMNS = [
  'amount', 'balance', 'channel', 'city', 'coupon_codes', 'df_api_version', 'df_correction_datetime',
  'df_event_detail_log_id', 'df_event_log_id', 'df_event_name', 'df_server_datetime', 'df_unified_id', 'discount_rate',
  'grade', 'height', 'is_member', 'item_counts', 'joined', 'memo', 'page', 'points', 'product', 'quantity', 'rank',
  'ratios', 'region', 'score', 'session', 'store', 'visits', 'weight',
] as const;

const CITIES = ['서울특별시', 'Busan', '대구', 'Incheon', '광주광역시', 'Daejeon', '울산'];
const PRODUCTS = ['운동화 270', 'linen shirt', '겨울 코트', 'wool socks', '가죽 지갑', 'rain jacket', '면 티셔츠'];
/** Texts of cells; every fifth is quoted, with a comma, quotes or a line end. */
const TEXTS = [
  (i: number) => `빠른 배송 ${i % 900}`,
  (i: number) => `left at the door ${i % 700}`,
  (i: number) => `선물 포장 ${i % 300}`,
  (i: number) => `no note ${i % 5000}`,
  (i: number) => [`"문 앞, ${i % 90}층"`, `"a ""quoted"" word ${i % 70}"`, `"two\nlines ${i % 50}"`][i % 3],
];

function filledRow(day: string, i: number): string {
  const n = shifted(day, i);
  const at = `${day} ${two(n % 24)}:${two((n * 7) % 60)}:${two((n * 13) % 60)}.${String((n * 37) % 1000).padStart(3, '0')}`;
  const id = idOf(day, n, i);
  const value: Readonly<Record<(typeof FILLED_COLUMNS)[number], string | undefined>> = {
    amount: `${(n * 7919) % 90_000}.${10 + (n % 90)}`,
    balance: `${((n * 104_729) % 2_000_000) - 1_000_000}`,
    channel: ['app', 'web', 'store'][n % 3],
    city: CITIES[n % CITIES.length],
    coupon_codes: n % 4 === 0 ? undefined : `"[""A${n % 50}"",""B${n % 7}""]"`,
    df_api_version: '2.0',
    df_correction_datetime: at,
    df_event_detail_log_id: id,
    df_event_log_id: id,
    df_event_name: EVENTS[n % EVENTS.length],
    df_server_datetime: at,
    df_unified_id: `u-${(n * 40503) % 1_000_003}`,
    discount_rate: n % 6 === 0 ? undefined : `0.${1 + (n % 9)}`,
    grade: ['gold', 'silver', 'bronze', 'new'][n % 4],
    height: `${150 + (n % 50)}`,
    is_member: n % 3 === 0 ? 'FALSE' : 'TRUE',
    item_counts: `"[${n % 9},${n % 5},${n % 3}]"`,
    joined: day,
    memo: TEXTS[n % TEXTS.length]?.(n),
    page: `/products/${n % 7000}`,
    points: `${n % 100_000}`,
    product: PRODUCTS[(n * 31) % PRODUCTS.length],
    quantity: `${1 + (n % 3)}`,
    rank: n % 10 === 0 ? undefined : `${n % 1000}`,
    ratios: n % 5 === 0 ? undefined : `"[0.${1 + (n % 9)},1.${1 + (n % 7)}]"`,
    region: `지역 ${n % 17}`,
    score: `${(n % 1000) / 8}`,
    session: `s${(n * 48271) % 2147483647}`,
    store: n % 7 === 0 ? undefined : `매장 ${n % 300}`,
    visits: `${n % 200}`,
    weight: `${40 + (n % 60)}.5`,
  };
  return FILLED_COLUMNS.map((name) => value[name] ?? '').join(',');
}

/**
 * The kinds of rows by name. Other shares of filled cells cause other costs: `sparse` has long texts, `filled` has many
 * values.
 */
export const ROW_KINDS = {
  sparse: { columns: SPARSE_COLUMNS, row: sparseRow },
  filled: { columns: FILLED_COLUMNS, row: filledRow },
} as const satisfies Record<string, RowKind>;

/** Number of columns of which one has a value. */
const SPARSE = 50;

const sparseHeader = (columns: number): string =>
  Array.from({ length: columns }, (_, c) => `,x_${String(c).padStart(4, '0')}`).join('');

/** The further cells of row `i`, each after its comma: numbers, words and truth values. */
function sparseCells(i: number, columns: number): string {
  let text = '';
  for (let c = 0; c < columns; c++) text += (i + c) % SPARSE === 0 ? `,${SPARSE_VALUES[c % 4]?.(i)}` : ',';
  return text;
}
const SPARSE_VALUES = [
  (i: number) => `${i}`,
  (i: number) => `value ${i % 700}`,
  (i: number) => `${i / 8}`,
  (i: number) => (i % 3 === 0 ? 'TRUE' : 'FALSE'),
];

/** Writes `rows` rows of one day, once; returns the file's path. */
export async function preparedDay(
  dir: string,
  day: string,
  rows: number,
  kind: keyof typeof ROW_KINDS = 'sparse',
  sparseColumns = 0,
): Promise<string> {
  const { columns, row }: RowKind = ROW_KINDS[kind];
  const path = join(dir, `${day}.csv`);
  if (existsSync(path)) return path;
  mkdirSync(dir, { recursive: true });
  const out = createWriteStream(`${path}.part`, { highWaterMark: 1 << 20 });
  out.write(`${columns.join(',')}${sparseHeader(sparseColumns)}\n`);
  for (let i = 0; i < rows; ) {
    let block = '';
    for (const end = Math.min(rows, i + 2_000); i < end; i++)
      block += `${row(day, i)}${sparseCells(i, sparseColumns)}\n`;
    if (!out.write(block)) await new Promise<void>((resolve) => out.once('drain', () => resolve()));
  }
  out.end();
  await finished(out);
  renameSync(`${path}.part`, path);
  return path;
}

export const sizeOf = (path: string): number => statSync(path).size;
