/** How many rows an event gives: `many` one to five, `refund` one or, by scenario, up to three. */
type Items = 'none' | 'one' | 'many' | 'refund';

interface EventKind {
  readonly name: string;
  /** Of 1,024 events. */
  readonly weight: number;
  readonly items: Items;
}

export const EVENT_KINDS: readonly EventKind[] = [
  { name: 'df_start_session', weight: 170, items: 'none' },
  { name: 'df_end_session', weight: 150, items: 'none' },
  { name: 'df_sign_up', weight: 30, items: 'none' },
  { name: 'df_purchase', weight: 110, items: 'many' },
  { name: 'df_login', weight: 70, items: 'none' },
  { name: 'df_logout', weight: 40, items: 'none' },
  { name: 'df_view_home', weight: 90, items: 'none' },
  { name: 'df_view_product_details', weight: 120, items: 'one' },
  { name: 'df_add_to_cart', weight: 60, items: 'one' },
  { name: 'df_add_to_wishlist', weight: 20, items: 'one' },
  { name: 'df_refund', weight: 14, items: 'refund' },
  { name: 'df_view_search_result', weight: 60, items: 'none' },
  { name: 'df_share_product', weight: 20, items: 'one' },
  { name: 'df_view_list', weight: 30, items: 'none' },
  { name: 'df_view_cart', weight: 12, items: 'none' },
  { name: 'df_remove_cart', weight: 8, items: 'one' },
  { name: 'df_add_payment_info', weight: 8, items: 'none' },
  { name: '설문 응답', weight: 8, items: 'none' },
  { name: 'survey, "second" page', weight: 4, items: 'none' },
];

/** An event's kind by ten bits of its hash. */
export const KIND_OF: Uint8Array = Uint8Array.from(
  EVENT_KINDS.flatMap((kind, i) => Array<number>(kind.weight).fill(i)),
);

export const UNNAMED = -1;

export function maskOf(...names: string[]): number {
  return EVENT_KINDS.reduce((mask, kind, i) => (names.includes(kind.name) ? mask | (1 << i) : mask), 0);
}

export const ITEM_EVENTS = EVENT_KINDS.reduce((mask, kind, i) => (kind.items === 'none' ? mask : mask | (1 << i)), 0);
