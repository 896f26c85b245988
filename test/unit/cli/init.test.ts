import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Prompts, terminalPrompts } from '../../../src/cli/terminal/prompts.ts';
import { expectMode } from '../../support/modes.ts';
import { CliFixture } from '../../support/processes/cli-child.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { SERVICE_ID, TOKENS } from '../../support/service/start-service.ts';

let fixture: CliFixture;
beforeEach(async () => {
  fixture = await CliFixture.start();
});
afterEach(() => fixture.close());

const PLACE = { target: 'duckdb', place: 'events.duckdb' };
const written = () => join(fixture.dir, 'dfinery.json');
const content = () => JSON.parse(readFileSync(written(), 'utf8'));
const run = (prompts?: Prompts, ...more: string[]) => runHere(['init', '--config', written(), ...more], { prompts });

/** A person who gives these answers in turn, by the beginning of the question; nothing and no after them. */
function person(answers: Readonly<Record<string, readonly (string | boolean)[]>>) {
  const asked: string[] = [];
  const left = new Map(Object.entries(answers).map(([start, all]) => [start, [...all]]));
  const answer = (question: string) => {
    asked.push(question);
    const start = [...left.keys()].find((one) => question.startsWith(one)) ?? '';
    return left.get(start)?.shift();
  };
  const prompts: Prompts = {
    text: async (question, defaultAnswer) => String(answer(question) ?? defaultAnswer ?? ''),
    secret: async (question) => String(answer(question) ?? ''),
    confirm: async (question) => answer(question) === true,
  };
  return { asked, prompts };
}

const service = () => ({ Address: [fixture.sim.url], Service: [SERVICE_ID], Export: [TOKENS.export] });

describe('init', () => {
  it('gives scripts the file that it wrote', async () => {
    const { stdout } = await run(person(service()).prompts, '--json');
    expect(JSON.parse(stdout)).toEqual({ v: 1, file: written() });
  });

  it('asks, checks, and writes the file with mode 0600 and without the token', async () => {
    const { asked, prompts } = person(service());
    const { code, stdout, stderr } = await run(prompts);
    expect([code, stdout]).toEqual([0, expect.stringContaining('DFINERY_EXPORT_TOKEN')]);
    expect(asked.map((question) => question.split(' ')[0])).toEqual([
      ...['Address', 'Service', 'Export', 'Where', 'Time', 'Will'],
    ]);
    expect(content()).toEqual({ base_url: fixture.sim.url, service_id: SERVICE_ID, ...PLACE });
    expectMode(written(), 0o600);
    expect(stdout + stderr).not.toContain(TOKENS.export);
    const lines = stdout.replaceAll(` --config ${written()}`, '').replaceAll(written(), 'dfinery.json').split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  it('writes also what the service refuses, and says so', async () => {
    const { prompts } = person({ ...service(), Export: ['canary'], Where: ['duckdb my  lake.duckdb'] });
    const { code, stdout, stderr } = await run(prompts);
    expect([code, stdout]).toEqual([2, expect.stringContaining('does not accept the export token')]);
    expect(stdout + stderr).not.toContain('canary');
    expect(content()).toMatchObject({ base_url: fixture.sim.url, place: 'my  lake.duckdb' });
  });

  it('says of answers that no configuration has what is wrong with the file', async () => {
    const wrong = { ...service(), Address: [`${fixture.sim.url}/api/v1`], Where: ['lake'], Time: ['Seoul'] };
    const { code, stderr } = await run(person(wrong).prompts);
    expect(code).toBe(2);
    for (const text of [
      'dfinery.json is written',
      'base_url is not usable, wanted a text like https://host, without the /api/v1 behind it',
      'target is not usable',
    ])
      expect(stderr).toContain(text);
    expect(content()).toMatchObject({ timezone: 'Seoul' });
  });

  it.each([
    { Address: ['https://user:canary@host'] },
    { Where: ['delta s3://key:canary@bucket/lake'] },
    { Will: [true], Folder: ['s3://key:canary@bucket/ledger'] },
  ])('writes no file with a key in it: %j', async (answers) => {
    const { code, stdout, stderr } = await run(person({ ...service(), ...answers }).prompts);
    expect([code, stderr]).toEqual([2, expect.stringContaining('has a user name or a key in it')]);
    expect(stdout + stderr).not.toContain('canary');
    expect(existsSync(written())).toBe(false);
  });

  it('writes place, zone, and what erasures need', async () => {
    const answers = { ...service(), Where: ['delta lake'], Time: ['Asia/Seoul'], Will: [true] };
    expect((await run(person(answers).prompts)).code).toBe(0);
    expect(content()).toMatchObject({
      ...{ target: 'delta', place: 'lake', timezone: 'Asia/Seoul' },
      erasure: { ledger_dir: 'ledger' },
    });
  });

  it('asks nothing if the file cannot be written', async () => {
    const { asked, prompts } = person(service());
    const { code, stderr } = await runHere(['init', '--config', join(fixture.dir, 'no/x.json')], { prompts });
    expect([code, stderr, asked]).toEqual([2, expect.stringContaining('its folder does not exist'), []]);
  });

  it('replaces a file only if that is confirmed, and needs a terminal', async () => {
    writeFileSync(written(), '{"mine": true}');
    expect(await run(person(service()).prompts)).toMatchObject({ code: 2 });
    expect(content()).toEqual({ mine: true });
    expect(await run(person({ ...service(), [written()]: [true] }).prompts)).toMatchObject({ code: 0 });
    expect(content()).toMatchObject({ base_url: fixture.sim.url });
    expect(await run()).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no terminal here') });
    writeFileSync(written(), `${'\n'.repeat(8)}DUCK`);
    const refused = { code: 2, stderr: expect.stringContaining('is not a configuration') };
    expect(await run(person({ ...service(), [written()]: [true] }).prompts)).toMatchObject(refused);
  });
});

/** Questions in a terminal of their own; `until` waits for what they show. */
function asking() {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const seen = { text: '' };
  output.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text;
  });
  const prompts = terminalPrompts(input, output, new AbortController().signal);
  return { prompts, input, seen, until: (what: string) => expect.poll(() => seen.text).toContain(what) };
}

describe('a question in a terminal', () => {
  it('takes an empty answer for the one that is shown', async () => {
    const { prompts, input, until } = asking();
    const folder = prompts.text('Folder', 'ledger');
    await until('Folder [ledger]: ');
    input.write('\n');
    expect(await folder).toBe('ledger');
  });

  it('never shows a secret', async () => {
    const { prompts, input, seen, until } = asking();
    const token = prompts.secret('Token');
    await until('Token');
    input.write('canary-token\n');
    expect(await token).toBe('canary-token');
    expect(seen.text).not.toContain('canary');
  });

  it.each([
    ['Ctrl-C', '\u0003', 130, 'stopped by SIGINT'],
    ['Ctrl-D', '\u0004', 2, 'nothing was written'],
  ])('ends the command at %s', async (_, key, exit, message) => {
    const { prompts, input, until } = asking();
    const left = run(prompts);
    await until('Address');
    input.write(key);
    expect(await left).toMatchObject({ code: exit, stderr: expect.stringContaining(message) });
  });
});
