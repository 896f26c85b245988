import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readConfig, type Verb, type VerbContext } from '../../../src/airbyte/protocol/connector.ts';
import { MessageWriter } from '../../../src/airbyte/protocol/message-writer.ts';
import { connectionStatusMessage } from '../../../src/airbyte/protocol/messages.ts';
import { runConnector } from '../../../src/airbyte/protocol/run-connector.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { configError, UserError } from '../../../src/base/errors.ts';
import { systemRandom } from '../../../src/base/runtime.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { newFolder } from '../../support/new-folder.ts';

const folder = newFolder();

/** Runs `check` of a connector that does this; `fail` is what an uncaught error of the process calls. */
async function check(
  work: (context: VerbContext, fail: (error: unknown) => void) => Promise<string>,
  { isGone = false, words = ['check', '--config', join(folder, 'config.json')] } = {},
) {
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ export_token: 'canary-token' }));
  const said: string[] = [];
  const out = new Writable({
    write(chunk, _encoding, done) {
      if (isGone) return done(Object.assign(new Error('gone'), { code: 'EPIPE' }));
      said.push(String(chunk));
      done();
    },
  });
  out.on('error', () => {});
  const ending = new AbortController();
  const verb: Verb = async (context) =>
    connectionStatusMessage('SUCCEEDED', await work(context, (error) => ending.abort(error)));
  const load = async () => verb;
  const code = await runConnector(
    {
      spec: { requiredFiles: [], load },
      check: { requiredFiles: ['config'], load },
      discover: { requiredFiles: ['config'], load },
    },
    {
      args: words,
      writer: new MessageWriter(out, (error) => ending.abort(error)),
      input: Writable.prototype as never,
      clock: systemClock,
      env: {},
      random: systemRandom,
      signal: ending.signal,
    },
  );
  const messages = said.join('').split('\n').filter(Boolean);
  return { code, messages: messages.map((line) => JSON.parse(line)), text: said.join('') };
}

describe('the process of a connector', () => {
  it('reports a problem of the user or of the network without secrets, and fails for a defect', async () => {
    const user = await check(async () => {
      throw configError('the token canary-token is wrong.');
    });
    expect(user).toMatchObject({ code: 0, messages: [{ connectionStatus: { status: 'FAILED' } }] });
    const fromEnvironment = await check(async (context) => {
      const env = { DFINERY_IMPORT_TOKEN: 'canary-of-env' };
      const rawConfig = { base_url: 'https://api.example.com', service_id: 's' };
      const { importToken } = readConfig(parseDestinationConfig, { ...context, env, rawConfig });
      throw configError(`the token ${importToken.reveal()} is wrong.`);
    });
    expect(fromEnvironment.messages).toMatchObject([{ connectionStatus: { message: 'the token ****** is wrong.' } }]);
    expect(user.text + fromEnvironment.text).not.toContain('canary');
    const machine = await check(async () => {
      throw new UserError('system', 'the disk is full.');
    });
    expect(machine).toMatchObject({ code: 1, messages: [{ trace: { error: { failure_type: 'system_error' } } }] });
  });

  it('fails for an uncaught error, however its work ended', async () => {
    const ended = await check(async (_context, fail) => {
      fail(new TypeError('forgotten'));
      return 'done';
    });
    expect(ended.code).toBe(1);
    expect(ended.messages.at(-1)).toMatchObject({
      trace: { error: { failure_type: 'system_error', internal_message: 'TypeError: forgotten' } },
    });
  });

  it('closes what it opened after an uncaught error', async () => {
    let isClosed = false;
    const ended = await check(async ({ signal }, fail) => {
      const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
      fail(new TypeError('forgotten'));
      await stopped;
      await new Promise((resolve) => setTimeout(resolve, 20));
      isClosed = true;
      throw signal.reason;
    });
    expect([ended.code, isClosed]).toEqual([1, true]);
  });

  it('reports a failure whose cause is a pipe other than its output', async () => {
    const cause = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const failed = await check(async () => {
      throw new Error('the socket broke', { cause });
    });
    expect(failed).toMatchObject({ code: 1, messages: [{ trace: { error: { failure_type: 'system_error' } } }] });
  });

  it('fails when its answer could not be written', async () => {
    expect(await check(async () => 'done', { isGone: true })).toMatchObject({ code: 1, text: '' });
  });

  it.each([
    [[], 'wanted one of spec, check, discover'],
    [['write', '--config', 'c', '--catalog', 'd'], 'wanted one of spec, check, discover'],
    [['check'], 'check needs --config FILE'],
    [['check', '--config'], '--config FILE'],
    [['check', '--config', 'c', '--token=hush'], 'not understood'],
    [['check', '--config', 'c', 'hush'], 'not understood'],
    [['discover', '--config', '/none'], 'configuration file'],
  ])('refuses the words %j, and repeats none of them', async (words, says) => {
    const refused = await check(async () => 'done', { words });
    expect(refused).toMatchObject({ code: 1, messages: [{ trace: { error: { failure_type: 'config_error' } } }] });
    expect(refused.text).toContain(says);
    expect(refused.text).not.toContain('hush');
  });
});
