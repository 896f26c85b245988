import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, type Output, savedStates } from '../../support/airbyte/connector.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const LATE = savedStates({ version: 1, from_date: '2026-01-19' }, 'events');

describe('a saved state', () => {
  let fixture: SourceFixture;
  let events: Json;
  let whole: Output;
  let last: Json;
  beforeAll(async () => {
    fixture = await SourceFixture.start();
    events = await fixture.catalog({}, ['events']);
    whole = await fixture.read(events);
    last = whole.states('events').at(-1) as Json;
  });
  afterAll(() => fixture.close());

  it.each([
    ['absent', undefined],
    ['an empty list', []],
    ['an empty object', {}],
    ['an empty file', ''],
    ['a state without content', savedStates({}, 'events')],
    ['a stream without a state', [{ stream: { stream_descriptor: { name: 'events' }, stream_state: null } }]],
    ['a marker of another kit', savedStates({ __ab_full_refresh_state_message: true }, 'events')],
    ['that of a sync that read no day', savedStates({ version: 1, from_date: '2026-01-19', days: {} }, 'events')],
    ['a state of another stream', savedStates({ version: 1, from_date: '2026-01-18' }, 'event_logs')],
  ])('starts from the first day when it is %s', async (_, value) => {
    const output = await fixture.read(events, value);
    expect(output.records('events')).toEqual(whole.records('events'));
  });

  it.each([
    ['a list of one', LATE],
    ['the bare message', LATE[0]],
    ['the message in its envelope', { type: 'STATE', state: LATE[0] }],
    [
      'nulls and unknown keys',
      [
        {
          type: 'STREAM',
          data: null,
          global: null,
          id: 4,
          stream: {
            stream_descriptor: { name: 'events', namespace: null },
            stream_state: { version: 1, from_date: '2026-01-19' },
          },
        },
      ],
    ],
  ])('is accepted in the form of %s', async (_, value) => {
    await fixture.read(events, value);
    expect(fixture.requested()[0]).toMatch(/^2026-01-18/);
  });

  it('keeps unknown keys', async () => {
    const output = await fixture.read(events, savedStates({ ...last, new_key: { a: [1] } }, 'events'));
    expect(output.states('events').at(-1)).toMatchObject({ new_key: { a: [1] }, from_date: '2026-01-19' });
  });

  it('never moves back, also after the clock was set back', async () => {
    const output = await fixture.read(events, savedStates({ version: 1, from_date: '2026-01-20' }, 'events'));
    expect(output.statuses('events').at(-1)).toBe('COMPLETE');
    expect(new Set(output.states('events').map((one) => one.from_date))).toEqual(new Set(['2026-01-20']));
  });

  it('is dropped with a warning when the filters differ', async () => {
    const output = await fixture.read(events, savedStates(last, 'events'), {
      events_condition_type: 'include',
      events: ['df_purchase'],
    });
    expect(output.states('events')[0].from_date).toBe('2026-01-15');
    expect(new Set(output.records('events').map((data) => data.df_event_name))).toEqual(new Set(['df_purchase']));
    expect(output.logs('state.fresh_start')).toHaveLength(1);
  });

  it.each([
    ['another service', () => ({ ...last, service: 'a'.repeat(64) })],
    ['another service and filters', () => ({ ...last, service: 'a'.repeat(64), filters: 'a'.repeat(64) })],
    ['a cursor in the future', () => ({ ...last, from_date: '2099-01-01' })],
    ['no form we know', () => ({ cursor: 'yesterday' })],
  ])('is refused without an export for %s', async (_, value) => {
    const output = await fixture.read(events, savedStates(value(), 'events'));
    expect(output.errors()[0]).toMatchObject({ failure_type: 'config_error', stream_descriptor: { name: 'events' } });
    expect(output.errors()[0].message).toMatch(/Clear the stream's data/);
    expect(output.errors()[0].message).not.toMatch(/--full-refresh|another target/);
    expect(fixture.requested()).toEqual([]);
  });

  it.each([
    ['overwrites', { destination_sync_mode: 'overwrite', sync_id: 9 }],
    // As a destination that supports refreshes gets it.
    ['truncates', { destination_sync_mode: 'append', sync_id: 9, generation_id: 2, minimum_generation_id: 2 }],
    ['has no job, as on older platforms', { destination_sync_mode: 'overwrite', sync_id: undefined }],
  ])('of a full refresh that %s is one to go on from only once it is complete', async (_, modes) => {
    fixture.clock.pass(3_600_000);
    const known = { to_date_inclusive: 'true' };
    const refresh = await fixture.catalog({ sync_mode: 'full_refresh', ...modes }, ['events']);
    const states = (await fixture.read(refresh, undefined, known)).states('events');
    const appending = await fixture.catalog({ destination_sync_mode: 'append' }, ['events']);
    for (const catalog of [events, appending]) {
      const next = await fixture.read(catalog, savedStates(states.at(-1) ?? {}, 'events'), known);
      expect([next.code, next.logs('state.fresh_start')]).toEqual([0, []]);
      expect(next.states('events').at(-1)).not.toHaveProperty('sync_id');
    }
    const stopped = savedStates(states[2], 'events');
    const merged = await fixture.read(events, stopped, known);
    expect(merged.states('events')[0].from_date).toBe('2026-01-15');
    expect(merged.logs('state.fresh_start')).toEqual([expect.stringMatching(/a full refresh that was not completed/)]);
    const refused = await fixture.read(appending, stopped, known);
    expect(refused.errors()[0].message).toMatch(/was not completed.*clear the stream's data/);
    expect(fixture.requested()).toEqual([]);
  });

  it('resumes a full refresh only within its job, without a lookback', async () => {
    // The limit of exports, which the tests before have spent, is reset: discovery does not wait so long for it.
    fixture.clock.pass(3_600_000);
    const refresh = async (syncId: number, state?: unknown, more: Json = {}, mode = 'overwrite') => {
      const catalog = await fixture.catalog(
        { sync_mode: 'full_refresh', destination_sync_mode: mode, sync_id: syncId },
        ['events'],
      );
      expect(fixture.requested()).toHaveLength(2);
      const output = await fixture.read(catalog, state, more);
      return { output, asked: fixture.requested() };
    };
    const first = await refresh(41);
    expect(first.output.states('events')[0]).toMatchObject({ from_date: '2026-01-15', sync_id: 41 });
    expect(first.output.records('events')).toEqual((await fixture.read(events)).records('events'));
    const middle = first.output.states('events')[2];
    expect(middle).toMatchObject({ from_date: '2026-01-17', sync_id: 41 });
    const again = await refresh(41, savedStates(middle, 'events'));
    expect([...again.asked].sort()).toEqual(['2026-01-17', '2026-01-18', '2026-01-19', '2026-01-20']);
    // A day that is not over proves nothing of the end of an export: the earlier attempt has.
    const beforeOpen = first.output.states('events').find((state) => '2026-01-19' in (state.days as Json));
    const lastDay = await refresh(41, savedStates(beforeOpen ?? {}, 'events'));
    expect(lastDay.asked).toEqual(['2026-01-20']);
    expect(lastDay.output.statuses('events').at(-1)).toBe('COMPLETE');
    // What was read while it was not over is not read twice either: the destination keeps both.
    const open = await refresh(41, savedStates(first.output.states('events').at(-1) ?? {}, 'events'));
    expect(open.asked).toEqual([]);
    expect(open.output.records('events')).toEqual([]);
    const purchases = { events_condition_type: 'include', events: ['df_purchase'] };
    // With other filters the days that were sent would come again.
    const doubled = await refresh(41, savedStates(middle, 'events'), purchases);
    expect(doubled.asked).toEqual([]);
    expect(doubled.output.errors()[0]).toMatchObject({
      failure_type: 'config_error',
      message: expect.stringContaining('the destination keeps every record'),
    });
    const merged = await refresh(41, savedStates(middle, 'events'), purchases, 'overwrite_dedup');
    expect([...merged.asked].sort()[0]).toMatch(/^2026-01-15/);
    expect(merged.output.logs('state.fresh_start')).toHaveLength(1);
    const elsewhere = savedStates({ ...middle, service: 'a'.repeat(64) }, 'events');
    const refused = await refresh(41, elsewhere, {}, 'overwrite_dedup');
    expect(refused.asked).toEqual([]);
    expect(refused.output.errors()[0].message).toContain('another service');
    const next = await refresh(42, savedStates(middle, 'events'));
    expect(next.asked).toEqual(first.asked);
    expect(next.output.states('events')[0]).toMatchObject({ from_date: '2026-01-15', sync_id: 42 });
  });
});
