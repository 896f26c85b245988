import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checkHost } from '../../../src/airbyte/destination/check.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { code, json, people, record, run, SUCCESS, setUpDeletions, state } from '../../support/deletion/deletions.ts';
import { failureOf } from '../../support/failure.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { ManualClock } from '../../support/service/service.ts';

const setup = setUpDeletions({ service_id: 's', import_token: 'tok-1234' });
const contextWith = (signal = new AbortController().signal, clock: Clock = systemClock) => ({
  env: () => undefined,
  clock,
  signal,
});

describe('discover', () => {
  it('offers one object with its matching key', async () => {
    const output = await run(['discover', '--config', setup.files.write(setup.config({ colour: 'red' }))]);
    expect(output.logs('config.unknown_keys')).toHaveLength(1);
    expect(output.of('DESTINATION_CATALOG')).toEqual([
      {
        type: 'DESTINATION_CATALOG',
        destination_catalog: {
          operations: [
            {
              object_name: 'profiles',
              sync_mode: 'soft_delete',
              json_schema: {
                $schema: 'http://json-schema.org/draft-07/schema#',
                type: 'object',
                properties: { external_id: { type: 'string' } },
                required: ['external_id'],
                additionalProperties: false,
              },
              matching_keys: [['external_id']],
            },
          ],
        },
      },
    ]);
  });
});

describe('spec', () => {
  it('gives the schema of the configuration', async () => {
    const [{ spec }] = (await run(['spec'])).of('SPEC');
    expect(spec).toMatchObject({
      protocol_version: '0.2.0',
      supportsIncremental: true,
      supported_destination_sync_modes: ['append', 'append_dedup'],
      connectionSpecification: { required: expect.arrayContaining(['base_url', 'import_token']) },
    });
  });
});

describe('check', () => {
  it('reports what a proxy refused without blaming base_url', async () => {
    const proxy = createServer().on('connect', (_request, socket) =>
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'),
    );
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    try {
      const env = { HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
      const config = setup.files.write(setup.config({ base_url: 'https://service.invalid' }));
      const [{ connectionStatus }] = (await run(['check', '--config', config], { env })).of('CONNECTION_STATUS');
      expect(connectionStatus).toEqual({
        status: 'FAILED',
        message: expect.stringMatching(/^The proxy of HTTPS_PROXY refused to connect \(HTTP 407\)/),
      });
    } finally {
      proxy.close();
    }
  });

  it('reports an invalid proxy URL', async () => {
    const config = setup.files.write(setup.config({ base_url: 'https://service.invalid' }));
    const output = await run(['check', '--config', config], { env: { HTTPS_PROXY: 'socks5://127.0.0.1:1' } });
    expect(output.of('CONNECTION_STATUS')[0].connectionStatus?.message).toMatch(/^HTTPS_PROXY is not the address/);
  });

  it('fails as a configuration error with its cause for an untrusted certificate', async () => {
    const server = createSecureServer(selfSigned());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const cause = expect.objectContaining({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
      const asked = checkHost(`https://127.0.0.1:${port}`, contextWith());
      await expect(asked).rejects.toMatchObject({ kind: 'config', cause });
    } finally {
      server.close();
    }
  });

  it('fails as a transient error with its cause when the host does not answer', async () => {
    await setup.server.close();
    const cause = expect.objectContaining({ code: 'ECONNREFUSED' });
    await expect(checkHost(setup.server.url, contextWith())).rejects.toMatchObject({
      kind: 'transient',
      cause,
    });
  });

  it('is given up after twenty seconds by the clock of the program', async () => {
    const silent = createTcpServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    try {
      const clock = new ManualClock();
      const { port } = silent.address() as AddressInfo;
      const asked = checkHost(`http://127.0.0.1:${port}`, contextWith(undefined, clock));
      const ended = failureOf(asked);
      let isOver = false;
      void ended.then(() => {
        isOver = true;
      });
      await clock.passUntil(() => isOver, 30_000);
      expect(await ended).toMatchObject({ kind: 'transient', message: expect.stringContaining('was not reached') });
      expect(clock.set).toContain(20_000);
    } finally {
      silent.close();
    }
  });

  it('rejects with the reason of a stop', async () => {
    const reason = new Error('stopped');
    await expect(checkHost(setup.server.url, contextWith(AbortSignal.abort(reason)))).rejects.toBe(reason);
  });
});

describe('write', () => {
  it('masks secrets of the environment in every message', async () => {
    const env = { DFINERY_IMPORT_TOKEN: 'token-of-the-environment', DFINERY_LEDGER_KEY: 'k'.repeat(32) };
    const name = Object.values(env).join(' and ');
    const catalog = setup.files.write(people({ destination_sync_mode: 'overwrite' }, { name }), 'txt');
    const config = setup.files.write(setup.config({ import_token: undefined }));
    const output = await run(['write', '--config', config, '--catalog', catalog], { env });
    expect(output.errors()[0].message).toContain('stream ****** and ******: the sync mode');
    expect(output.text).not.toMatch(/token-of-the-environment|kkkk/);
  });

  it('compares the cap with the ids about to be requested, without those that an unfinished run has deleted', async () => {
    setup.answer = ({ id }, response) => (id === 'c' ? code(response, '40201') : json(response, SUCCESS));
    const input = [...['a', 'b', 'c'].map((id) => record(id)), state(1)];
    await setup.write(input);
    setup.answer = (_d, response) => json(response, SUCCESS);
    const output = await setup.write(input, { max_deletions_per_sync: 1 });
    expect(output.errors()).toEqual([]);
    expect(output.code).toBe(0);
    expect(setup.server.ids()).toEqual(['a', 'b', 'c', 'c']);
  });

  it('reports the head of the ledger, and refused rows if there are any', async () => {
    const output = await setup.write([record('a'), state(1)]);
    const head = setup.folders.ledgerLines().at(-1)?.mac;
    expect(output.of('LOG').filter(({ log }) => log?.event === 'ledger.head')).toMatchObject([
      { log: { message: `Head of the ledger: ${head}`, fields: { head } } },
    ]);
    expect(output.logs('erase.refused')).toEqual([]);
    const some = await setup.write([record('a'), record(null), record('')]);
    expect(some.of('LOG').filter(({ log }) => log?.event === 'erase.refused')).toMatchObject([
      { log: { level: 'WARN', fields: { missing: 1, empty: 1 } } },
    ]);
  });

  it('reports no head when nothing was requested', async () => {
    expect((await setup.write([state(1)])).logs('ledger.head')).toEqual([]);
  });

  it('begins a dry run with a warning, and prints its whole report', async () => {
    const input = [record('a'), record('a')];
    expect((await setup.write(input)).logs('erase.dry_run')).toEqual([]);
    const output = await setup.write([...input, record(null)], { dry_run: true });
    expect(output.messages[0].log?.message).toContain('DRY RUN: nothing will be deleted');
    expect(output.logs('erase.report').join(' ')).toMatch(/refused/);
  });
});
