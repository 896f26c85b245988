import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type Clock, HOUR_MS, systemClock } from '../../../src/base/clock.ts';
import type { Env } from '../../../src/base/env.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { type CheckVerdict, checkService } from '../../../src/service/check.ts';
import { ManualClock, NOW } from '../../support/clock.ts';
import {
  CHUNKED,
  chunks,
  type FaultyServer,
  head,
  json,
  type Script,
  serve,
  whole,
} from '../../support/service/faulty-server.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { CANARY, logRecorder } from '../../support/service/service.ts';
import { SERVICE_ID } from '../../support/service/start-service.ts';
import { until } from '../../support/wait.ts';

const SIGNAL = new AbortController().signal;
const HEADER =
  '"a, b",df_api_version,df_correction_datetime,df_event_detail_log_id,df_event_log_id,df_server_datetime,df_unified_id,event_name';
const fail = (message: string) => ({ result: 'fail', message });

let server: FaultyServer;

const CLOCK: Clock = { ...systemClock, now: () => NOW };
const probeAt = (baseUrl: string, { clock = CLOCK, env = {} }: { clock?: Clock; env?: Env } = {}, signal = SIGNAL) =>
  checkService(
    { baseUrl, serviceId: SERVICE_ID, exportToken: new Secret(CANARY) },
    { clock, logger: logRecorder().logger, env, signal },
  );

async function probe(script: Script, options = {}) {
  server = await serve(script, options);
  return probeAt(server.url);
}

describe('the verdict on one minimal export', () => {
  const rows: [string, Script, CheckVerdict['kind']][] = [
    ['a header', () => whole(200, `${HEADER}\n`), 'usable'],
    ['a header without a line end', () => whole(200, HEADER), 'usable'],
    [
      'a header, CRLF, BOM, and rows for ever',
      () => [{ send: head(200, CHUNKED) }, { send: chunks(`\uFEFF${HEADER}\r\n1,2\r\n`) }, { hold: true }],
      'usable',
    ],
    ['no byte', () => whole(200, ''), 'usable'],
    ['401', () => json(401, fail('unauthorized_token')), 'config'],
    ['a wrong token inside a 200', () => json(200, fail('unauthorized_token')), 'config'],
    [
      '429',
      () =>
        json(429, fail('too_many_api_requests'), { 'X-Rate-Limit-Reset': NOW + 60_000, 'X-Rate-Limit-Remaining': 0 }),
      'usable',
    ],
    ['400 for the day', () => json(400, fail('exceed_date_range_limit')), 'usable'],
    [
      'a clock of 13 hours ago',
      () => whole(200, HEADER, { Date: new Date(NOW - 13 * HOUR_MS).toUTCString() }),
      'config',
    ],
    ['another table', () => whole(200, 'id,name\n1,2\n'), 'config'],
    ['a page', () => whole(200, '<!doctype html>'), 'config'],
    ['404', () => whole(404, 'no'), 'config'],
    ['a redirect', () => whole(302, '', { Location: 'https://login.example' }), 'config'],
    ['503', () => whole(503, '<html>'), 'later'],
    ['a reset', () => [{ reset: true }], 'later'],
    ['a cut', () => [{ send: head(200, CHUNKED) }, { send: chunks('a,b') }, { close: true }], 'later'],
  ];
  it.each(rows)('for %s', async (name, script, kind) => {
    const verdict = await probe(script);
    expect(verdict).toMatchObject({ kind });
    expect(verdict.message).toMatch(/[.?]$/);
    expect(verdict.message).toMatch(/^[A-Z0-9]/);
    expect(JSON.stringify(verdict)).not.toContain(CANARY);
    expect(server.requests).toHaveLength(['no byte', '404', '503'].includes(name) ? 2 : 1);
  });

  const forEvent = (body: string) => body.includes('no_such_event');
  it.each([
    ['the event alone: the configuration is right', () => whole(200, `${HEADER}\n1,2`), 'usable'],
    ['everything: the configuration is wrong', () => json(400, fail('invalid_parameter')), 'config'],
    ['the event, and the token is wrong', () => json(401, fail('unauthorized_token')), 'config'],
    ['the event, and no more is left', () => json(429, fail('too_many_api_requests')), 'usable'],
  ] as [string, Script, CheckVerdict['kind']][])('when the service refuses %s', async (_name, second, kind) => {
    const verdict = await probe((request, count) =>
      forEvent(request.body) ? json(400, fail('invalid_parameter')) : second(request, count),
    );
    expect(verdict).toMatchObject({ kind });
    expect(verdict.message).toMatch(/[.?]$/);
    const bodies = server.requests.map((request) => JSON.parse(request.body)) ?? [];
    expect(bodies.map((body) => body.events_condition_type)).toEqual(['include', 'all']);
    expect(bodies).toMatchObject([
      { from_date: '2026-01-19', to_date: '2026-01-19' },
      { from_date: '2026-01-18', to_date: '2026-01-19' },
    ]);
    expect(bodies[1]).not.toHaveProperty('events');
  });

  it.each<[string, Script]>([
    ['404', () => whole(404, 'no')],
    ['500', () => json(500, fail('query_error'))],
    ['204', () => [{ send: head(204) }]],
    ['a 200 that fails', () => json(200, fail('client_connection_closed'))],
    ['an empty list', () => json(200, [])],
    ['no byte', () => whole(200, '')],
  ])('is ok where the event that does not exist is answered with %s, and others with a header', async (_, first) => {
    const verdict = await probe((request, count) =>
      forEvent(request.body) ? first(request, count) : whole(200, `${HEADER}\n`),
    );
    expect(verdict).toMatchObject({ kind: 'usable' });
  });

  it('is unreachable for an untrusted certificate and for a closed port', async () => {
    expect(await probe(() => [], { tls: selfSigned() })).toMatchObject({ kind: 'config', code: 'certificate' });
    expect(await probeAt('http://127.0.0.1:1')).toMatchObject({ kind: 'later', code: 'refused' });
  });

  it.each([
    ['request 1', 1, 404, 'usable', 'slow', undefined, /takes connections/],
    [
      'request 2, but refused the event',
      2,
      404,
      'usable',
      'slow',
      7,
      /exist \(not_here\), and no export of all events within/,
    ],
    ['request 2, and failed before', 2, 500, 'later', 'no_reason', 7, /answered 500\. Try again later/],
  ])('comes within five seconds if nothing answers %s', async (_, silent, status, ...verdict) => {
    const quota = { 'X-Rate-Limit-Remaining': 7 };
    server = await serve((_request, count) => (count === silent ? [{ hold: true }] : whole(status, 'no', quota)));
    const clock = new ManualClock();
    const probing = probeAt(server.url, { clock });
    await until(() => server.requests.length === silent);
    clock.pass(4_999);
    const { kind, code, quotaReport, message } = await probing;
    expect([kind, code, quotaReport.remaining, message]).toEqual([
      ...verdict.slice(0, 3),
      expect.stringMatching(verdict[3] as RegExp),
    ]);
  });

  it('is for later where no connection comes about, TLS included, and names a silent proxy', async () => {
    const silent = createServer();
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const clock = new ManualClock();
    const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const probing = probeAt(`https://${address}`, { clock });
    const [socket] = (await once(silent, 'connection')) as [Socket];
    clock.pass(3_999);
    expect(await probing).toMatchObject({ kind: 'later', code: 'connect_timeout' });
    socket.destroy();
    const verdict = await probeAt('https://api.example', { env: { HTTPS_PROXY: address } });
    expect(verdict).toMatchObject({ kind: 'later', code: 'proxy', message: expect.stringContaining(address) });
    silent.close();
  });

  it('rejects with the reason of an abort', async () => {
    server = await serve(() => [{ hold: true }]);
    const controller = new AbortController();
    const probing = probeAt(server.url, {}, controller.signal);
    controller.abort(new Error('enough'));
    await expect(probing).rejects.toThrow('enough');
  });
});
