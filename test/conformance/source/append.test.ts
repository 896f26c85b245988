import { afterEach, describe, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const HOUR = 3_600_000;
const START = '2026-01-08';
let fixture: SourceFixture;
afterEach(() => fixture.close());

const truth = (through: string): string[] =>
  [...fixture.sim.truth({ from: START, to: through })].map((row) => row.get('df_event_detail_log_id') ?? '').sort();

describe('append', () => {
  it.each([
    { sync_mode: 'incremental', destination_sync_mode: 'append' },
    { sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' },
    { sync_mode: 'full_refresh', destination_sync_mode: 'append', generation_id: 2, minimum_generation_id: 2 },
  ])('needs to know whether the end is included, and names the setting: %o', async (modes) => {
    fixture = await SourceFixture.start({ days: { to_date_inclusive: false, single_days: 'error' } });
    const catalog = await fixture.catalog(modes, ['events']);
    const output = await fixture.read(catalog, undefined, { start_date: START });
    expect(output.code).not.toBe(0);
    expect(output.of('RECORD')).toEqual([]);
    expect(output.errors()[0]).toMatchObject({
      failure_type: 'config_error',
      message: expect.stringMatching(/to_date_inclusive/),
    });
    const configured = await fixture.read(catalog, undefined, { start_date: START, to_date_inclusive: 'false' });
    expect(configured.statuses('events').at(-1)).toBe('COMPLETE');
  });

  it.each([true, false])(
    'sends each row once after a refresh, if exports include their end (%s)',
    async (inclusive) => {
      const modes = { destination_sync_mode: 'append', generation_id: 1 };
      fixture = await SourceFixture.start({ days: { to_date_inclusive: inclusive } });
      const refresh = await fixture.catalog({ ...modes, minimum_generation_id: 1 }, ['events']);
      const first = await fixture.read(refresh, undefined, { start_date: START });
      fixture.clock.pass(48 * HOUR);
      const next = await fixture.read(await fixture.catalog(modes, ['events']), first.lastStates(), {
        start_date: START,
      });
      const records = [...first.records('events'), ...next.records('events')];
      const end = String(next.states('events').at(-1)?.from_date);
      const ids = records.map((data) => String(data.df_event_detail_log_id)).sort();
      expect(ids).toEqual(truth(addDays(end, -1)));
    },
  );

  it('follows a refresh that overwrote all but today', async () => {
    fixture = await SourceFixture.start({ days: { today: 204 } });
    const modes = { sync_mode: 'full_refresh', destination_sync_mode: 'overwrite', sync_id: 9 };
    const refresh = await fixture.read(await fixture.catalog(modes, ['events']));
    expect(refresh.logs('day.open')).toHaveLength(1);
    expect(refresh.statuses('events').at(-1)).toBe('COMPLETE');
    const append = await fixture.catalog({ destination_sync_mode: 'append' }, ['events']);
    const output = await fixture.read(append, refresh.lastStates());
    expect([output.code, output.records('events')]).toEqual([0, []]);
  });

  it('of a full refresh sends every day, also today', async () => {
    fixture = await SourceFixture.start();
    const modes = { sync_mode: 'full_refresh', generation_id: 2, minimum_generation_id: 0 };
    const catalog = await fixture.catalog({ ...modes, destination_sync_mode: 'append' }, ['events']);
    const output = await fixture.read(catalog, undefined, { start_date: START });
    const ids = output.records('events').map((data) => String(data.df_event_detail_log_id));
    expect(ids.sort()).toEqual(truth('2026-01-20'));
  });

  it('is refused with other filters than before', async () => {
    fixture = await SourceFixture.start();
    const catalog = await fixture.catalog({ destination_sync_mode: 'append' }, ['events']);
    const first = await fixture.read(catalog);
    const more = { events_condition_type: 'include', events: ['df_purchase'] };
    const output = await fixture.read(catalog, first.lastStates(), more);
    expect(output.of('RECORD')).toEqual([]);
    expect(output.errors()[0]).toMatchObject({ failure_type: 'config_error', message: expect.stringMatching(/twice/) });
  });
});
