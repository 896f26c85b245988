import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { networkProblem } from '../../../src/http/failures.ts';
import { proxyFor } from '../../../src/http/proxy.ts';
import { Transport, type TransportOptions } from '../../../src/http/transport.ts';
import { reasonIn } from '../../../src/service/export/content.ts';
import { readQuotaReport } from '../../../src/service/quota-report.ts';
import { ManualClock, settle } from '../../support/clock.ts';
import { serve, whole } from '../../support/service/faulty-server.ts';
import { deferred, until } from '../../support/wait.ts';

const NOW = Date.UTC(2026, 0, 20, 3);
const MINUTE = 60_000;
const NEVER = new AbortController().signal;

const POST = { method: 'POST' as const, path: '/x', headers: {}, body: '{}' };
const transport = (baseUrl: string, more: Partial<TransportOptions> = {}) => {
  const opened = new Transport({ baseUrl, env: {}, clock: systemClock, keptConnections: 0, ...more });
  onTestFinished(() => opened.close());
  return opened;
};

describe('limit headers', () => {
  const LATER = NOW + MINUTE;
  it.each<[string, Record<string, string>, (number | undefined)?, (number | undefined)?, number?]>([
    ['milliseconds', { 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': `${LATER}` }, 7, LATER],
    ['seconds', { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': `${LATER / 1e3}` }, 0, LATER],
    ['a reset that is over', { 'x-ratelimit-reset': `${NOW}` }],
    ['nonsense', { 'x-ratelimit-remaining': '-1', 'x-ratelimit-reset': 'soon', 'retry-after': 'later' }],
    ['Retry-After in seconds', { 'retry-after': '60' }, undefined, undefined, LATER],
    ['Retry-After of zero', { 'retry-after': '0' }],
    ['Retry-After as a date', { 'retry-after': new Date(LATER).toUTCString() }, undefined, undefined, LATER],
  ])('are read: %s', (_title, headers, remaining, resetAt, retryAt) => {
    expect(readQuotaReport(headers, NOW)).toEqual({ remaining, resetAt, retryAt });
  });
});

describe('the proxy for an address', () => {
  const PROXY = 'http://proxy.example:3128';
  const proxyOf = (url: string, values: Record<string, string>) => proxyFor(url, values)?.href;

  it.each<[url: string, values: Record<string, string>, proxy: string | undefined]>([
    ['https://api.example', { HTTPS_PROXY: PROXY }, `${PROXY}/`],
    ['https://api.example', { https_proxy: PROXY, HTTPS_PROXY: 'http://other' }, `${PROXY}/`],
    ['https://api.example', { HTTPS_PROXY: ' proxy.example:3128 ' }, `${PROXY}/`],
    ['https://api.example', { HTTP_PROXY: PROXY }, undefined],
    ['https://localhost', { HTTPS_PROXY: PROXY }, undefined],
  ])('%s with %j', (url, values, proxy) => {
    expect(proxyOf(url, values)).toBe(proxy);
  });

  it.each<[url: string, list: string, isExempt: boolean]>([
    ['https://api.example', 'other, API.EXAMPLE', true],
    ['https://api.example', '.example', true],
    ['https://api.example', '*.example', true],
    ['https://api.example', '*', true],
    ['https://api.example', 'api.example:443', true],
    ['https://api.example', 'api.example:8443', false],
    ['https://api.example', 'xample', false],
    ['https://[2001:db8::1]', '2001:db8::1', true],
    ['https://a.api.example', 'a.api', false],
  ])('%s is exempt by NO_PROXY %j: %s', (url, list, isExempt) => {
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, NO_PROXY: list }) === undefined).toBe(isExempt);
  });

  it.each(['socks5://proxy:1080', 'http://', 'http://a b', 'http://kim:50%@h'])(
    '%s is refused without printing it',
    async (text) => {
      await expect(transport('https://api.example', { env: { HTTPS_PROXY: text } }).send(POST, NEVER)).rejects.toThrow(
        /^HTTPS_PROXY is not the address of a proxy: [^@]*%25 for a % in a password\.$/,
      );
    },
  );
});

describe('the reason of a failure', () => {
  it.each([
    ['{"result":"fail","message":"QUERY_ERROR"}', 'query_error'],
    ['{"message":"two words","code":"a_code"}', 'a_code'],
    ['{"error":{"code":"exceed_date_range_limit","message":"Too old."}}', 'exceed_date_range_limit'],
    ['\uFEFF "Query_Error"\r\n', 'query_error'],
    ['{"message":"Row 17 of user kim@example.com"}', undefined],
    ['{"message":"token_secret_x"}', undefined],
    [`{"message":"${'a'.repeat(61)}"}`, undefined],
    ['[null]', undefined],
    ['query_error and more', undefined],
  ])('is read from %s', (text, reason) => {
    expect(reasonIn(text, 'secret')).toBe(reason);
  });
});

it.each<[code: string, kind: string, needsUser: boolean]>([
  ['ENOTFOUND', 'dns', false],
  ['ECONNREFUSED', 'refused', false],
  ['EHOSTUNREACH', 'unreachable', false],
  ['EPROTO', 'tls', false],
  ['CERT_HAS_EXPIRED', 'certificate', true],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'certificate', true],
  ['HPE_INVALID_CONSTANT', 'protocol', false],
  ['EPIPE', 'reset', false],
  ['ETIMEDOUT', 'reset', false],
  ['ODD', 'network', false],
])('the network error %s of a connection that stood is %s', (code, kind, needsUser) => {
  const problem = networkProblem(Object.assign(new Error('x'), { code, syscall: 'read' }), 'api.example');
  expect(problem).toMatchObject({ code: kind, needsUser });
  expect(problem.clause).toContain('api.example');
  expect(problem.clause).toMatch(/[^.]$/);
});

describe('a connection', () => {
  it('that is not established within thirty seconds fails', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const clock = new ManualClock();
    const { port } = server.address() as AddressInfo;
    // Taken, but TLS never begins.
    const sending = transport(`https://127.0.0.1:${port}`, { clock }).send(POST, NEVER);
    const failed = expect(sending).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    await until(() => clock.pending === 1);
    clock.pass(29_999);
    await settle();
    expect(clock.pending).toBe(1);
    clock.pass(1);
    await failed;
  });

  it('that a waiting request takes over is established, however long the answer takes', async () => {
    const clock = new ManualClock();
    const { promise: second, resolve: answerSecond } = deferred();
    const server = await serve((_, nth) => [...(nth === 2 ? [{ until: second }] : []), ...whole(200, 'ok')]);
    const made = transport(server.url, { clock, keptConnections: 1 });
    const read = async () => {
      for await (const _ of (await made.send(POST, NEVER)).bytes());
    };
    const both = Promise.all([read(), read()]);
    await until(() => server.requests.length === 2);
    clock.pass(30_000);
    answerSecond();
    await both;
  });

  it.each([
    [0, 2],
    [2, 1],
  ])('is kept for the next request if %i may be kept', async (kept, connections) => {
    const server = await serve(() => whole(200, 'ok'));
    const made = transport(`${server.url}/below//`, { keptConnections: kept });
    for (let i = 0; i < 2; i++) {
      for await (const _ of (await made.send(POST, NEVER)).bytes());
      await settle();
    }
    expect(new Set(server.requests.map(({ connection }) => connection)).size).toBe(connections);
    expect(server.requests[0].line).toBe('POST /below/x HTTP/1.1');
  });
});
