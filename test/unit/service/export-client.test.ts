import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import type { ExportRefusal } from '../../../src/service/export/protocol.ts';
import { ask, CSV, closeServer, serve } from '../../support/service/faulty-export.ts';
import { CHUNKED, chunks, head, json, type Step, whole } from '../../support/service/faulty-server.ts';
import {
  bodyOf,
  CANARY,
  EXPORT_REQUEST,
  exportService,
  ManualClock,
  OpenQuota,
  settle,
} from '../../support/service/service.ts';
import { until } from '../../support/wait.ts';

afterEach(closeServer);

const signalOf = () => new AbortController().signal;
const refusalOf = async (steps: readonly Step[]) => (await ask(steps)).answer as ExportRefusal;
describe('what the client reports to the quota', () => {
  const reset = Date.now() + 1_800_000;
  const limits = { 'X-Rate-Limit-Remaining': 7, 'X-Rate-Limit-Reset': reset };
  it.each([
    ['data', whole(200, CSV, limits), { status: 200, limited: false }],
    ['a refusal for the limit', json(429, {}, limits), { status: 429, limited: true }],
    ['one under another status', json(400, { message: 'too_many_requests' }, limits), { status: 400, limited: true }],
    ['another refusal', json(500, {}, limits), { status: 500, limited: false }],
  ])('is the status, the limits, and whether the export succeeded: %s', async (_what, steps, heard) => {
    const { answer, quota } = await ask(steps);
    if (answer.kind === 'data') await bodyOf(answer);
    const reported = { remaining: 7, resetAt: reset };
    expect(quota.heads).toEqual([{ ...heard, limits: { ...reported, retryAt: undefined } }]);
    expect(answer.limits).toMatchObject(reported);
    expect(quota.released).toBe(1);
  });
});

describe('an answer that is not data', () => {
  it('is classified by its content', async () => {
    const code = async (steps: readonly Step[]) => (await refusalOf(steps)).code;
    expect(await code(whole(200, '<html>'))).toBe('html_200');
    expect(await code(whole(200, '[1]'))).toBe('json_200');
    expect(await code(whole(200, CSV, { 'Content-Encoding': 'br' }))).toBe('content_encoding');
    expect(await refusalOf(whole(200, CSV, { 'Content-Encoding': 'br' }))).toMatchObject({
      kind: 'retry',
      status: 200,
    });
    expect(await code(json(500, { message: 'own_reason' }))).toBe('own_reason');
    expect(await code(json(500, { message: `a ${CANARY}` }))).toBe('no_reason');
    expect(await code(whole(404, ''))).toBe('not_here');
  });

  it('of a redirect names the origin alone', async () => {
    const steps = whole(302, '', { Location: 'https://login.example/path?secret=1' });
    const { message, code } = await refusalOf(steps);
    expect(code).toBe('redirect');
    expect(message).toContain('https://login.example,');
    expect(message).not.toContain('secret');
  });

  it('that is truncated is retried, with its status', async () => {
    const steps = [{ send: head(200, { 'Content-Length': 60 }) }, { send: '{"mess' }, { end: true }] as const;
    expect(await refusalOf([...steps])).toMatchObject({ kind: 'retry', status: 200 });
  });
});

describe('an export', () => {
  it('through an invalid proxy is never sent, and its slot is released', async () => {
    const env = (name: string) => (name === 'HTTPS_PROXY' ? 'socks5://proxy' : undefined);
    const { service, quota } = exportService('https://api.example', { env });
    await expect(service.exportEvents(EXPORT_REQUEST, signalOf())).rejects.toMatchObject({ kind: 'config' });
    expect(quota).toMatchObject({ entered: 1, released: 1 });
  });

  it('rejects with the reason of a stop before its answer, in a failure, or in its data', async () => {
    for (const steps of [
      [{ hold: true }],
      [{ send: head(500, CHUNKED) }, { send: chunks('{"mess') }, { hold: true }],
      [{ send: head(200, CHUNKED) }, { hold: true }],
    ] as const) {
      const server = await serve(() => steps);
      const controller = new AbortController();
      const { service, quota } = exportService(server.url);
      const sending = service.exportEvents(EXPORT_REQUEST, controller.signal);
      const settled = sending.catch((error: unknown) => error);
      await until(() => server.requests.length === 1);
      await settle(40);
      controller.abort(new Error('stop'));
      expect(String(await settled)).toContain('stop');
      expect([quota.released, service.sent]).toEqual([1, 1]);
      await until(() => getEventListeners(controller.signal, 'abort').length === 0);
    }
  });

  it('fails as a stall, and releases its permit, if its data stops', async () => {
    const server = await serve(() => [{ send: head(200, CHUNKED) }, { send: chunks(CSV) }, { hold: true }]);
    const clock = new ManualClock();
    const quota = new OpenQuota();
    const { service } = exportService(server.url, { clock, quota, stallMs: 1_000 });
    const sending = service.exportEvents(EXPORT_REQUEST, signalOf());
    const answer = await sending;
    const reading = bodyOf(answer).catch((error: unknown) => error);
    for (let i = 0; i < 50 && quota.released === 0; i++) {
      await settle(20);
      clock.pass(1_000);
    }
    expect(await reading).toMatchObject({ kind: 'transient', fault: 'stall' });
    expect([quota.released, clock.pending]).toEqual([1, 0]);
  });

  it('releases its permit once if it is closed unread', async () => {
    const { answer, quota } = await ask([{ send: head(200, CHUNKED) }, { send: chunks(CSV) }, { hold: true }]);
    if (answer.kind !== 'data') return expect.unreachable('no data');
    expect(quota.released).toBe(0);
    await answer.close();
    await answer.close();
    expect(quota.released).toBe(1);
  });

  it('ends when its service is closed, as does the quota', async () => {
    const server = await serve(() => [{ hold: true }]);
    let closed = 0;
    const quota = Object.assign(new OpenQuota(), { close: async () => void closed++ });
    const { service } = exportService(server.url, { quota });
    const sending = service.exportEvents(EXPORT_REQUEST, signalOf());
    await until(() => server.requests.length === 1);
    await service.close();
    expect(await sending).toMatchObject({ kind: 'retry', code: 'reset', limits: { remaining: undefined } });
    expect([closed, quota.released]).toEqual([1, 1]);
  });
});
