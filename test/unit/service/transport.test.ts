import { EventEmitter, getEventListeners, once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { DeletionClient } from '../../../src/service/delete/client.ts';
import { allowedFrom } from '../../../src/service/http/headers.ts';
import { Transport, type TransportOptions } from '../../../src/service/http/transport.ts';
import {
  CHUNKED,
  chunks,
  type FaultyServer,
  head,
  json,
  type Script,
  startFaultyServer,
  whole,
} from '../../support/service/faulty-server.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { ManualClock, settle } from '../../support/service/service.ts';
import { until } from '../../support/wait.ts';

const POST = { path: '/x', headers: { 'Content-Type': 'application/json' }, body: '{}' };
const OK = { status: true, code: '20000', message: 'OK', data: true };
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(script: Script): Promise<FaultyServer> {
  const server = await startFaultyServer(script);
  closing.push(() => server.close());
  return server;
}
/** A server that answers nothing and tells when a connection ends. */
async function silent(greeting = '') {
  const events = new EventEmitter();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', () => events.emit('asked', greeting !== '' && socket.write(greeting)));
    socket.on('close', () => events.emit('closed', sockets.delete(socket)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, events, sockets };
}
function transport(baseUrl: string, more: Partial<TransportOptions> = {}): Transport {
  const made = new Transport({ baseUrl, env: () => undefined, clock: systemClock, keptConnections: 0, ...more });
  closing.push(() => made.close());
  return made;
}
const signalOf = (controller = new AbortController()) => controller.signal;
async function textOf(sending: ReturnType<Transport['send']>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of (await sending).body) parts.push(part);
  return Buffer.concat(parts).toString();
}
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.unreachable('it passed'),
    (error: unknown) => error,
  );

describe('a connection', () => {
  it('that is not established within thirty seconds fails', async () => {
    const { port, sockets } = await silent();
    const clock = new ManualClock();
    let connects = 0;
    const onConnect = () => connects++;
    // Taken, but TLS never begins.
    const tls = errorOf(transport(`https://127.0.0.1:${port}`, { clock, onConnect }).send(POST, signalOf()));
    await until(() => sockets.size === 1);
    clock.pass(29_999);
    await settle();
    expect([clock.pending, connects]).toEqual([1, 0]);
    clock.pass(1);
    expect(await tls).toMatchObject({ code: 'ETIMEDOUT' });
    expect(clock.set).toEqual([30_000]);
    const controller = new AbortController();
    const plain = errorOf(transport(`http://127.0.0.1:${port}`, { clock, onConnect }).send(POST, controller.signal));
    await until(() => connects === 1);
    expect(clock.pending).toBe(0);
    clock.pass(60_000);
    await settle();
    controller.abort(new Error('stop'));
    expect(String(await plain)).toContain('stop');
  });

  it('is opened for each request and closed with it, or kept for the next', async () => {
    const server = await serve(() => whole(200, 'ok'));
    for (const [keptConnections, connections] of [
      [0, [1, 2]],
      [2, [3, 3]],
    ] as const) {
      let connects = 0;
      const made = transport(server.url, { keptConnections, onConnect: () => connects++ });
      expect(await textOf(made.send(POST, signalOf()))).toBe('ok');
      await settle();
      expect(await textOf(made.send(POST, signalOf()))).toBe('ok');
      expect(server.requests.slice(-2).map(({ connection }) => connection)).toEqual(connections);
      expect(connects).toBe(2);
      const kept = server.requests.at(-1)?.headers.connection;
      expect(kept).toBe(keptConnections === 0 ? 'close' : 'keep-alive');
    }
  });

  it('is waited for when no more may be kept', async () => {
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const server = await serve((_request, nth) =>
      nth === 1 ? [{ until: gate }, ...whole(200, 'a')] : whole(200, 'b'),
    );
    const made = transport(server.url, { keptConnections: 1 });
    const [first, second] = [made.send(POST, signalOf()), made.send(POST, signalOf())].map(textOf);
    await until(() => server.requests.length === 1);
    await settle(40);
    expect(server.requests).toHaveLength(1);
    go();
    expect([await first, await second]).toEqual(['a', 'b']);
  });

  it('is closed with its transport, at any stage', async () => {
    const { port, events, sockets } = await silent();
    const made = transport(`http://127.0.0.1:${port}`, { keptConnections: 1 });
    const waiting = [1, 2].map(() => errorOf(made.send(POST, signalOf())));
    await once(events, 'asked');
    await made.close();
    for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(Error);
    await until(() => sockets.size === 0);
    const server = await serve(() => whole(200, 'ok'));
    const again = transport(server.url, { keptConnections: 1 });
    expect(await textOf(again.send(POST, signalOf()))).toBe('ok');
    await again.close();
    expect(await textOf(again.send(POST, signalOf()))).toBe('ok');
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it('is closed by a reader that has read enough', async () => {
    const { port, sockets } = await silent(`${head(200, CHUNKED)}${chunks('rows')}`);
    const answer = await transport(`http://127.0.0.1:${port}`).send(POST, signalOf());
    expect(sockets.size).toBe(1);
    answer.disconnect();
    await until(() => sockets.size === 0);
  });
});

describe('an HTTP request', () => {
  it('goes to the host and path of its base, with its method', async () => {
    const server = await serve(() => whole(200, 'ok', { 'X-One': '1' }));
    for (const base of ['', '/', '/below//']) await textOf(transport(`${server.url}${base}`).send(POST, signalOf()));
    const answer = await transport(server.url).send({ ...POST, method: 'HEAD', body: '' }, signalOf());
    expect(server.requests.map(({ line }) => line)).toEqual([
      'POST /x HTTP/1.1',
      'POST /x HTTP/1.1',
      'POST /below/x HTTP/1.1',
      'HEAD /x HTTP/1.1',
    ]);
    expect(server.requests[0]).toMatchObject({ body: '{}', headers: { 'content-type': 'application/json' } });
    expect([answer.status, answer.headers['x-one'], transport(server.url).host]).toEqual([
      200,
      '1',
      `127.0.0.1:${server.port}`,
    ]);
  });

  it.each([new Error('stop'), 'stop'])('is not sent after a stop, and ends with it: %s', async (reason) => {
    const { port, events, sockets } = await silent();
    const made = transport(`http://127.0.0.1:${port}`);
    const before = new AbortController();
    before.abort(reason);
    expect(await errorOf(made.send(POST, before.signal))).toBe(reason);
    expect(sockets.size).toBe(0);
    const controller = new AbortController();
    const waiting = errorOf(made.send(POST, controller.signal));
    await once(events, 'asked');
    controller.abort(reason);
    expect(await waiting).toBe(reason);
    await until(() => sockets.size === 0);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('leaves no listener when it has ended', async () => {
    const server = await serve(() => whole(200, 'ok'));
    const { signal } = new AbortController();
    await textOf(transport(server.url).send(POST, signal));
    await until(() => getEventListeners(signal, 'abort').length === 0);
  });
});

describe('a deletion request', () => {
  const serviceAt = (baseUrl: string, more = {}) => {
    const service = new DeletionClient({
      baseUrl,
      serviceId: 's',
      importToken: new Secret('token'),
      maxConcurrentRequests: 2,
      clock: systemClock,
      env: () => undefined,
      ...more,
    });
    closing.push(() => service.close());
    return service;
  };

  it('throws without a request if the address of the proxy is invalid', async () => {
    const env = (name: string) => (name === 'HTTPS_PROXY' ? 'socks5://proxy' : undefined);
    const deleting = serviceAt('https://api.example', { env }).deleteProfile('a', signalOf());
    await expect(deleting).rejects.toMatchObject({ kind: 'config', exitCode: 2 });
  });

  it('is not answered after a stop', async () => {
    const controller = new AbortController();
    controller.abort(new Error('stop'));
    const service = serviceAt('http://127.0.0.1:1');
    for (const id of ['', 'a']) await expect(service.deleteProfile(id, controller.signal)).rejects.toThrow('stop');
    expect(await service.deleteProfile('', signalOf())).toMatchObject({ kind: 'rejected', code: 'not_text' });
  });

  it('leaves no listener or timer when it has ended', async () => {
    const server = await serve(() => json(200, OK));
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const service = serviceAt(server.url, { clock });
    expect(await service.deleteProfile('a', signal)).toMatchObject({ kind: 'done' });
    await until(() => getEventListeners(signal, 'abort').length === 0);
    expect([clock.pending, clock.set.includes(60_000)]).toEqual([0, true]);
  });

  it('is undecided if the service is closed while it is sent', async () => {
    const { port, events } = await silent();
    const service = serviceAt(`http://127.0.0.1:${port}`);
    const deleting = service.deleteProfile('a', signalOf());
    await once(events, 'asked');
    await service.close();
    expect(await deleting).toMatchObject({ kind: 'retry', code: 'reset', status: undefined });
  });

  it('is undecided if the answer changes to another protocol', async () => {
    const { port } = await silent(head(101, { Connection: 'Upgrade', Upgrade: 'other' }));
    const answer = await serviceAt(`http://127.0.0.1:${port}`).deleteProfile('a', signalOf());
    expect(answer).toMatchObject({ kind: 'retry', code: 'reset', status: undefined });
  });

  it('that is not found means the address, unless another was deleted there: then it means one id', async () => {
    const server = await serve((_request, nth) => (nth === 2 ? json(200, OK) : whole(404, '')));
    const service = serviceAt(server.url);
    const kinds: string[] = [];
    for (const id of ['a', 'b', 'c']) kinds.push((await service.deleteProfile(id, signalOf())).kind);
    expect(kinds).toEqual(['stop', 'done', 'undecided']);
  });

  it('closes the connection of an endless answer', async () => {
    const { port, sockets } = await silent(`${head(200, CHUNKED)}${chunks('x'.repeat(70_000))}`);
    const answer = await serviceAt(`http://127.0.0.1:${port}`).deleteProfile('a', signalOf());
    expect(answer).toMatchObject({ kind: 'retry', code: 'odd_body' });
    await until(() => sockets.size === 0);
  });

  it('accepts an answer of up to 64 KiB', async () => {
    const of = async (length: number) => {
      const server = await serve(() => whole(200, JSON.stringify(OK).padEnd(length)));
      return (await serviceAt(server.url).deleteProfile('a', signalOf())).kind;
    };
    expect([await of(65_536), await of(65_537)]).toEqual(['done', 'retry']);
  });

  it('without an answer is undecided, with advice if the cause is known', async () => {
    const refused = await serviceAt('http://127.0.0.1:1').deleteProfile('a', signalOf());
    expect(refused.message).toMatch(/^Not sure whether it is deleted: .* \(ECONNREFUSED\)\.$/);
    const server = await startFaultyServer(() => [], { tls: selfSigned() });
    closing.push(() => server.close());
    const untrusted = await serviceAt(server.url).deleteProfile('a', signalOf());
    expect(untrusted).toMatchObject({ kind: 'stop', message: expect.stringMatching(/^The certificate of .*\.$/) });
  });

  it('waits for the later of Reset and Retry-After, or for the one that is given', async () => {
    const now = Date.UTC(2026, 0, 20, 3);
    const clock = { ...systemClock, now: () => now };
    const limited = async (headers: Record<string, string | number>) => {
      const server = await serve(() => json(429, {}, headers));
      const { kind, limits } = await serviceAt(server.url, { clock }).deleteProfile('a', signalOf());
      const until = allowedFrom(limits);
      return [kind, until === undefined ? undefined : until - now];
    };
    const reset = { 'X-Rate-Limit-Reset': now + 30_000 };
    expect(await limited({})).toEqual(['wait', undefined]);
    expect(await limited(reset)).toEqual(['wait', 30_000]);
    expect(await limited({ 'Retry-After': 20 })).toEqual(['wait', 20_000]);
    expect(await limited({ ...reset, 'Retry-After': 20 })).toEqual(['wait', 30_000]);
    expect(await limited({ ...reset, 'Retry-After': 40 })).toEqual(['wait', 40_000]);
  });
});
