import { describe, expect, it } from 'vitest';
import { ManualClock, settle } from '../../support/clock.ts';
import { type FaultyServer, head, json, type Script, serve, whole } from '../../support/service/faulty-server.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { deletionClient } from '../../support/service/service.ts';
import { until } from '../../support/wait.ts';

const OK = { status: true, code: '20000', message: 'OK', data: true };
const ID = 'person-4711';
const SIGNAL = new AbortController().signal;

let server: FaultyServer;

async function remove(script: Script, options = {}) {
  server = await serve(script, options);
  const service = deletionClient(server.url);
  try {
    return await service.deleteProfile(ID, SIGNAL, false);
  } finally {
    await service.close();
  }
}

describe('network faults during a deletion', () => {
  it.each([
    ['reset', () => [{ reset: true }], 'retry', 'reset'],
    [
      'a success cut before its end',
      () => [{ send: head(200, { 'Content-Length': 999 }) }, { send: JSON.stringify(OK) }, { close: true }],
      'retry',
      'length',
    ],
    [
      'another coding',
      () => whole(200, JSON.stringify(OK), { 'Content-Encoding': 'br' }),
      'undecided',
      'content_encoding',
    ],
    ['64 KiB and more', () => whole(200, `${' '.repeat(70_000)}${JSON.stringify(OK)}`), 'retry', 'odd_body'],
    [
      'a success in another charset',
      () => whole(200, JSON.stringify(OK), { 'Content-Type': 'application/json; charset=iso-8859-1' }),
      'undecided',
      'charset',
    ],
    [
      'a failure in another charset',
      () => whole(429, '<html>', { 'Content-Type': 'text/html; charset=iso-8859-1' }),
      'wait',
      'http_429',
    ],
    ['a redirect', () => whole(307, '', { Location: 'https://elsewhere.example/' }), 'stop', 'redirect'],
    ['an untrusted certificate', () => json(200, OK), 'stop', 'certificate', { tls: selfSigned() }],
  ] as [string, Script, string, string, object?][])('%s', async (_name, script, kind, code, options) => {
    const answer = await remove(script, options);
    expect(answer).toMatchObject({ kind, code });
    expect(JSON.stringify(answer).replace(/127\.0\.0\.1:\d+/, '')).not.toMatch(/4711|canary/);
  });

  it('a silent connection times out after a minute, before the head and within the body', async () => {
    for (const steps of [[{ hold: true }], [{ send: head(200, { 'Content-Length': 60 }) }, { hold: true }]] as const) {
      server = await serve(() => steps);
      const clock = new ManualClock();
      const service = deletionClient(server.url, clock);
      const answering = service.deleteProfile(ID, SIGNAL, false);
      await until(() => server.requests.length === 1);
      clock.pass(59_000);
      await settle();
      clock.pass(1_000);
      expect(await answering).toMatchObject({ kind: 'retry', code: 'timeout', status: undefined });
      await service.close();
    }
  });

  it('an abort rejects with its reason', async () => {
    server = await serve(() => [{ hold: true }]);
    const service = deletionClient(server.url);
    const controller = new AbortController();
    const answering = service.deleteProfile(ID, controller.signal, false);
    await settle(20);
    controller.abort(new Error('enough'));
    await expect(answering).rejects.toThrow('enough');
    await service.close();
  });

  it('a defect is no failure of the network', async () => {
    server = await serve(() => json(200, OK));
    const clock = new ManualClock();
    const service = deletionClient(server.url, clock);
    const answering = service.deleteProfile(ID, SIGNAL, false);
    clock.now = () => {
      throw new TypeError('a defect');
    };
    await expect(answering).rejects.toThrow('a defect');
    await service.close();
  });

  it('an answer carries the limits, Retry-After among them', async () => {
    const reset = Date.now() + 30_000;
    const headers = { 'X-Rate-Limit-Remaining': 0, 'X-Rate-Limit-Reset': reset, 'Retry-After': 50 };
    const waiting = await remove(() => json(429, { status: false, code: '40401', message: 'x' }, headers));
    expect(waiting).toMatchObject({ kind: 'wait', code: '40401', status: 429, quotaReport: { remaining: 0 } });
    expect(waiting.quotaReport.resetAt).toBe(reset);
    expect(waiting.quotaReport.retryAt).toBeGreaterThan(reset + 10_000);
    const done = await remove(() => json(200, OK, headers));
    expect(done).toMatchObject({ kind: 'done', quotaReport: { remaining: 0, resetAt: reset } });
  });
});
