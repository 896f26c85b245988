import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import {
  bundleConnector,
  configured,
  InputFiles,
  type Json,
  type RunningConnector,
  startConnector,
} from '../../support/airbyte/connector.ts';
import { formProblems, readProblems } from '../../support/airbyte/message-rules.ts';
import { SERVICE_ID, startTestService, TOKENS } from '../../support/service/start-service.ts';
import type { TestService } from '../../support/service/test-service.ts';

/** One today for all: midnight may pass in the middle. */
const TODAY = dayAt(systemClock.now());
const day = (back: number) => addDays(TODAY, -back);

/** The connector as its image has it: one file, a process of its own. */
describe('the source as a process', () => {
  const files = new InputFiles();
  let sim: TestService;
  let file: string;
  let config: Json;
  let catalog: Json;

  beforeAll(async () => {
    sim = await startTestService({}, { clock: systemClock, rowsPerDay: 4_000 });
    file = await bundleConnector('source-dfinery', files.dir);
    config = {
      base_url: sim.url,
      service_id: SERVICE_ID,
      export_token: TOKENS.export,
      start_date: day(3),
      end_date: day(2),
      spool_dir: files.dir,
    };
    const output = await run(['discover', '--config', files.write(config)]);
    catalog = configured(output.catalog().streams);
  });
  afterAll(() => sim.close());
  const run = (words: readonly string[], onStart: (running: RunningConnector) => void = () => {}) => {
    const running = startConnector(file, words);
    onStart(running);
    return running.ended;
  };
  const read = (more: Json = {}) => [
    'read',
    '--config',
    files.write({ ...config, ...more }),
    '--catalog',
    files.write(catalog, 'txt'),
    '--state',
    files.write('[]', 'txt'),
  ];

  it('answers spec without a configuration or the network', async () => {
    const output = await run(['spec']);
    expect(formProblems(output.messages)).toEqual([]);
    expect(output.messages).toHaveLength(1);
    expect([output.code, output.stderr]).toEqual([0, '']);
    const [spec] = output.of('SPEC');
    const { required, properties } = spec.spec?.connectionSpecification ?? {};
    expect(required).toEqual(['base_url', 'service_id', 'export_token']);
    const secrets = Object.entries(properties as Record<string, Json>).filter(
      ([, { airbyte_secret }]) => airbyte_secret,
    );
    expect(secrets.map(([name]) => name)).toEqual(['export_token', 'suppression_key', 'hash_key']);
  });

  it('checks and reads without output on stderr', async () => {
    const checked = await run(['check', '--config', files.write(config)]);
    expect([checked.of('CONNECTION_STATUS')[0].connectionStatus?.status, checked.stderr]).toEqual(['SUCCEEDED', '']);
    const output = await run(read());
    expect(readProblems(output, catalog)).toEqual([]);
    expect(output.stderr).toBe('');
    expect(output.records('events')).toHaveLength(sim.countRows({ from: day(3), to: day(2) }));
  });

  it('loses no message when its reader is slow', async () => {
    const output = await run(read(), ({ stdout }) => {
      let pauses = 0;
      const pause = () => {
        if (pauses++ > 12) return;
        stdout.pause();
        void delay(20).then(() => stdout.resume());
      };
      stdout.on('data', pause);
    });
    expect(readProblems(output, catalog)).toEqual([]);
    expect(output.records('events')).toHaveLength(sim.countRows({ from: day(3), to: day(2) }));
  });

  it('ends without a message when its reader closes stdout', async () => {
    const output = await run(read(), ({ stdout }) => stdout.once('data', () => stdout.destroy()));
    expect(output.stderr).toBe('');
    expect(output.code).not.toBe(0);
  });

  it('dies by SIGTERM with whole messages written', async () => {
    const output = await run(read({ start_date: day(20), end_date: day(1) }), ({ stdout, kill }) => {
      let seen = 0;
      let killed = false;
      stdout.on('data', (chunk: Buffer) => {
        seen += chunk.length;
        // A second signal would end it at once.
        if (seen > 200_000 && !killed) killed = kill('SIGTERM');
      });
    });
    expect(output.signal).toBe('SIGTERM');
    expect(output.stderr).toBe('');
    expect(output.text.endsWith('\n')).toBe(true);
    expect(formProblems(output.messages)).toEqual([]);
    expect(output.statuses('events').at(-1)).toBe('INCOMPLETE');
  });

  it('ends profiles INCOMPLETE, without a state, if SIGTERM comes half-way', async () => {
    const rows = Array.from({ length: 50_000 }, (_, n) => `u${n},${'attribute '.repeat(5)}\n`);
    const service = createServer((request, response) => {
      request.resume().on('end', () => response.end(`df_unified_id,plan\n${rows.join('')}`));
    }).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const base_url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    const text = { type: ['string', 'null'] };
    const json_schema = { type: 'object', properties: { df_unified_id: text, plan: text } };
    const selected = { stream: { name: 'user_profiles', json_schema }, sync_mode: 'full_refresh' };
    const streams = [{ ...selected, destination_sync_mode: 'overwrite', primary_key: [['df_unified_id']] }];
    const words = ['--config', files.write({ ...config, base_url, user_profiles: true }), '--catalog'];
    const output = await run(['read', ...words, files.write({ streams }, 'txt')], ({ stdout, kill }) => {
      let killed = false;
      stdout.on('data', (chunk: Buffer) => {
        if (!killed && chunk.includes('"RECORD"')) killed = kill('SIGTERM');
      });
    });
    service.close();
    expect(output.signal).toBe('SIGTERM');
    expect(output.records('user_profiles').length).toBeLessThan(rows.length);
    expect(output.states('user_profiles')).toEqual([]);
    expect(output.statuses('user_profiles')).toEqual(['STARTED', 'RUNNING', 'INCOMPLETE']);
  });
});
