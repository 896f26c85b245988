import { CORRECTION_DATETIME, EVENT_NAME, LOG_ID, SERVER_DATETIME, UNIFIED_ID } from '../../../schema/groups.ts';
import type { ModelSource } from './model.ts';

/** When an event occurred; when it arrived at the server where the export does not say. */
export function occurredAt(source: ModelSource): string {
  return `coalesce(${source.log(CORRECTION_DATETIME, 'datetime')}, ${source.log(SERVER_DATETIME, 'datetime')})`;
}

/** Day on which an event occurred, in the zone of the file. */
export function dayOf(source: ModelSource, instant: string): string {
  return `CAST(${source.wallClock(instant)} AS DATE)`;
}

/** The events with the four values that most models start from: person, log_id, name and event_at. */
export function eventTimes(source: ModelSource): string {
  return `SELECT ${source.log(UNIFIED_ID, 'string')} AS person, ${source.log(LOG_ID, 'string')} AS log_id,
    ${source.log(EVENT_NAME, 'string')} AS name, ${occurredAt(source)} AS event_at
  FROM ${source.logs}`;
}
