import type { JsonObject } from '../airbyte/json.ts';
import { textOf } from '../airbyte/json.ts';
import { addDays } from '../base/days.ts';
import type { SourceConfig } from '../config/source.ts';
import { missesLateRows } from '../extract/plan/calendar.ts';
import type { KnownState } from '../extract/state.ts';

/**
 * Key of the states within an incremental read: when the read began (ISO, UTC). Who goes on from such a state goes on
 * with that read, which has seen the days before the cursor already; the last state of a whole read has it no more, so
 * that the next one looks back.
 */
export const READING_SINCE = 'reading_since';

/**
 * When the read began that a saved state is in the middle of; undefined where there is none, or where it lies so far
 * back that the days before the cursor may have got rows since that nobody would look for again.
 */
export function readingSince(
  saved: JsonObject,
  state: KnownState,
  config: SourceConfig,
  now: number,
): string | undefined {
  const text = textOf(saved[READING_SINCE]);
  const since = text === undefined ? Number.NaN : Date.parse(text);
  if (text === undefined || !(since <= now)) return undefined;
  const { lookbackDays } = config;
  const [first, through] = [addDays(state.from_date, -lookbackDays), addDays(state.from_date, -1)];
  return missesLateRows(first, through, since, now, lookbackDays) ? undefined : text;
}

/** A state as it is within a read, or at its end. */
export function withReading(state: KnownState, since: string | undefined): KnownState {
  const { [READING_SINCE]: _gone, ...rest } = state;
  return since === undefined ? rest : { ...rest, [READING_SINCE]: since };
}

/** When the read began that a state is in the middle of. */
export const sinceOf = (state: KnownState): string | undefined => textOf(state[READING_SINCE]);
