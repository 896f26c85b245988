import { EVENT_NAME, UNIFIED_ID } from '../../../schema/groups.ts';
import { dayOf, occurredAt } from './event-time.ts';
import type { Model } from './model.ts';

/** People by their unified id; events that name nobody are in no row. */
export const users: Model = {
  name: 'users',
  grain: 'One row a person who has a unified id.',
  columns: {
    df_unified_id: 'Unified ID of the person.',
    first_seen_at: 'Time of the first event.',
    last_seen_at: 'Time of the last event.',
    first_event: 'Name of the first event.',
    signed_up_at: 'Time of the first df_sign_up; null where there is none among the events.',
    active_days: 'Days with an event.',
    events: 'Events in all.',
    purchases: 'Purchases (df_purchase).',
    purchase_amount: 'Sum of df_total_purchase_amount over the purchases; null where none has an amount.',
  },
  sql(source) {
    const name = source.log(EVENT_NAME, 'string');
    const at = occurredAt(source);
    const isPurchase = `${name} = 'df_purchase'`;
    return `SELECT ${source.log(UNIFIED_ID, 'string')} AS df_unified_id,
  min(${at}) AS first_seen_at, max(${at}) AS last_seen_at, arg_min(${name}, ${at}) AS first_event,
  min(${at}) FILTER (WHERE ${name} = 'df_sign_up') AS signed_up_at,
  count(DISTINCT ${dayOf(source, at)}) AS active_days, count(*) AS events,
  count(*) FILTER (WHERE ${isPurchase}) AS purchases,
  sum(${source.log('df_total_purchase_amount', 'double')}) FILTER (WHERE ${isPurchase}) AS purchase_amount
FROM ${source.logs}
WHERE ${source.log(UNIFIED_ID, 'string')} IS NOT NULL
GROUP BY 1`;
  },
};
