import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { MessageWriter } from '../../../src/airbyte/protocol/message-writer.ts';
import { errorTraceMessage } from '../../../src/airbyte/protocol/messages.ts';
import { configError } from '../../../src/base/errors.ts';

/** Takes a chunk only when told to. */
function slowReader() {
  const waiting: (() => void)[] = [];
  let text = '';
  const out = new Writable({
    write(chunk: Buffer, _encoding, done) {
      waiting.push(() => {
        text += chunk.toString();
        done();
      });
    },
  });
  const take = async (times = 1) => {
    for (let i = 0; i < times; i++) {
      waiting.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { out, take, text: () => text };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));
const settled = async (promise: Promise<unknown>) => {
  let is = false;
  promise.then(() => {
    is = true;
  });
  await tick();
  return is;
};

describe('the writer', () => {
  it('writes messages and bytes in the order of the calls', async () => {
    const { out, take, text } = slowReader();
    const writer = new MessageWriter(out);
    void writer.writeLine('one');
    void writer.queueAndDrain(Buffer.from('two\n'));
    await take(2);
    expect(text()).toBe('one\ntwo\n');
  });

  it('makes callers wait once a megabyte is queued', async () => {
    const { out, take } = slowReader();
    const writer = new MessageWriter(out);
    const line = 'x'.repeat(100_000);
    const waits = [];
    for (let i = 0; i < 11; i++) waits.push(writer.writeLine(line));
    expect(await settled(waits[9])).toBe(true);
    expect(await settled(waits[10])).toBe(false);
    await take(11);
    expect(await settled(waits[10])).toBe(true);
  });

  it('rejects writes after the reader closed the pipe, and reports it once', async () => {
    const out = new Writable({
      write(_chunk, _encoding, done) {
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      },
    });
    const heard: unknown[] = [];
    const writer = new MessageWriter(out, (error) => heard.push(error));
    await expect(writer.queueAndDrain(Buffer.from('x\n'))).rejects.toThrow('EPIPE');
    await expect(writer.writeLine('y')).rejects.toThrow('EPIPE');
    await expect(writer.drain()).rejects.toThrow('EPIPE');
    expect(heard).toHaveLength(1);
  });
});

describe('a trace', () => {
  const mask = (text: string) => text.replaceAll('hush', '******');

  it('has a message for the user and one for maintainers, both masked', () => {
    const cause = new Error('not taken: hush');
    const where = { day: '2026-01-15', row: 3 };
    const error = configError('Wrong token hush.', { detail: 'got hush', where, cause });
    const text = JSON.stringify(
      errorTraceMessage(error, 1_700_000_000_000, mask, { name: 'events', namespace: 'shop' }),
    );
    expect(JSON.parse(text).trace).toMatchObject({
      type: 'ERROR',
      emitted_at: 1_700_000_000_000,
      error: {
        message: 'Wrong token ******.',
        internal_message: 'got ****** (day 2026-01-15, row 3)',
        failure_type: 'config_error',
        stream_descriptor: { name: 'events', namespace: 'shop' },
      },
    });
    expect(text).toContain('caused by Error: not taken: ******');
    expect(text).not.toContain('hush');
  });

  it('never quotes the text of a parse error', () => {
    let thrown: unknown;
    try {
      JSON.parse('somebody@example.com');
    } catch (error) {
      thrown = error;
    }
    const text = JSON.stringify(errorTraceMessage(thrown, 1, mask));
    expect(text).toContain('system_error');
    expect(text).not.toContain('somebody');
  });
});
