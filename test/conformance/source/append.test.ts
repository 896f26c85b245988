import { afterEach, describe, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import type { Json } from '../../support/airbyte/connector.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const HOUR = 3_600_000;
const START = '2026-01-08';
let fixture: SourceFixture;
afterEach(() => fixture.close());

/** Reads every few hours into a destination that appends; returns the ids of `events` in the order in which they came. */
async function append(scenario: unknown, config: Json, reads: number): Promise<{ ids: string[]; state: Json }> {
  fixture = await SourceFixture.start(scenario);
  const catalog = await fixture.catalog({ destination_sync_mode: 'append' }, ['events']);
  const ids: string[] = [];
  let state: Json[] | undefined;
  let last: Json = {};
  for (let read = 0; read < reads; read++) {
    const output = await fixture.read(catalog, state, { start_date: START, ...config });
    expect(output.code).toBe(0);
    ids.push(...output.records('events').map((data) => String(data.df_event_detail_log_id)));
    state = output.lastStates();
    last = output.states('events').at(-1) ?? last;
    fixture.clock.advance(7 * HOUR);
  }
  return { ids, state: last };
}

const truth = (through: string): string[] =>
  [...fixture.sim.truth({ from: START, to: through })].map((row) => row.get('df_event_detail_log_id') ?? '').sort();

describe('append', () => {
  it.each([6, 24, 72])('sends no row twice when the clock of the service is %i hours behind', async (hours) => {
    const { ids, state } = await append({ answers: { date_skew_s: -hours * 3_600 } }, {}, 8);
    expect(ids.length).toBeGreaterThan(100);
    expect([...ids].sort()).toEqual(truth(addDays(String(state.from_date), -1)));
  });

  const services = [true, false].flatMap((inclusive) =>
    (['as_ranges', 'whole', 'empty', 'error'] as const).flatMap((form) =>
      [1, 7].map((days) => [inclusive, form, days] as const),
    ),
  );

  it.each(services)(
    'sends each row once when ranges include their end (%s) and single days are %s, in windows of %i days',
    async (inclusive, single, days) => {
      const scenario = {
        days: { to_date_inclusive: inclusive, single_days: single },
        rows: { late: { share: 0, hours: 1 } },
      };
      const { ids, state } = await append(scenario, { window_days: days }, 4);
      expect([...ids].sort()).toEqual(truth(addDays(String(state.from_date), -1)));
      expect(String(state.from_date) >= '2026-01-19').toBe(true);
    },
  );
});
