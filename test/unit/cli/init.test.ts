import { existsSync, mkdtempSync, promises, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { type Prompts, terminalPrompts } from '../../../src/cli/prompts.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';
import type { TestService } from '../../support/service/test-service.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let sim: TestService;
let folder: string;
beforeAll(async () => {
  sim = await startTestSimulator({}, { clock: systemClock, rowsPerDay: 5 });
});
afterAll(() => sim.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-init-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const written = () => join(folder, 'dfinery.json');
const given = (more: Readonly<Record<string, string>> = {}) => ({ DFINERY_SPOOL_DIR: folder, ...more });
const whole = () => ['--yes', '--base-url', sim.url, '--service-id', SERVICE_ID];

async function run(env: Readonly<Record<string, string>>, words: readonly string[], prompts?: Prompts) {
  const { code, stdout, stderr } = await runHere(['init', '--config', written(), ...words], { env, prompts });
  return { code, text: `${stderr}${stdout}` };
}

/** A person who answers so, and what was asked. */
function person(answers: Readonly<Record<string, string | boolean>>) {
  const asked: string[] = [];
  const answer = (question: string) => {
    asked.push(question);
    return Object.entries(answers).find(([start]) => question.startsWith(start))?.[1] ?? '';
  };
  const prompts: Prompts = {
    text: async (question) => String(answer(question)),
    secret: async (question) => String(answer(question)),
    confirm: async (question) => answer(question) === true,
  };
  return { asked, prompts };
}

describe('init', () => {
  it('asks, checks, and writes the file with mode 0600 and without the token', async () => {
    const { asked, prompts } = person({ Address: sim.url, Service: SERVICE_ID, Export: TOKENS.export });
    const { code, text } = await run(given(), [], prompts);
    expect([code, text]).toEqual([0, expect.stringContaining('DFINERY_EXPORT_TOKEN')]);
    expect(asked).toHaveLength(3);
    expect(JSON.parse(readFileSync(written(), 'utf8'))).toEqual({ base_url: sim.url, service_id: SERVICE_ID });
    expect(statSync(written()).mode & 0o777).toBe(0o600);
    expect(text).not.toContain(TOKENS.export);
  });

  it('says how to go on in lines of 80 columns at most', async () => {
    const { code, stdout } = await runHere(['init', '--config', written(), ...whole()], {
      env: given({ DFINERY_EXPORT_TOKEN: TOKENS.export }),
    });
    const shown = stdout.replaceAll(` --config ${written()}`, '').replaceAll(written(), 'dfinery.json');
    expect([code, shown]).toEqual([0, expect.stringContaining('How to go on')]);
    expect(shown.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('does not overwrite a file that was created while it asked', async () => {
    const { prompts } = person({ Address: sim.url, Service: SERVICE_ID });
    const secret = async () => {
      writeFileSync(written(), 'theirs');
      return TOKENS.export;
    };
    const { code, text } = await run(given(), [], { ...prompts, secret });
    expect([code, text]).toEqual([2, expect.stringContaining('was created by another process')]);
    expect(readFileSync(written(), 'utf8')).toBe('theirs');
  });

  it('writes the file on a file system without hard links', async () => {
    const noLinks = () => Promise.reject(systemError('EPERM'));
    const work = () => run(given({ DFINERY_EXPORT_TOKEN: TOKENS.export }), whole());
    expect(await withCall(promises, 'link', noLinks, work)).toMatchObject({ code: 0 });
    expect(existsSync(written())).toBe(true);
  });

  it('asks nothing with --yes: options and environment suffice, and missing keys are named', async () => {
    expect(await run(given({ DFINERY_EXPORT_TOKEN: TOKENS.export }), whole())).toMatchObject({ code: 0 });
    expect(existsSync(written())).toBe(true);
    rmSync(written());
    const { code, text } = await run(given(), ['--yes', '--base-url', sim.url]);
    expect([code, text]).toEqual([2, expect.stringContaining('--service-id or DFINERY_SERVICE_ID')]);
    expect(text).toContain('DFINERY_EXPORT_TOKEN (or DFINERY_EXPORT_TOKEN_FILE)');
    expect(await run(given(), [])).toMatchObject({ code: 2, text: expect.stringContaining('no terminal here') });
    expect(existsSync(written())).toBe(false);
  });

  it('writes nothing when the check fails', async () => {
    const { code, text } = await run(given({ DFINERY_EXPORT_TOKEN: 'canary-wrong' }), whole());
    expect([code, text]).toEqual([2, expect.stringContaining('was not written')]);
    expect(text).not.toContain('canary-wrong');
    const away = ['--yes', '--base-url', 'http://127.0.0.1:9', '--service-id', 'x'];
    expect(await run(given({ DFINERY_EXPORT_TOKEN: 'x' }), away)).toMatchObject({ code: 3 });
    expect(existsSync(written())).toBe(false);
  });

  it('replaces a file only with --overwrite', async () => {
    const env = given({ DFINERY_EXPORT_TOKEN: TOKENS.export });
    writeFileSync(written(), '{"mine": true}');
    expect(await run(env, whole())).toMatchObject({ code: 2, text: expect.stringContaining('--overwrite') });
    const no = person({ Address: sim.url, Service: SERVICE_ID });
    expect(await run(env, [], no.prompts)).toMatchObject({ code: 2 });
    expect(readFileSync(written(), 'utf8')).toBe('{"mine": true}');
    expect(await run(env, [...whole(), '--overwrite'])).toMatchObject({ code: 0 });
    expect(JSON.parse(readFileSync(written(), 'utf8'))).toEqual({ base_url: sim.url, service_id: SERVICE_ID });
  });

  /** Questions in a terminal of their own; `until` waits for what they show. */
  function asking() {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const seen = { text: '' };
    output.setEncoding('utf8').on('data', (text: string) => {
      seen.text += text;
    });
    const prompts = terminalPrompts({ input, output, signal: new AbortController().signal });
    return { prompts, input, seen, until: (what: string) => expect.poll(() => seen.text).toContain(what) };
  }

  it('prompts in a terminal, repeats a prompt after an invalid answer, and never prints the token', async () => {
    const first = asking();
    const address = first.prompts.text('Address', undefined, (answer) => (answer === 'b' ? undefined : 'not that'));
    await first.until('Address');
    first.input.write('a\n');
    await first.until('not that');
    first.input.write('\u007fb\n');
    expect(await address).toBe('b');

    const second = asking();
    const token = second.prompts.secret('Token');
    await second.until('Token');
    second.input.write('canary-token\n');
    expect(await token).toBe('canary-token');
    expect(second.seen.text).not.toContain('canary');

    const third = asking();
    const left = third.prompts.confirm('Replace');
    await third.until('Replace');
    third.input.write('\u0003');
    await expect(left).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('nothing was written') });
  });
});
