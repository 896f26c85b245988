import { EVENT_NAME, UNIFIED_ID } from '../../../schema/groups.ts';
import { dayOf, occurredAt } from './event-time.ts';
import type { Model } from './model.ts';

/** What events there are, how often, and with which properties. */
export const eventDictionary: Model = {
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
  sql(source) {
    const at = occurredAt(source);
    return `SELECT ${source.log(EVENT_NAME, 'string')} AS df_event_name, count(*) AS events,
  count(DISTINCT ${source.log(UNIFIED_ID, 'string')}) AS people, count(DISTINCT ${dayOf(source, at)}) AS days,
  min(${at}) AS first_seen_at, max(${at}) AS last_seen_at, ${source.filledProperties()} AS properties
FROM ${source.logs}
GROUP BY 1`;
  },
};
