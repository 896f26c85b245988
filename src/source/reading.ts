import type { JsonObject } from '../airbyte/json.ts';
import { textOf } from '../airbyte/json.ts';
import { addDays } from '../base/days.ts';
import type { SourceConfig } from '../config/source.ts';
import { missesLateRows } from '../extract/plan/calendar.ts';
import type { KnownState } from '../extract/state.ts';

/**
 * Key of the states that are written during an incremental read: when the read began (ISO, UTC). A run that starts from such
 * a state resumes that read and skips the lookback, whose days are already read. The last state of a complete read does not
 * have the key, so that the next read includes the lookback.
 */
export const READING_SINCE = 'reading_since';

/**
 * When the interrupted read of a saved state began; undefined without one, or if it began so long ago that late rows of the
 * lookback days would be missed.
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

/** The state with the start of the read, or without it at the end of the read. */
export function withReading(state: KnownState, since: string | undefined): KnownState {
  const { [READING_SINCE]: _gone, ...rest } = state;
  return since === undefined ? rest : { ...rest, [READING_SINCE]: since };
}

/** When the interrupted read of a state began. */
export const sinceOf = (state: KnownState): string | undefined => textOf(state[READING_SINCE]);
