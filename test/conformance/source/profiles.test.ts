import { describe, expect, it, onTestFinished } from 'vitest';
import { source } from '../../../src/airbyte/source/source.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { REQUIRED_COLUMNS } from '../../../src/cells/header.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { configured, InputFiles, type Json, runInProcess } from '../../support/airbyte/connector.ts';
import { catalogProblems, formProblems } from '../../support/airbyte/message-rules.ts';
import { serve, whole } from '../../support/service/faulty-server.ts';

/** The second request of profiles, which `read` sends after `discover`, is refused. */
const REFUSED = { answers: [{ operation: 'profiles', nth: [2], status: 401 }] };

describe('the stream user_profiles', () => {
  const files = new InputFiles();

  /** Starts a service with profiles; returns the configuration of two days of it that are over everywhere. */
  async function start(scenario: object = {}): Promise<Json> {
    const service = await startSimulator({ scenario: { events_per_day: 20, ...scenario } });
    onTestFinished(() => service.close());
    const { service_id, export_token } = service.scenario;
    const today = dayAt(systemClock.now());
    const days = { start_date: addDays(today, -4), end_date: addDays(today, -3), to_date_inclusive: 'true' };
    return { ...days, base_url: service.url, service_id, export_token, user_profiles: true };
  }
  const run = (verb: string, config: Json, catalog?: Json) => {
    const words = [verb, '--config', files.write(config)];
    if (catalog !== undefined) words.push('--catalog', files.write(catalog, 'txt'));
    return runInProcess(source, words, { clock: systemClock });
  };
  /** Discovers, and selects events and the profiles, each as a full refresh. */
  const selected = async (config: Json) =>
    configured((await run('discover', config)).catalog().streams, { sync_mode: 'full_refresh' }, [
      'events',
      'user_profiles',
    ]);

  it('is offered if the key is set, as a full refresh with typed attributes', async () => {
    const config = await start();
    const without = await run('discover', { ...config, user_profiles: false });
    expect(without.catalog().streams.map(({ name }) => name)).not.toContain('user_profiles');
    const { streams } = (await run('discover', config)).catalog();
    expect(catalogProblems({ streams })).toEqual([]);
    expect(streams.find(({ name }) => name === 'user_profiles')).toMatchObject({
      supported_sync_modes: ['full_refresh'],
      source_defined_primary_key: [['df_unified_id']],
      json_schema: {
        properties: {
          _key: { description: expect.stringContaining('unified id') },
          df_external_id: { type: ['string', 'null'] },
          df_birth: { format: 'date' },
        },
      },
    });
    const dropped = await run('discover', { ...config, columns_drop: ['df_external_id'] });
    const profiles = dropped.catalog().streams.find(({ name }) => name === 'user_profiles');
    expect(profiles).toMatchObject({ json_schema: { properties: { df_unified_id: {} } } });
    expect(profiles).not.toMatchObject({ json_schema: { properties: { df_external_id: {} } } });
  });

  it('has a second column with the name of an id under a name of its own', async () => {
    const csv = 'df_unified_id,df_unified_id\nu,v\n';
    const { url } = await serve(({ line }) =>
      whole(200, line.includes('userprofile') ? csv : `${REQUIRED_COLUMNS.join(',')}\n`),
    );
    const config = { base_url: url, service_id: 'service', export_token: 'export-token', user_profiles: true };
    const { streams } = (await run('discover', config)).catalog();
    const { json_schema } = streams.find(({ name }) => name === 'user_profiles') ?? {};
    expect(Object.keys(json_schema?.properties ?? {})).toEqual(
      expect.arrayContaining(['df_unified_id', expect.stringMatching(/^df_unified_id_[0-9a-f]{6}$/)]),
    );
  });

  it('sends every profile once, beside the days, with a state behind it, and names what the catalog lacks', async () => {
    const config = await start();
    const catalog = await selected(config);
    const [, { stream }] = catalog.streams as { stream: { json_schema: { properties: Json } } }[];
    delete stream.json_schema.properties.df_gender;
    const output = await run('read', config, catalog);
    expect(output.logs('columns.unsent')).toEqual([expect.stringMatching(/^user_profiles: .*not sent: df_gender\.$/)]);
    expect(formProblems(output.messages)).toEqual([]);
    expect(output.errors()).toEqual([]);
    expect(output.code).toBe(0);
    const profiles = output.records('user_profiles');
    expect(profiles.length).toBeGreaterThan(100);
    expect(new Set(profiles.map(({ df_unified_id }) => df_unified_id)).size).toBe(profiles.length);
    expect(profiles[0]).toMatchObject({ _key: profiles[0].df_unified_id, df_external_id: expect.any(String) });
    expect(output.states('user_profiles')).toHaveLength(1);
    expect(output.statuses('user_profiles')).toEqual(['STARTED', 'RUNNING', 'COMPLETE']);
    expect(output.records('events').length).toBeGreaterThan(0);
    expect(output.statuses('events').at(-1)).toBe('COMPLETE');
  });

  it('that cannot be exported ends INCOMPLETE, and the days are read all the same', async () => {
    const config = await start(REFUSED);
    const output = await run('read', config, await selected(config));
    expect(output.code).not.toBe(0);
    expect(output.errors().at(-1)?.message).toMatch(/^1 of 2 streams could not be read to the end \(user_profiles\)/);
    const said = JSON.stringify(output.errors());
    expect(said).toContain('leave out user_profiles');
    expect(said).not.toContain('stored');
    expect(output.statuses('user_profiles')).toEqual(['STARTED', 'INCOMPLETE']);
    expect(output.statuses('events').at(-1)).toBe('COMPLETE');
  });

  it('without a profile ends INCOMPLETE: a destination that overwrites keeps those that it has', async () => {
    const { url } = await serve(() => whole(200, 'df_unified_id,df_external_id\n'));
    const config = { base_url: url, service_id: 'service', export_token: 'export-token', user_profiles: true };
    const [profiles] = (await run('discover', await start()))
      .catalog()
      .streams.filter(({ name }) => name === 'user_profiles');
    const output = await run('read', config, configured([profiles], { sync_mode: 'full_refresh' }));
    expect(output.errors()[0].message).toContain('has no row');
    expect(output.states('user_profiles')).toEqual([]);
    expect(output.statuses('user_profiles')).toEqual(['STARTED', 'INCOMPLETE']);
  });

  it('is refused where the catalog has no column that every profile fills', async () => {
    const config = await start();
    const [profiles] = (await run('discover', config)).catalog().streams.filter(({ name }) => name === 'user_profiles');
    const json_schema = { type: 'object', properties: {} };
    const catalog = configured([{ ...profiles, json_schema }], { sync_mode: 'full_refresh', primary_key: [] });
    const output = await run('read', config, catalog);
    expect(output.errors()[0].message).toContain('user_profiles has no column that every row fills');
    expect(output.records('user_profiles')).toEqual([]);
  });

  it('is counted and named beside the streams of events that failed, too', async () => {
    const config = await start(REFUSED);
    const { streams } = (await run('discover', config)).catalog();
    const moved = streams.map((stream) => ({ ...stream, ...(stream.name === 'events' && { namespace: 'shop' }) }));
    const output = await run('read', config, configured(moved, {}, ['events', 'user_profiles']));
    expect(output.errors().at(-1)?.message).toMatch(
      /^2 of 2 streams could not be read to the end \(events, user_profiles\)/,
    );
  });
});
