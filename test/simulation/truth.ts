import { createHmac } from 'node:crypto';
import { addDays, type Day } from '../../src/base/days.ts';
import type { TrueRow } from '../../src/simulator/data/csv.ts';
import type { Simulator } from '../../src/simulator/index.ts';
import { KEYS } from './common.ts';
import { PROPERTIES, SYSTEM } from './properties.ts';
import { wantedEvents } from './settings.ts';
import type { Simulation } from './simulation.ts';

/*
 * What the service has, as a target should hold it: the rows and cells that were asked for, hashed where that is configured.
 */

const ID = 'df_event_detail_log_id';

export type Rows = Map<string, TrueRow[]>;
type Days = Day | { readonly from: Day; readonly to: Day };

/** The rows of some days by their ids, as that service has them at an instant; now by default. */
export function rowsOf(simulation: Simulation, service: Simulator, days: Days, at?: number): Rows {
  const out: Rows = new Map();
  const { names, condition } = wantedEvents(simulation);
  const events = { names: new Set(names), condition };
  for (const row of service.truth(days, { events, ...(at !== undefined && { at }) })) {
    const id = row.get(ID) ?? '';
    out.set(id, [...(out.get(id) ?? []), asked(row, simulation)]);
  }
  return out;
}

/** The cells of a row that were asked for, under the names that a target gives them. */
function asked(row: TrueRow, { testCase }: Simulation): TrueRow {
  const { dropped, hashed } = testCase.hidden;
  const out = new Map<string, string>();
  for (const [name, text] of row) {
    if (dropped.includes(name)) continue;
    if (name === 'event_name') out.set('df_event_name', text);
    else if (hashed.includes(name)) out.set(name, hashOf(text));
    else if (SYSTEM.includes(name) || PROPERTIES.includes(name)) out.set(name, text);
  }
  return out;
}

export const hashOf = (text: string): string => createHmac('sha256', KEYS.hash).update(text).digest('hex');

/** When a day is over in every zone. */
export const overAt = (day: Day): number => Date.parse(`${addDays(day, 1)}T12:00:00Z`);
