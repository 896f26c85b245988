import { DETAIL_LOG_ID, EVENT_NAME, LOG_ID, UNIFIED_ID } from '../../../schema/groups.ts';
import { dayOf, occurredAt } from './event-time.ts';
import type { Model } from './model.ts';

const PURCHASE = "'df_purchase'";

/** The amounts of a purchase are repeated in the export on each row of its items; here each purchase is there once. */
export const purchases: Model = {
  name: 'purchases',
  grain: 'One row a purchase (df_purchase), however many items it has.',
  columns: {
    df_event_log_id: 'Log id of the purchase.',
    df_order_id: 'Order id, as the customer gave it.',
    df_unified_id: 'Unified ID of the person.',
    day: 'Day of the purchase.',
    purchased_at: 'Time of the purchase.',
    amount: 'df_total_purchase_amount.',
    discount: 'df_discount.',
    delivery_charge: 'df_delivery_charge.',
    payment_method: 'df_payment_method.',
  },
  sql: (source) => `SELECT ${source.log(LOG_ID, 'string')} AS df_event_log_id,
  ${source.log('df_order_id', 'string')} AS df_order_id, ${source.log(UNIFIED_ID, 'string')} AS df_unified_id,
  ${dayOf(source, occurredAt(source))} AS day, ${occurredAt(source)} AS purchased_at,
  ${source.log('df_total_purchase_amount', 'double')} AS amount, ${source.log('df_discount', 'double')} AS discount,
  ${source.log('df_delivery_charge', 'double')} AS delivery_charge,
  ${source.log('df_payment_method', 'string')} AS payment_method
FROM ${source.logs}
WHERE ${source.log(EVENT_NAME, 'string')} = ${PURCHASE}`,
};

const CATEGORIES = [1, 2, 3, 4, 5].map((level) => `category${level}`);

/** The items of the purchases, with what an item costs and how many were bought. */
export const purchaseItems: Model = {
  name: 'purchase_items',
  grain: 'One row an item of a purchase.',
  columns: {
    df_event_log_id: 'Log id of the purchase.',
    df_event_detail_log_id: 'Id of the row in the export.',
    item_position: 'Position number of the item as exported; null where the id has none.',
    df_unified_id: 'Unified ID of the person.',
    day: 'Day of the purchase.',
    purchased_at: 'Time of the purchase.',
    item_id: 'df_items_df_item_id.',
    item_name: 'df_items_df_item_name.',
    ...Object.fromEntries(CATEGORIES.map((name) => [name, `df_items_df_${name}.`])),
    price: 'df_items_df_price.',
    quantity: 'df_items_df_quantity.',
    discount: 'df_items_df_discount.',
    amount: 'price × quantity; null where one of them is.',
  },
  sql(source) {
    const price = source.item('df_items_df_price', 'double');
    const quantity = source.item('df_items_df_quantity', 'long');
    const categories = CATEGORIES.map((name) => `${source.item(`df_items_df_${name}`, 'string')} AS ${name}`);
    const at = occurredAt({ ...source, log: source.item });
    return `SELECT ${source.item(LOG_ID, 'string')} AS df_event_log_id,
  ${source.item(DETAIL_LOG_ID, 'string')} AS df_event_detail_log_id, item_position,
  ${source.item(UNIFIED_ID, 'string')} AS df_unified_id, ${dayOf(source, at)} AS day, ${at} AS purchased_at,
  ${source.item('df_items_df_item_id', 'string')} AS item_id, ${source.item('df_items_df_item_name', 'string')} AS item_name,
  ${categories.join(', ')},
  ${price} AS price, ${quantity} AS quantity, ${source.item('df_items_df_discount', 'double')} AS discount,
  ${price} * ${quantity} AS amount
FROM ${source.items}
WHERE ${source.item(EVENT_NAME, 'string')} = ${PURCHASE}`;
  },
};
