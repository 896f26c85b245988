import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { destination } from '../../../src/airbyte/destination/connector.ts';
import { runConnector } from '../../../src/airbyte/protocol/entrypoint.ts';
import { MessageWriter } from '../../../src/airbyte/protocol/writer.ts';

import {
  type Answer,
  code,
  json,
  people,
  quickClock,
  record,
  SUCCESS,
  setUpDeletions,
  state,
  write,
} from '../../support/deletion/deletions.ts';

const SLOW_MS = 15;

const setup = setUpDeletions({ service_id: 's', import_token: 'tok-1234' });

const inLog = { ledger_dir: undefined, ledger_key: 'k'.repeat(32) };
const count = (text: string, part: string): number => text.split(part).length - 1;

/** Runs `write` before a reader that takes each piece only after a while; `taken` is what it has by now. */
async function writeSlowly(input: readonly string[], taken: (text: string) => void): Promise<number> {
  let text = '';
  const out = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, done) {
      setTimeout(() => {
        text += chunk.toString();
        taken(text);
        done();
      }, SLOW_MS);
    },
  });
  return runConnector(destination, {
    words: [
      'write',
      '--config',
      setup.files.write(setup.config(inLog)),
      '--catalog',
      setup.files.write(people(), 'txt'),
    ],
    writer: new MessageWriter(out),
    input: (async function* () {
      for (const line of input) yield Buffer.from(`${line}\n`);
    })(),
    clock: quickClock(),
    env: () => undefined,
    random: () => 0.5,
    signal: new AbortController().signal,
    onUncaught: () => () => {},
  });
}

describe('a deletion request', () => {
  it('is sent only after its ledger line was written, however slow the reader is', async () => {
    let text = '';
    const linesAtRequest: number[] = [];
    setup.answer = (_d, response) => {
      linesAtRequest.push(count(text, '\\"kind\\":\\"before\\"'));
      json(response, SUCCESS);
    };
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const exit = await writeSlowly([...ids.map((id) => record(id)), state(1)], (taken) => {
      text = taken;
    });
    expect(exit).toBe(0);
    expect(linesAtRequest).toHaveLength(5);
    for (const [i, lines] of linesAtRequest.entries()) expect(lines, `request ${i + 1}`).toBeGreaterThanOrEqual(i + 1);
  });
});

describe('a state', () => {
  it('is emitted only when the answers before it are in the ledger on disk', async () => {
    const seen: number[] = [];
    const onText = (text: string) => {
      if (!text.includes('"type":"STATE"') || !existsSync(setup.folders.ledger)) return;
      const [name = ''] = readdirSync(setup.folders.ledger).filter((one) => one.endsWith('.jsonl'));
      seen.push(count(readFileSync(join(setup.folders.ledger, name), 'utf8'), '"kind":"after"'));
    };
    const input = [record('a'), state(1), record('b'), state(2), record('c'), state(3)];
    const output = await write({ files: setup.files, config: setup.config(), input, onText });
    expect(output.of('STATE')).toHaveLength(3);
    for (const [i, lines] of seen.entries()) expect(lines, `state ${i + 1}`).toBeGreaterThanOrEqual(i + 1);
    expect(seen.length).toBeGreaterThan(0);
  });

  it('follows the answers before it in the log, too', async () => {
    const output = await write({
      files: setup.files,
      config: setup.config(inLog),
      input: [record('a'), state(1), record('b'), state(2)],
    });
    const [first, second] = [output.text.indexOf('"type":"STATE"'), output.text.lastIndexOf('"type":"STATE"')];
    expect(count(output.text.slice(0, first), '\\"kind\\":\\"after\\"')).toBe(1);
    expect(count(output.text.slice(0, second), '\\"kind\\":\\"after\\"')).toBe(2);
  });
});

describe('a wait for the rate limit', () => {
  it.each<[string, Answer]>([
    ['HTTP 429', (_d, response) => code(response, '40401', 429)],
    ['40401 in a 200', (_d, response) => code(response, '40401')],
  ])('is not an attempt: an id that waited many times is still deleted (%s)', async (_name, wait) => {
    setup.answer = (deletion, response, nth) => (nth <= 20 ? wait(deletion, response, nth) : json(response, SUCCESS));
    const output = await write({ files: setup.files, config: setup.config(), input: [record('a'), state(1)] });
    expect(output.code).toBe(0);
    expect(setup.server.ids()).toHaveLength(21);
    const attempts = setup.folders.ledgerLines().filter(({ kind }) => kind === 'before');
    expect(new Set(attempts.map(({ attempt }) => attempt))).toEqual(new Set([1]));
    expect(output.of('STATE')).toHaveLength(1);
  });

  it.each([
    ['from the first request on', 'nobody', 0],
    ['after a first deletion', 'a', 1],
  ])('that does not end stops the run after two hours of one minute each: %s', async (_name, only, done) => {
    setup.answer = ({ id }, response) => (id === only ? json(response, SUCCESS) : code(response, '40401', 429));
    const clock = quickClock();
    const input = [...['a', 'b', 'c', 'd'].map((id) => record(id)), state(1)];
    const config = setup.config({ max_concurrent_requests: 2 });
    const output = await write({ files: setup.files, config, input, clock });
    expect(output.code).toBe(1);
    expect(output.of('STATE')).toEqual([]);
    expect(output.errors()[0].message).toMatch(/left \d+ undecided/);
    expect(setup.server.ids().length).toBeGreaterThanOrEqual(done + 120);
    // Two requests are in progress at most.
    expect(setup.server.ids().length).toBeLessThanOrEqual(done + 2 * 120);
    const minutes = (clock.now() - quickClock().now()) / 60_000;
    expect(minutes).toBeGreaterThan(110);
    expect(minutes).toBeLessThan(130);
  });

  it('begins with every answer so far in the ledger on disk', async () => {
    setup.answer = ({ id }, response, nth) => {
      if (id === 'b' && nth < 5) code(response, '40401', 429);
      else if (id === 'a') json(response, SUCCESS);
      else setTimeout(() => json(response, SUCCESS), SLOW_MS);
    };
    const clock = quickClock();
    const missing = () =>
      setup.server.ids().length - setup.folders.ledgerLines().filter(({ kind }) => kind === 'after').length;
    let waits = 0;
    const waiting = {
      ...clock,
      now: () => clock.now(),
      async sleep(ms: number, signal?: AbortSignal) {
        if (ms > 10_000) {
          waits++;
          const end = clock.now() + ms;
          // Another wait may end first and move the clock: this one is over then, and requests go out again.
          await expect.poll(() => clock.now() >= end || missing() === 0, { timeout: 60_000 }).toBe(true);
        }
        return clock.sleep(ms, signal);
      },
    };
    const input = [...['a', 'b', 'c', 'd', 'e'].map((id) => record(id)), state(1)];
    const output = await write({ files: setup.files, config: setup.config(), input, clock: waiting });
    expect(output.code).toBe(0);
    expect(waits).toBeGreaterThan(0);
  });
});

describe('the cap on deletions', () => {
  it('counts the ids about to be requested, without those that an unfinished run has deleted', async () => {
    const input = [...['a', 'b', 'c'].map((id) => record(id)), state(1)];
    setup.answer = ({ id }, response) => (id === 'c' ? code(response, '40201') : json(response, SUCCESS));
    await write({ files: setup.files, config: setup.config({ max_concurrent_requests: 1 }), input });
    setup.answer = (_d, response) => json(response, SUCCESS);
    const stopped = await write({ files: setup.files, config: setup.config({ max_deletions_per_sync: 0 }), input });
    expect(stopped.errors()[0].message).toContain('1 profile would be deleted');
    const output = await write({ files: setup.files, config: setup.config({ max_deletions_per_sync: 1 }), input });
    expect(output.code).toBe(0);
    expect(setup.server.ids()).toEqual(['a', 'b', 'c', 'c']);
  });
});
