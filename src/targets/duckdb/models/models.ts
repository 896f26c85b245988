// This folder: ready views and one macro over the events, in the schema `analytics` of a DuckDB file. Each is made of
// a SELECT in a file. The dbt project under examples/ has the same models. `write-models.ts` makes them.

import active from './active.sql';
import eventDictionary from './event_dictionary.sql';
import funnel from './funnel.sql';
import purchaseItems from './purchase_items.sql';
import purchases from './purchases.sql';
import retention from './retention.sql';
import sessions from './sessions.sql';
import users from './users.sql';

/** A view, or with `parameters` a table macro, of the schema `analytics`. */
export interface Model {
  readonly name: string;
  /** A sentence that says what one row stands for. */
  readonly grain: string;
  /** Description by column, in their order; those of joined profiles have none. */
  readonly columns: Readonly<Record<string, string>>;
  readonly parameters?: readonly string[];
  /** True if its rows are joined with the profiles of their people. */
  readonly joinsProfiles?: true;
  /** One SELECT. In double braces: its parameters, and the relations `events()`, `items()` and `properties()`. */
  readonly sql: string;
}

const activePeople = (name: string, unit: 'day' | 'week' | 'month', unitDescription: string): Model => ({
  name,
  grain: `One row a ${unit} with an event.`,
  columns: {
    [unit]: unitDescription,
    people: 'People with an event, by unified id.',
    new_people: `Of these, those whose first event of all is of this ${unit}.`,
    events: 'Events, those that name nobody included.',
    sessions: 'Start events (df_start_session).',
  },
  sql: active.replaceAll('{{ unit }}', unit),
});

export const MODELS: readonly Model[] = [
  {
    name: 'sessions',
    grain: 'One row a session; the events of all sessions together are all events.',
    columns: {
      session_id: 'Log id of the first event of the session.',
      df_unified_id: 'Unified ID of the person; null where the events name none.',
      session_number: 'First, second, third… session of the person.',
      day: 'Day of the first event.',
      started_at: 'Time of the first event.',
      ended_at: 'Time of the last event.',
      seconds: 'From the first event to the last; null where a single event does not tell a length.',
      length: 'exact: start and end event are there; at_least: one of them is missing; unknown: one event, no length.',
      began_by: 'start_event, gap, end_event (the event follows the end of another session) or first_event.',
      ended_by: 'end_event, start_event (another session began), gap or last_event.',
      events: 'Events of the session.',
    },
    sql: sessions,
  },
  {
    name: 'users',
    joinsProfiles: true,
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
    sql: users,
  },
  {
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
    sql: purchases,
  },
  {
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
      category1: 'df_items_df_category1.',
      category2: 'df_items_df_category2.',
      category3: 'df_items_df_category3.',
      category4: 'df_items_df_category4.',
      category5: 'df_items_df_category5.',
      price: 'df_items_df_price.',
      quantity: 'df_items_df_quantity.',
      discount: 'df_items_df_discount.',
      amount: 'price × quantity; null where one of them is.',
    },
    sql: purchaseItems,
  },
  activePeople('daily_active', 'day', 'The day.'),
  activePeople('weekly_active', 'week', 'The Monday on which the week begins.'),
  activePeople('monthly_active', 'month', 'The first day of the month.'),
  {
    name: 'retention',
    grain: 'One row a week of first events and a number of weeks after it in which somebody of them had an event.',
    columns: {
      cohort_week: 'The Monday of the week of the first event.',
      weeks_later: '0 for that week itself, 1 for the next…',
      people: 'Of these people, those with an event in that week.',
      cohort_people: 'People whose first event is of the cohort week.',
      share: 'people / cohort_people.',
    },
    sql: retention,
  },
  {
    name: 'event_dictionary',
    grain: 'One row an event name.',
    columns: {
      df_event_name: 'The event name; null where rows have none.',
      events: 'Events of that name.',
      people: 'People with such an event, by unified id.',
      days: 'Days with such an event.',
      first_seen_at: 'Time of the first one.',
      last_seen_at: 'Time of the last one.',
      properties: 'Names of the event columns that hold a value in at least one of them.',
    },
    sql: eventDictionary,
  },
  {
    name: 'funnel',
    grain: 'One row a step, in order.',
    parameters: ['steps', 'days'],
    columns: {
      step: '1, 2, 3…',
      df_event_name: 'Event name of the step.',
      people: 'People who came as far as this step.',
      share_of_first: 'people / people of the first step.',
      share_of_previous: 'people / people of the step before.',
    },
    sql: funnel,
  },
];
