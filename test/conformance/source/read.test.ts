import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Json, savedStates } from '../../support/airbyte/connector.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const DAYS = ['2026-01-15', '2026-01-16', '2026-01-17', '2026-01-18', '2026-01-19', '2026-01-20'];

describe('read', () => {
  let fixture: SourceFixture;
  let catalog: Json;
  beforeAll(async () => {
    fixture = await SourceFixture.start();
    catalog = await fixture.catalog();
  });
  afterAll(() => fixture.close());

  it('writes every row once, in three streams, from one export a day', async () => {
    const output = await fixture.read(catalog);
    expect(fixture.requested().sort()).toEqual(DAYS);
    const rows = fixture.sim.countRows({ from: '2026-01-15', to: '2026-01-20' });
    expect(rows).toBeGreaterThan(100);
    const keys = output.records('events').map((data) => data._key);
    expect(keys).toHaveLength(rows);
    expect(new Set(keys).size).toBe(rows);
    const logs = new Set(output.records('events').map((data) => data.df_event_log_id));
    expect(output.records('event_logs').map((data) => data.df_event_log_id)).toEqual([...logs]);
    expect(output.records('event_items').length).toBeGreaterThan(10);
    expect(output.records('event_items').every((data) => keys.includes(data._key))).toBe(true);
  });

  it('begins with STARTED, the first wanted day and RUNNING, and ends with the last state and COMPLETE', async () => {
    const output = await fixture.read(catalog, []);
    const ofEvents = output.messages.filter(
      ({ state: one, trace }) =>
        one?.stream.stream_descriptor.name === 'events' || trace?.stream_status?.stream_descriptor.name === 'events',
    );
    const reported = ofEvents.map(
      ({ state: one, trace }) => trace?.stream_status?.status ?? one?.stream.stream_state.from_date,
    );
    expect(reported).toEqual(['STARTED', DAYS[0], 'RUNNING', ...DAYS.slice(1, 5), DAYS[4], DAYS[4], 'COMPLETE']);
  });

  it('writes only configured properties, and names the others once', async () => {
    const partial = structuredClone(catalog) as { streams: { stream: { json_schema: { properties: Json } } }[] };
    for (const { stream } of partial.streams) delete stream.json_schema.properties.df_api_version;
    const output = await fixture.read(partial as Json);
    const texts = output.logs('columns.unsent').filter((text) => text.startsWith('events:'));
    expect(texts).toEqual(['events: not in the configured catalog and so not sent: df_api_version.']);
    expect(output.records('events')[0]).not.toHaveProperty('df_api_version');
  });

  it('reports a stream that does not exist, reads the others, and fails', async () => {
    const [events] = (catalog as { streams: Json[] }).streams;
    const unknown = { ...events, stream: { ...(events.stream as Json), name: 'nobody' }, sync_mode: 'INVALID' };
    const output = await fixture.read({ streams: [unknown, events] });
    expect(output.code).not.toBe(0);
    expect(output.statuses('nobody')).toEqual(['STARTED', 'INCOMPLETE']);
    expect(output.statuses('events')).toEqual(['STARTED', 'RUNNING', 'COMPLETE']);
    expect(output.errors()[0]).toMatchObject({ failure_type: 'config_error', stream_descriptor: { name: 'nobody' } });
    expect(output.records('events').length).toBeGreaterThan(100);
  });

  it('reads for each stream its own days when the states differ', async () => {
    const whole = await fixture.read(catalog);
    const later = whole.states('events').find((one) => one.from_date === '2026-01-18') as Json;
    const output = await fixture.read(catalog, savedStates(later, 'event_logs'));
    expect(fixture.requested()).toEqual(DAYS);
    const days = (stream: string) =>
      [...new Set(output.records(stream).map((data) => String(data.df_server_datetime).slice(0, 10)))].sort();
    expect(days('events')[0]).toBe('2026-01-15');
    expect(days('event_logs')[0]).toBe('2026-01-17');
    const cursors = output.states('event_logs').map(({ from_date }) => from_date);
    expect(cursors).toEqual([DAYS[3], DAYS[3], DAYS[4], DAYS[4], DAYS[4]]);
  });

  it('warns of unknown configuration keys', async () => {
    const output = await fixture.read(catalog, undefined, { end_date: '2026-01-15', page_size: 5 });
    expect(output.code).toBe(0);
    expect(output.logs('config.unknown_keys')[0]).toContain('page_size');
  });

  it('rescues cells that do not fit the configured types', async () => {
    const narrowed = structuredClone(catalog) as {
      streams: { stream: { name: string; json_schema: { properties: Json } } }[];
    };
    narrowed.streams[0].stream.json_schema.properties.df_api_version = { type: ['boolean', 'null'] };
    const output = await fixture.read(narrowed as Json, undefined, { end_date: '2026-01-15' });
    expect(output.records('events')[0]).toMatchObject({ _rescued: { df_api_version: expect.any(String) } });
    expect(output.logs('cells.rescued')[0]).toMatch(/their text is in _rescued: df_api_version \(\d+\)/);
    delete narrowed.streams[0].stream.json_schema.properties._rescued;
    const bare = await fixture.read(narrowed as Json, undefined, { end_date: '2026-01-15' });
    expect(bare.logs('cells.rescued')[0]).toMatch(/not sent, as the catalog lacks _rescued: df_api_version/);
  });
});
