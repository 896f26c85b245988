import { afterEach, describe, expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.ts';
import { RunFolder } from '../../../src/fs/run-folder.ts';
import { type Json, savedStates } from '../../support/airbyte/connector.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';
import { type FaultRule, onDay, refusal } from '../../support/service/faults.ts';
import type { ScenarioPatch } from '../../support/service/test-service.ts';

/** A full refresh of one job. */
const REFRESH = { sync_mode: 'full_refresh', destination_sync_mode: 'overwrite', sync_id: 41 };

describe('a read that fails', () => {
  let fixture: SourceFixture;
  afterEach(() => fixture.close());

  /** Starts a service; returns a catalog of its events. */
  async function start(scenario: ScenarioPatch = {}, modes: Json = {}): Promise<Json> {
    fixture = await SourceFixture.start(scenario);
    return fixture.catalog(modes, ['events']);
  }

  it('leaves the state of the day before, and a retry goes on from there with one day of lookback', async () => {
    fixture = await SourceFixture.start();
    const catalog = await fixture.catalog();
    fixture.sim.setScenario({ fault: onDay('2026-01-17', refusal(500)) });
    const output = await fixture.read(catalog);
    for (const stream of ['events', 'event_logs', 'event_items']) {
      expect(output.statuses(stream)).toEqual(['STARTED', 'RUNNING', 'INCOMPLETE']);
      expect(output.states(stream).at(-1)?.from_date).toBe('2026-01-17');
    }
    expect(output.errors()[0]).toMatchObject({
      failure_type: 'transient_error',
      stream_descriptor: { name: 'events' },
    });
    fixture.sim.setScenario({ fault: () => undefined });
    await fixture.read(catalog, output.lastStates());
    expect(fixture.requested()).toEqual(['2026-01-16', '2026-01-17', '2026-01-18', '2026-01-19', '2026-01-20']);
  });

  it('says of an unreadable day what helps in a platform, which has no command to load a file', async () => {
    const catalog = await start();
    const unreadable = refusal(200, { body: 'x', headers: { 'Content-Type': 'text/csv;charset=UTF-16' } });
    fixture.sim.setScenario({ fault: onDay('2026-01-17', unreadable) });
    const output = await fixture.read(catalog);
    expect(output.errors()).toHaveLength(2);
    for (const { message } of output.errors()) {
      expect(message).toContain('set start_date to 2026-01-18, and clear');
      expect(message).not.toContain('load …');
    }
    const later = await fixture.read(catalog, undefined, { start_date: '2026-01-18' });
    expect([later.code, later.statuses('events').at(-1)]).toEqual([0, 'COMPLETE']);
  });

  it('tells once of a failure at the last day', async () => {
    const catalog = await start();
    fixture.sim.setScenario({ fault: onDay('2026-01-18', refusal(500)) });
    const output = await fixture.read(catalog, undefined, { end_date: '2026-01-18', to_date_inclusive: 'true' });
    expect(output.statuses('events')).toEqual(['STARTED', 'RUNNING', 'INCOMPLETE']);
  });

  it('fails when the files of its days cannot be removed, though all streams are complete', async () => {
    const catalog = await start();
    const remove = vi.spyOn(RunFolder.prototype, 'remove').mockImplementationOnce(async function (this: RunFolder) {
      remove.mockRestore();
      await this.remove();
      throw new UserError('system', 'the spool folder cannot be written.');
    });
    const output = await fixture.run('read', fixture.config(), { catalog });
    expect(output.statuses('events').at(-1)).toBe('COMPLETE');
    expect([output.code, output.errors()]).toMatchObject([1, [{ failure_type: 'system_error' }]]);
  });

  it('keeps the row counts of 35 days, and names a day with far fewer rows than usual', async () => {
    fixture = await SourceFixture.start({ days: { history_days: 60 } }, { rowsPerDay: 200 });
    const catalog = await fixture.catalog({}, ['events']);
    const config = { start_date: '2025-12-01', history_days: 60 };
    const first = await fixture.read(catalog, undefined, config);
    const days = first.states('events').at(-1)?.days as Record<string, { rows: number }>;
    expect(Object.keys(days)).toHaveLength(35);
    const state = first.states('events').at(-1) ?? {};
    const grown = { ...days };
    for (const day of ['2025-12-21', '2025-12-28', '2026-01-04', '2026-01-11']) {
      grown[day] = { ...grown[day], rows: grown[day].rows * 9 };
    }
    grown['2026-01-18'] = { ...grown['2026-01-18'], rows: 1 };
    const second = await fixture.read(catalog, savedStates({ ...state, days: grown }, 'events'), config);
    expect(second.logs('day.implausible').join()).toContain('2026-01-18');
  });

  it('asks in the next attempt of a full refresh for the days that it could not take for empty', async () => {
    // No day proves for long that the service exports days.
    const isSilent = (day: string) => day < '2025-12-06' || (day > '2026-01-10' && day < '2026-01-19');
    const fault: FaultRule = ({ from }) => (isSilent(from) ? refusal(204) : undefined);
    const catalog = await start({ days: { history_days: 60 }, fault }, REFRESH);
    const config = { start_date: '2025-12-01', history_days: 60, to_date_inclusive: 'true' };
    const first = await fixture.read(catalog, undefined, config);
    expect(first.statuses('events').at(-1)).toBe('INCOMPLETE');
    const second = await fixture.read(catalog, first.lastStates(), config);
    expect(second.statuses('events').at(-1)).toBe('COMPLETE');
    expect(fixture.requested()).toContain('2025-12-01');
    expect(second.of('RECORD')).toEqual([]);
  });

  it('resumes a full refresh from the oldest exportable day when the history has become shorter', async () => {
    const catalog = await start({ days: { history_days: 3 } }, REFRESH);
    const first = await fixture.read(catalog, undefined, { start_date: '2026-01-18' });
    const state = { ...first.states('events')[1], from_date: '2026-01-15', start_date: '2026-01-15' };
    const output = await fixture.read(catalog, savedStates(state, 'events'));
    expect(output.errors()).toEqual([]);
    expect(output.statuses('events').at(-1)).toBe('COMPLETE');
    // A day that came before is not asked for again.
    expect(fixture.requested()).not.toContain('2026-01-18');
  });

  it('names the namespace of a stream that it does not have', async () => {
    const { streams } = (await start()) as { streams: { stream: Json }[] };
    const [{ stream }] = streams;
    const output = await fixture.read({ streams: [{ ...streams[0], stream: { ...stream, namespace: 'shop' } }] });
    expect(output.errors()[0].message).toContain(
      'The configured stream {"name":"events","namespace":"shop"} does not exist',
    );
  });

  it('refuses a stream whose catalog has times with a time zone while none is set', async () => {
    const catalog = await start();
    const { streams } = structuredClone(catalog) as { streams: { stream: { json_schema: { properties: Json } } }[] };
    streams[0].stream.json_schema.properties.mine = { type: ['string', 'null'], format: 'date-time' };
    const output = await fixture.read({ streams });
    expect(output.of('RECORD')).toEqual([]);
    expect(output.errors()[0].message).toMatch(/events has times with a time zone \(mine\), and timezone is not set/);
    const zoned = await fixture.read({ streams }, undefined, { timezone: 'Asia/Seoul', end_date: '2026-01-15' });
    expect(zoned.statuses('events').at(-1)).toBe('COMPLETE');
  });

  it.each<[string, Json]>([
    ['no column', {}],
    ['only a column that a row may leave empty', { properties: { mine: { type: ['string', 'null'] } } }],
    [
      'only the id of a person, whom a row may not name',
      { properties: { df_unified_id: { type: ['string', 'null'] } } },
    ],
    ['only an id that a row may lack', { properties: { df_event_detail_log_id: { type: ['string', 'null'] } } }],
  ])('refuses a stream whose catalog has %s: a platform drops empty records', async (_what, json_schema) => {
    fixture = await SourceFixture.start({ columns: { own: [{ name: 'mine', values: ['', 'x'] }] } });
    const { streams } = (await fixture.catalog({ primary_key: [] })) as { streams: { stream: Json }[] };
    const [events, logs, items] = streams;
    const catalog = { streams: [{ ...events, stream: { ...events.stream, json_schema } }, logs, items] };
    const output = await fixture.read(catalog);
    expect([output.code, output.errors()[0]]).toMatchObject([1, { failure_type: 'config_error' }]);
    expect(output.errors()[0].message).toContain('The configured stream events has no column that every row fills');
    expect(output.records('events')).toEqual([]);
    expect(['events', 'event_logs', 'event_items'].map((name) => output.statuses(name).at(-1))).toEqual([
      'INCOMPLETE',
      'COMPLETE',
      'COMPLETE',
    ]);
  });

  it('accepts a catalog that has the key of a stream alone, as its primary key', async () => {
    const { streams } = (await start()) as { streams: { stream: Json }[] };
    const catalog = { streams: [{ ...streams[0], stream: { ...streams[0].stream, json_schema: {} } }] };
    const output = await fixture.run('read', fixture.config(), { catalog });
    expect([output.code, output.statuses('events').at(-1)]).toEqual([0, 'COMPLETE']);
    expect(new Set(output.records('events').map((data) => Object.keys(data).join()))).toEqual(new Set(['_key']));
  });

  it('names lost days in a configuration error', async () => {
    fixture = await SourceFixture.start({ days: { history_days: 3 } });
    const catalog = await fixture.catalog();
    const saved = savedStates({ version: 1, from_date: '2026-01-15' }, 'events', 'event_logs', 'event_items');
    const output = await fixture.read(catalog, saved, { history_days: 3 });
    expect(output.errors()[0]).toMatchObject({
      failure_type: 'config_error',
      message: expect.stringMatching(/2026-01-15 to 2026-01-16\. Set on_gap/),
    });
    // No day after the lost ones is read, after which they would be noticed.
    const all = await fixture.read(catalog, saved, { history_days: 3, end_date: '2026-01-16' });
    expect([all.code, all.statuses('events').at(-1)]).toEqual([1, 'INCOMPLETE']);
    const warned = await fixture.read(catalog, saved, { history_days: 3, on_gap: 'warn' });
    expect(warned.statuses('events').at(-1)).toBe('COMPLETE');
    expect(warned.states('events').at(-1)?.gaps).toContain('2026-01-15');
  });

  it('names lost days also in a run that ends behind them', async () => {
    fixture = await SourceFixture.start({ days: { history_days: 4 } });
    const catalog = await fixture.catalog({}, ['events']);
    const saved = savedStates({ version: 1, from_date: '2026-01-15' }, 'events');
    fixture.sim.setScenario({ fault: onDay('2026-01-17', refusal(403)) });
    const output = await fixture.read(catalog, saved, { on_gap: 'warn', to_date_inclusive: 'true' });
    expect([output.code, output.states('events').at(-1)?.gaps]).toEqual([1, ['2026-01-15']]);
    expect(output.logs('day.gap')).toEqual([expect.stringContaining('2026-01-15')]);
  });

  it('names a day that one of two streams has lost, in any order of the catalog', async () => {
    fixture = await SourceFixture.start({ days: { history_days: 4 } });
    const catalog = await fixture.catalog({}, ['events', 'event_logs']);
    const states = (first: string, second: string) => [
      ...savedStates({ version: 1, from_date: first }, 'events'),
      ...savedStates({ version: 1, from_date: second }, 'event_logs'),
    ];
    for (const [first, second, missing] of [
      ['2026-01-16', '2026-01-15', 'event_logs'],
      ['2026-01-15', '2026-01-16', 'events'],
    ] as const) {
      const failed = await fixture.read(catalog, states(first, second), { on_gap: 'fail' });
      expect(failed.errors()[0]).toMatchObject({ message: expect.stringContaining('2026-01-15') });
      const warned = await fixture.read(catalog, states(first, second), { on_gap: 'warn' });
      expect(warned.code).toBe(0);
      for (const name of ['events', 'event_logs']) {
        expect(warned.states(name).at(-1)?.gaps).toEqual(name === missing ? ['2026-01-15'] : undefined);
      }
    }
  });

  it('reports a wait for the quota as RATE_LIMITED with its reset and repeats the last state', async () => {
    fixture = await SourceFixture.start({ limits: { exports_per_hour: 4 } });
    const catalog = await fixture.catalog();
    // One at a time: a wait that this clock passes while records of another window are written is not told.
    const output = await fixture.read(catalog, undefined, { max_concurrent_exports: 1 });
    const limited = output.messages.filter(({ trace }) => trace?.stream_status?.reasons !== undefined);
    expect(limited.length).toBeGreaterThanOrEqual(3);
    const [reason] = limited[0].trace?.stream_status?.reasons ?? [];
    expect(reason).toMatchObject({ type: 'RATE_LIMITED' });
    expect(reason.rate_limited.quota_reset).toBeGreaterThan(1e12);
    const states = output.of('STATE').map(({ state }) => JSON.stringify(state));
    // Two of them have no record since the one before: that of the first day, and a repeated one.
    expect(states.length - new Set(states).size).toBeGreaterThanOrEqual(1);
    expect(output.statuses('events').at(-1)).toBe('COMPLETE');
  });

  it('discovers no schema while the limit is spent for longer than the platform waits, and says until when', async () => {
    fixture = await SourceFixture.start({ limits: { exports_per_hour: 3 } });
    for (let i = 0; i < 3; i++) await fixture.run('check', fixture.config());
    const began = fixture.clock.now();
    const output = await fixture.run('discover', fixture.config());
    expect(output.code).not.toBe(0);
    expect(output.errors()).toMatchObject([
      {
        failure_type: 'transient_error',
        message: expect.stringMatching(/limit of exports.* at 2026-01-\S+Z, in 1 min: longer than this run waits/),
      },
    ]);
    expect(fixture.clock.now() - began).toBeLessThan(60_000);
  });
});
