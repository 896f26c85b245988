import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../../src/erasure/ledger/chain.ts';
import { locateLedger } from '../../../src/erasure/ledger/ledger-file.ts';
import {
  bundleConnector,
  type Json,
  type Output,
  type RunningConnector,
  startConnector,
} from '../../support/airbyte/connector.ts';
import { formProblems } from '../../support/airbyte/message-rules.ts';
import { code, json, people, record, SUCCESS, setUpDeletions, state, TOKEN } from '../../support/erasure/deletions.ts';
import { newFolder } from '../../support/new-folder.ts';

let file = '';
const setup = setUpDeletions({ service_id: 's', max_deletions_per_sync: 100_000, requests_per_minute: 1_000_000 });

beforeAll(async () => {
  file = await bundleConnector('destination-dfinery', newFolder());
});

const start = (words: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): RunningConnector =>
  startConnector(file, words, input, { TMPDIR: setup.folders.root, ...env });

const wordsOfWrite = (more: Json = {}) => {
  const [config, catalog] = [setup.files.write(setup.config(more)), setup.files.write(people(), 'txt')];
  return ['write', '--config', config, '--catalog', catalog];
};
const write = (lines: readonly string[], more: Json = {}, env: Record<string, string> = {}): RunningConnector =>
  start(wordsOfWrite(more), `${lines.join('\n')}\n`, env);

const sound = (output: Output) => {
  expect(output.stderr).toBe('');
  const known = output.messages.filter(({ type }) => type !== 'STATE' && type !== 'SPEC');
  expect(formProblems(known)).toEqual([]);
  expect(output.text).not.toContain(TOKEN);
};

describe('the destination as a process', () => {
  it('spec writes one message and nothing else', async () => {
    const output = await start(['spec']).ended;
    sound(output);
    expect(output.code).toBe(0);
    expect(output.messages).toHaveLength(1);
    const { spec } = output.messages[0];
    expect(spec).toMatchObject({
      protocol_version: '0.2.0',
      supported_destination_sync_modes: ['append', 'append_dedup'],
    });
    const properties = Object.entries(spec?.connectionSpecification.properties as Record<string, Json>);
    expect(new Set(properties.map(([, one]) => `${one.group} ${one.order}`)).size).toBe(properties.length);
    for (const [name, one] of properties)
      expect([name, typeof one.title, typeof one.description]).toEqual([name, 'string', 'string']);
    expect(properties.filter(([, one]) => one.airbyte_secret).map(([name]) => name)).toEqual([
      'import_token',
      'ledger_key',
    ]);
  });

  it('check connects to the host and sends no deletion', async () => {
    const output = await start(['check', '--config', setup.files.write(setup.config())]).ended;
    sound(output);
    expect(output.code).toBe(0);
    expect(output.messages.at(-1)?.connectionStatus?.status).toBe('SUCCEEDED');
    expect(setup.server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['HEAD /']);
    expect(setup.server.seen[0].headers.access_token).toBeUndefined();
    expect(readdirSync(setup.folders.root)).toEqual([]);
  });

  it.each<[string, Json]>([
    ['an address where nobody answers', { base_url: 'http://127.0.0.1:1' }],
    ['an address that is none', { base_url: 'ftp://x' }],
    ['no token', { import_token: null }],
    ['a folder that cannot be written', { ledger_dir: '/proc/nowhere' }],
  ])('check: %s is FAILED with a message and exit 0', async (_name, more) => {
    const output = await start(['check', '--config', setup.files.write(setup.config(more))]).ended;
    sound(output);
    expect(output.code).toBe(0);
    expect(output.messages).toHaveLength(1);
    expect(output.messages[0].connectionStatus).toMatchObject({
      status: 'FAILED',
      message: expect.stringMatching(/\.$/),
    });
  });
});

describe('write, in a process of its own', () => {
  it('takes its token from the environment', async () => {
    const output = await write([record('a')], { import_token: null }, { DFINERY_IMPORT_TOKEN: TOKEN }).ended;
    sound(output);
    expect(output.code).toBe(0);
    expect(setup.server.seen[0].headers.access_token).toBe(TOKEN);
  });

  it('leaves no file in the temporary folder and no id in any file', async () => {
    const output = await write([record('person-8842'), record('x'.repeat(10_000_000)), state(1)]).ended;
    sound(output);
    expect(output.code).toBe(0);
    expect(readdirSync(setup.folders.root)).toEqual(['ledger']);
    expect(output.text + JSON.stringify(setup.folders.ledgerLines())).not.toContain('person-88');
  });

  it('stops within seconds of a closed stdout also while it has no state to echo', async () => {
    const child = write(
      Array.from({ length: 20 }, (_, n) => record(`u${n}`)),
      { requests_per_minute: 60 },
    );
    setup.answer = ({ id }, response) => {
      if (id === 'u1') child.stdout.destroy();
      json(response, SUCCESS);
    };
    expect((await child.ended).code).toBe(1);
    expect(setup.server.ids().length).toBeLessThan(12);
  });

  it('stops within five seconds of SIGTERM, and the next run goes on', async () => {
    const ids = [...Array(200).keys()].map((n) => `u${n}`);
    const lines = [...ids.map((id) => record(id)), state(1)];
    // One at a time, a tenth of a second each: all of them would take far longer than a stop may.
    setup.answer = ({ id }, response) => {
      if (id === 'u2') child.kill('SIGTERM');
      setTimeout(() => json(response, SUCCESS), 100);
    };
    const child = write(lines, { max_concurrent_requests: 1 });
    const output = await child.ended;
    sound(output);
    expect([output.code, output.signal]).toEqual([null, 'SIGTERM']);
    expect(output.of('STATE')).toEqual([]);
    expect((await verifyLedger(locateLedger(setup.folders.ledger, undefined))).ok).toBe(true);
    const done = setup.folders.ledgerLines().filter(({ outcome }) => outcome === 'done').length;
    expect([done, done < ids.length]).toEqual([setup.server.ids().length, true]);
    expect(done).toBeGreaterThanOrEqual(3);
    setup.answer = (_d, response) => json(response, SUCCESS);
    const again = await write(lines).ended;
    expect(again.code).toBe(0);
    expect(setup.server.ids().toSorted()).toEqual(ids.toSorted());
    expect(again.text).toContain('"destinationStats":{"recordCount":200,"rejectedRecordCount":0}');
  });

  it('survives kill -9 at any time: each ID is deleted, and only pending ones are repeated', async () => {
    const ids = [...Array(300).keys()].map((n) => `u${n}`);
    const lines = [...ids.map((id) => record(id)), state(1)];
    setup.answer = ({ id }, response, nth) => {
      if (nth === 1 && Number(id?.slice(1)) % 37 === 5) code(response, '50000');
      else if (nth === 1 && Number(id?.slice(1)) % 41 === 7) response.socket?.destroy();
      else json(response, SUCCESS);
    };
    const quick = { requests_per_minute: 30_000, max_concurrent_requests: 8 };
    for (const requests of [3, 90, 170]) {
      const child = write(lines, quick);
      const fair = setup.answer;
      setup.answer = (deletion, response, nth) => {
        if (setup.server.seen.length >= requests) child.kill('SIGKILL');
        fair(deletion, response, nth);
      };
      const output = await child.ended;
      setup.answer = fair;
      expect(output.signal).toBe('SIGKILL');
      expect(output.of('STATE')).toEqual([]);
      expect((await verifyLedger(locateLedger(setup.folders.ledger, undefined))).ok).toBe(true);
    }
    const last = await write(lines, quick).ended;
    expect(last.code).toBe(0);
    expect(last.text).toContain('"destinationStats":{"recordCount":300,"rejectedRecordCount":0}');
    expect(new Set(setup.server.ids())).toEqual(new Set(ids));
    const faults = ids.filter((_, n) => n % 37 === 5 || n % 41 === 7).length;
    expect(setup.server.ids().length).toBeLessThanOrEqual(300 + faults + 3 * 16);
    expect(await verifyLedger(locateLedger(setup.folders.ledger, undefined))).toMatchObject({ ok: true });
    expect(readdirSync(setup.folders.root)).toEqual(['ledger']);
  });
});
