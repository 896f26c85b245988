import { createWriteStream, existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';

/** Columns of the prepared exports: 46, in the alphabetical order of the service. */
// biome-ignore format: one glance is enough
const COLUMNS = [
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

const two = (n: number) => (n < 10 ? `0${n}` : `${n}`);

/** One row of a day, as CSV text without its line end. */
function row(day: string, i: number): string {
  const [y, m, d] = day.split('-').map(Number) as [number, number, number];
  const h = i % 24;
  const minute = (i * 7) % 60;
  const dash = `${day} ${two(h)}:${two(minute)}:${two((i * 13) % 60)}.${String((i * 37) % 1000).padStart(3, '0')}`;
  const at = i % 3 === 0 ? `${y}.${m}.${d} ${h}:${two(minute)}` : dash;
  const event = EVENTS[i % EVENTS.length] as string;
  const buys = event === 'df_purchase';
  const id = `${day.replaceAll('-', '')}-${(i * 2654435761) % 4294967296}-${i}`;
  const value: Record<string, string | undefined> = {
    campaign: i % 5 === 0 ? `spring-${i % 40}` : undefined,
    coupon_codes: i % 8 === 0 ? '"[""A1"",""B2""]"' : i % 2 === 0 ? 'null' : undefined,
    df_api_version: '2.0',
    df_correction_datetime: at,
    df_delivery_charge: buys ? '2500.0' : undefined,
    df_discount: buys && i % 4 === 0 ? `${(i % 100) / 4}` : undefined,
    df_event_datetime: at,
    df_event_detail_log_id: buys ? `${id}:1` : id,
    df_event_log_id: id,
    df_event_name: event,
    df_items_brand: buys ? 'acme' : undefined,
    df_items_df_category1: buys ? 'clothes' : undefined,
    df_items_df_item_id: buys ? `0${i % 5000}` : undefined,
    df_items_df_item_name: buys ? `"상품 ${i % 900}, large"` : undefined,
    df_items_df_price: buys ? `${(i % 9000) + 0.5}` : undefined,
    df_items_df_quantity: buys ? `${1 + (i % 3)}` : undefined,
    df_items_tags: buys ? 'null' : undefined,
    df_order_id: buys ? `000${i}` : undefined,
    df_payment_method: buys ? 'card' : undefined,
    df_server_datetime: dash,
    df_service_id: 'svc-1',
    df_source_type: i % 2 === 0 ? 'ANDROID' : 'IOS',
    df_total_purchase_amount: buys ? `${(i % 90_000) + 0.25}` : undefined,
    df_unified_id: `u-${(i * 40503) % 1_000_003}`,
    first_visit: i % 11 === 0 ? day : undefined,
    is_member: i % 2 === 0 ? 'TRUE' : i % 3 === 0 ? 'FALSE' : undefined,
    memo: MEMOS[i % 9],
    page: `/products/${i % 7000}/details`,
    referrer: i % 2 === 0 ? `https://www.example.com/search?q=${i % 5000}&sort=popular` : undefined,
    score: i % 3 === 0 ? `${(i % 1000) / 8}` : undefined,
    sum: i % 7 === 0 ? `${i}` : undefined,
    user_agent: i % 5 < 4 ? AGENT : undefined,
    visits: `${i % 200}`,
  };
  return COLUMNS.map((name) => value[name] ?? '').join(',');
}

/** One of so many columns has a value. */
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
export async function preparedDay(dir: string, day: string, rows: number, sparseColumns = 0): Promise<string> {
  const path = join(dir, `${day}.csv`);
  if (existsSync(path)) return path;
  mkdirSync(dir, { recursive: true });
  const out = createWriteStream(`${path}.part`, { highWaterMark: 1 << 20 });
  out.write(`${COLUMNS.join(',')}${sparseHeader(sparseColumns)}\n`);
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
