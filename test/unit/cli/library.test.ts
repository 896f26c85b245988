import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import local from '../../../schemas/local-config.json' with { type: 'json' };
import source from '../../../schemas/source-config.json' with { type: 'json' };
import { addDays, dayAt } from '../../../src/base/days.ts';
import { type Configuration, plan, status, sync, verify } from '../../../src/index.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { newFolder } from '../../support/new-folder.ts';

/** Each key once, so that TypeScript knows all of them. */
const KEYS: Readonly<Record<Exclude<keyof Configuration, 'erasure'>, true>> = {
  ...{ base_url: true, service_id: true, export_token: true, start_date: true, end_date: true, timezone: true },
  ...{ events: true, events_condition_type: true, properties: true, properties_condition_type: true },
  ...{ lookback_days: true, settle_hours: true, to_date_inclusive: true, history_days: true },
  ...{ on_gap: true, max_concurrent_exports: true, column_types: true, schema_mode: true, user_profiles: true },
  ...{ suppression_file: true, suppression_key: true, columns_drop: true, columns_hash: true, hash_key: true },
  ...{ memory_limit: true, lock_wait: true, retention: true, spool_dir: true, target: true, place: true },
  notify_url: true,
};

it('the library types every key of the configuration', () => {
  const keys = Object.keys({ ...source.properties, ...local.properties });
  expect(Object.keys(KEYS).sort()).toEqual(keys.sort());
});

const SERVICE = { base_url: 'http://127.0.0.1:9', service_id: 'x', export_token: 't0ken' };

it('a sync of the library throws what the command line says, with its exit code', async () => {
  const options = { target: 'duckdb', place: '/none/events.duckdb' } as const;
  await expect(sync({ ...options, config: { ...SERVICE, lookback_days: 99 } })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('lookback_days is not usable, wanted at most 30'),
  });
  const misspelt = { ...SERVICE, lookbackDays: 1 };
  await expect(sync({ ...options, config: misspelt })).rejects.toMatchObject({ exitCode: 2 });
});

it.each([{ target: 'duckdb' }, { place: 'other.duckdb' }] as const)(
  'a sync of the library takes %j together with its other half alone',
  async (half) => {
    const config = { ...SERVICE, target: 'duckdb', place: '/none/main.duckdb' } as const;
    await expect(sync({ ...half, config })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('TARGET PLACE is missing'),
    });
  },
);

it('the library reads no configuration file and no variables', async () => {
  const options = '{"target": "duckdb", "place": "/none/events.duckdb"}';
  await expect(sync(JSON.parse(options))).rejects.toThrow('the configuration is not a JSON object');
  await expect(Reflect.apply(sync, undefined, [])).rejects.toThrow('the configuration is not a JSON object');
});

it.each([
  ['from', '2026-11-20T00:00:00Z', 'from and to are not usable: wanted days'],
  ['to', '2026-11-31', 'from and to are not usable: wanted days'],
  ['place', '', 'place is empty'],
  ['place', 's3://key:t0ken@bucket/x', 'place has a user name or a key in it'],
])('the library refuses an unusable option: %s', async (name, value, sentence) => {
  const options = { target: 'duckdb', place: '/none/events.duckdb', config: SERVICE, [name]: value } as const;
  await expect(sync(options)).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(sentence) });
});

it('the functions of the library refuse an option that they do not have', async () => {
  const options = { target: 'duckdb', place: '/none/events.duckdb', config: { service_id: 'x' } } as const;
  const refusal = { exitCode: 2, message: 'there is no option "fullrefresh": did you mean fullRefresh?' };
  await expect(plan({ ...options, ...{ fullrefresh: true } })).rejects.toMatchObject(refusal);
  await expect(plan({ ...options, ...{ maxWaitMs: 1 } })).rejects.toThrow('there is no such option: wanted');
  await expect(status({ ...options, ...{ from: '2026-11-20' } })).rejects.toThrow('there is no such option: wanted');
});

it('the library names a key that is missing, and no variable', async () => {
  const config = JSON.parse('{"base_url": "http://127.0.0.1:9", "service_id": "x"}');
  await expect(sync({ target: 'duckdb', place: '/none/events.duckdb', config })).rejects.toMatchObject({
    exitCode: 2,
    message: 'export_token is missing: write it into config.',
  });
});

it('a plan of the library needs no token, and status and verify no service', async () => {
  const place = { target: 'duckdb', place: '/none/events.duckdb' } as const;
  const config = { service_id: 'x', start_date: '2026-01-01', end_date: '2026-01-02', history_days: 3650 };
  expect(await plan({ ...place, config })).toMatchObject({ from_date: '2026-01-01', days: [{}, {}] });
  await expect(status({ ...place, config: {} })).rejects.toMatchObject({ exitCode: 2 });
  await expect(verify({ config: place })).rejects.toMatchObject({ exitCode: 2 });
  await expect(verify({ config: {} })).rejects.toThrow('TARGET PLACE is missing');
});

it('the library resolves relative paths when a function is called, wherever the process works later', async () => {
  const [folderAtCall, laterFolder, folderBefore] = [newFolder(), newFolder(), process.cwd()];
  const simulator = await startSimulator({ scenario: { events_per_day: 20 } });
  const { service_id, export_token } = simulator.scenario;
  const start_date = addDays(dayAt(Date.now()), -1);
  const config = { base_url: simulator.url, service_id, export_token, start_date, spool_dir: 'spool' };
  try {
    process.chdir(folderAtCall);
    const running = sync({ target: 'duckdb', place: 'events.duckdb', config });
    process.chdir(laterFolder);
    await running;
    expect([readdirSync(folderAtCall).sort(), readdirSync(laterFolder)]).toEqual([['events.duckdb', 'spool'], []]);
  } finally {
    process.chdir(folderBefore);
    await simulator.close();
  }
});
