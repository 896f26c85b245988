import { getEventListeners } from 'node:events';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { abortable, onAbort } from '../../../src/base/abort.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { IdleTimeout, TimeLimitReached, withinTime } from '../../../src/service/http/abort.ts';
import {
  BadGzip,
  bodyProblem,
  bytesOf,
  codingOf,
  declaredLength,
  gunzip,
  snippet,
} from '../../../src/service/http/body.ts';
import { headerText } from '../../../src/service/http/headers.ts';
import { networkProblem } from '../../../src/service/http/network.ts';
import { ProxyRefused } from '../../../src/service/http/proxy.ts';
import { type AnswerHeaders, type RawAnswer, scopedPath, Truncated } from '../../../src/service/http/transport.ts';
import { ManualClock, settle } from '../../support/service/service.ts';

const never = new Promise<never>(() => {});
const NEVER = new AbortController().signal;
async function* of(...chunks: (string | Uint8Array | Error | Promise<unknown>)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    if (chunk instanceof Error) throw chunk;
    if (chunk instanceof Promise) await chunk;
    else yield Buffer.from(chunk);
  }
}
const answer = (headers: AnswerHeaders, body: AsyncIterable<Uint8Array> = of(), surplus = false): RawAnswer => ({
  status: 200,
  headers,
  body,
  hasTrailingBytes: async () => surplus,
  disconnect: () => {},
});
async function read(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString();
}
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.unreachable('it passed'),
    (error: unknown) => error,
  );

describe('the body headers of an answer', () => {
  it.each([
    [undefined, 'identity'],
    ['', 'identity'],
    [' Identity ', 'identity'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br', undefined],
    ['gzip, gzip', undefined],
    [['gzip', 'br'], 'gzip'],
  ])('with content coding %j are %s', (value, coding) => {
    expect(codingOf(answer({ 'content-encoding': value }))).toBe(coding);
  });

  it.each([
    ['0', 0],
    [' 12 ', 12],
    ['12x', undefined],
    ['x12', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('with length %j are %s', (value, length) => {
    expect(declaredLength(answer({ 'content-length': value }))).toBe(length);
  });
});

describe('the bytes of a body', () => {
  const bytes = (headers: AnswerHeaders, body: AsyncIterable<Uint8Array>, surplus = false) =>
    read(bytesOf(answer(headers, body, surplus), new IdleTimeout(systemClock, 60_000, NEVER)));
  const codeOf = async (work: Promise<unknown>) => bodyProblem(await errorOf(work), 'h').code;

  it('are complete when they have the declared length, neither less nor more', async () => {
    const length = { 'content-length': '4' };
    expect(await bytes(length, of('ab', 'cd'))).toBe('abcd');
    expect(await codeOf(bytes(length, of('abc')))).toBe('length');
    expect(await codeOf(bytes(length, of('abcde')))).toBe('length');
    expect(await codeOf(bytes(length, of('abcd'), true))).toBe('length');
    expect(await codeOf(bytes(length, of('ab', new Truncated('x'))))).toBe('length');
    expect(await codeOf(bytes(length, of('ab', new Error('reset'))))).toBe('reset');
    expect(await codeOf(bytes({}, of('ab', new Truncated('x'))))).toBe('reset');
    expect(await bytes({}, of('ab'), true)).toBe('ab');
    expect(String(await errorOf(bytes(length, of('abc'))))).toContain('3 of 4 declared bytes came');
  });

  it('are decoded, and complete only with the end of the coding', async () => {
    const coded = { 'content-encoding': 'gzip' };
    const packed = gzipSync('rows'.repeat(99));
    expect(await bytes(coded, of(packed))).toBe('rows'.repeat(99));
    expect(await bytes({ ...coded, 'content-length': String(packed.length) }, of(packed))).toBe('rows'.repeat(99));
    expect(await bytes({ ...coded, 'content-length': '0' }, of())).toBe('');
    expect(await codeOf(bytes(coded, of()))).toBe('gzip');
    expect(await codeOf(bytes(coded, of(packed.subarray(0, -1))))).toBe('gzip');
    expect(await codeOf(bytes(coded, of(packed, 'x')))).toBe('gzip');
    expect(await codeOf(bytes(coded, of(packed, Buffer.alloc(3))))).toBe('gzip');
    expect(await codeOf(bytes(coded, of(packed.subarray(0, 9), new Error('reset'))))).toBe('reset');
    expect(await codeOf(bytes({ ...coded, 'content-length': '5' }, of(packed)))).toBe('length');
  });

  it('may be left by their reader, which closes their source', async () => {
    let closed = 0;
    async function* source() {
      try {
        for (;;) yield gzipSync('x'.repeat(100_000));
      } finally {
        closed++;
      }
    }
    for await (const _ of bytesOf(answer({}, source()), new IdleTimeout(systemClock, 60_000, NEVER))) break;
    await settle();
    expect(closed).toBe(1);
    for await (const _ of gunzip(source())) break;
    await settle(40);
    expect(closed).toBe(2);
  });

  it('that cannot be decoded are reported by the error of the coding or of the connection', async () => {
    expect(await errorOf(read(gunzip(of('no gzip at all'))))).toBeInstanceOf(BadGzip);
    const reset = new Error('reset');
    expect(await errorOf(read(gunzip(of(gzipSync('rows').subarray(0, 5), reset))))).toBe(reset);
    expect(await read(gunzip(of(gzipSync('one'), gzipSync(' two'))))).toBe('one two');
    const large = 'x'.repeat(1_000_000);
    expect(await read(gunzip(of(gzipSync(large, { level: 0 }))))).toBe(large);
  });
});

describe('the error of an interrupted body', () => {
  it('has a code, with which log lines begin, and a clause', () => {
    const stalled = new TimeLimitReached(90_000);
    expect(stalled.message).toContain('1 min 30 s');
    expect(bodyProblem(stalled, 'h')).toEqual({ code: 'stall', message: 'h sent no byte for 1 min 30 s' });
    expect(bodyProblem(new BadGzip('cut'), 'h')).toMatchObject({
      code: 'gzip',
      message: expect.stringContaining('(cut)'),
    });
    expect(bodyProblem(new Truncated('x'), 'h')).toEqual({ code: 'reset', message: 'the connection to h broke' });
  });

  it('has its code in the message if it has one', () => {
    const coded = (code: string) => networkProblem(Object.assign(new Error('x'), { code }), 'h').message;
    expect([
      coded('ENOTFOUND'),
      coded('EACCES'),
      coded('CERT_HAS_EXPIRED'),
      coded('ERR_SSL_X'),
      coded('HPE_X'),
    ]).toEqual([
      expect.stringContaining('(ENOTFOUND)'),
      expect.stringContaining('(EACCES)'),
      expect.stringContaining('(CERT_HAS_EXPIRED)'),
      expect.stringContaining('(ERR_SSL_X)'),
      expect.stringContaining('(HPE_X)'),
    ]);
    expect([coded('ODD'), networkProblem('x', 'h').message]).toEqual([
      'the request to h failed (ODD)',
      'the request to h failed (no code)',
    ]);
    const refused = (status: number) => networkProblem(new ProxyRefused(status), 'h');
    expect([403, 404, 407, 502].map((status) => refused(status).config)).toEqual([true, false, true, false]);
    expect(new ProxyRefused(502).message).toContain('502');
  });
});

describe('the idle timeout', () => {
  it('restarts with each byte, and ends with the last', async () => {
    const clock = new ManualClock();
    const idle = new IdleTimeout(clock, 1_000, NEVER);
    for (let i = 0; i < 3; i++) {
      const waiting = idle.waitFor(settle(1).then(() => i));
      expect(clock.pending).toBe(1);
      clock.pass(999);
      expect(await waiting).toBe(i);
      expect(clock.pending).toBe(0);
    }
    const silent = errorOf(idle.waitFor(never));
    clock.pass(1_000);
    expect(await silent).toMatchObject({ afterMs: 1_000 });
    expect([idle.signal.aborted, clock.pending]).toEqual([true, 0]);
  });

  it('rejects with the error of the wait', async () => {
    const idle = new IdleTimeout(new ManualClock(), 1_000, NEVER);
    await expect(idle.waitFor(Promise.reject(new Error('reset')))).rejects.toThrow('reset');
    expect(idle.signal.aborted).toBe(false);
  });

  it('is aborted by a stop until it ends', () => {
    const caller = new AbortController();
    const [heard, ended] = [1, 2].map(() => new IdleTimeout(new ManualClock(), 1_000, caller.signal));
    ended.end();
    caller.abort(new Error('stop'));
    expect([heard.signal.aborted, ended.signal.aborted]).toEqual([true, false]);
    expect(heard.signal.reason).toBe(caller.signal.reason);
    expect(new IdleTimeout(new ManualClock(), 1_000, caller.signal).signal.aborted).toBe(true);
  });
});

describe('an abort', () => {
  it('calls its listener once, at once if it happened before, and no removed listener', () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const leave = onAbort(controller.signal, () => heard.push('left'));
    onAbort(controller.signal, () => heard.push('stayed'));
    leave();
    controller.abort();
    expect(heard).toEqual(['stayed']);
    onAbort(controller.signal, () => heard.push('late'))();
    expect(heard).toEqual(['stayed', 'late']);
  });

  it('ends a wait with its reason, and a wait that ends leaves no listener', async () => {
    const controller = new AbortController();
    expect(await abortable(Promise.resolve(7), controller.signal)).toBe(7);
    await expect(abortable(Promise.reject(new Error('own')), controller.signal)).rejects.toThrow('own');
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    const waiting = abortable(never, controller.signal);
    controller.abort(new Error('stop'));
    await expect(waiting).rejects.toThrow('stop');
  });

  it('ends work with a time limit, as the limit does', async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const context = { clock, signal: controller.signal };
    expect(await withinTime(1_000, context, async (signal) => signal.aborted)).toBe(false);
    expect([clock.pending, getEventListeners(controller.signal, 'abort')]).toEqual([0, []]);
    const signals: AbortSignal[] = [];
    const work = (signal: AbortSignal) => {
      signals.push(signal);
      return never;
    };
    const late = errorOf(withinTime(1_000, context, work));
    clock.pass(999);
    await settle();
    expect(signals[0].aborted).toBe(false);
    clock.pass(1);
    expect(await late).toMatchObject({ code: 'ETIMEDOUT' });
    expect(await late).toBeInstanceOf(TimeLimitReached);
    const stopped = errorOf(withinTime(1_000, context, work));
    controller.abort(new Error('stop'));
    expect(String(await stopped)).toContain('stop');
    expect([signals[1].reason, clock.pending]).toEqual([controller.signal.reason, 0]);
  });
});

describe('the body of a failure', () => {
  it('is read up to 64 KiB and for thirty seconds at most', async () => {
    const clock = new ManualClock();
    expect((await snippet(of('a', 'b'), { clock, signal: NEVER })).toString()).toBe('ab');
    expect((await snippet(of('a', new Error('reset')), { clock, signal: NEVER })).toString()).toBe('a');
    let taken = 0;
    async function* endless() {
      for (;;) {
        taken++;
        yield Buffer.alloc(40_000);
      }
    }
    expect((await snippet(endless(), { clock, signal: NEVER })).length).toBe(65_536);
    expect([taken, clock.pending]).toEqual([2, 0]);
    const slow = snippet(of('begun', never), { clock, signal: NEVER });
    clock.pass(29_999);
    await settle();
    clock.pass(1);
    expect((await slow).toString()).toBe('begun');
  });
});

it('a token is sent unchanged or not at all, and a path encodes its service_id', () => {
  expect(headerText(new Secret('a token~'), 'export_token')).toBe('a token~');
  for (const wrong of ['', 'a\nb', '토큰']) {
    expect(() => headerText(new Secret(wrong), 'export_token')).toThrow(/^export_token is empty/);
  }
  expect(scopedPath('/x', 'a&b=c d')).toBe('/x?service_id=a%26b%3Dc%20d');
  expect(scopedPath('/x', '\ud800')).toBe('/x?service_id=%EF%BF%BD');
});

it('a wait without a result ends by the time limit or by the caller', async () => {
  const { signal } = new AbortController();
  await expect(new IdleTimeout(systemClock, 5, signal).waitFor(never)).rejects.toThrow(TimeLimitReached);
  const caller = new AbortController();
  const stopped = new IdleTimeout(systemClock, 60_000, caller.signal).waitFor(never);
  caller.abort(new Error('stopped'));
  await expect(stopped).rejects.toThrow('stopped');
}, 5_000);
