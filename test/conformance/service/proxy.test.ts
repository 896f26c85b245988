import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { networkProblem } from '../../../src/service/http/network.ts';
import { Transport } from '../../../src/service/http/transport.ts';
import { type FaultyServer, startFaultyServer, whole } from '../../support/service/faulty-server.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { CANARY } from '../../support/service/service.ts';

const closing: (() => void)[] = [];
let server: FaultyServer | undefined;
afterEach(async () => {
  for (const close of closing.splice(0)) close();
  await server?.close();
  server = undefined;
});

/** A proxy that answers CONNECT with a status, and where that is 200 connects to `port`, whichever host is requested. */
async function startProxy(status: number, port: number) {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', (head: Buffer) => {
      requests.push(head.toString('latin1'));
      socket.write(`HTTP/1.1 ${status} Told\r\n\r\n`);
      if (status !== 200) return void socket.end();
      const target = connect(port, '127.0.0.1');
      target.on('error', () => {});
      sockets.add(target);
      socket.pipe(target).pipe(socket);
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return { url: `http://kim:se%40cret@127.0.0.1:${(proxy.address() as AddressInfo).port}`, requests };
}

const sendThrough = (proxy: string) => {
  const env = (name: string) => (name === 'HTTPS_PROXY' ? proxy : undefined);
  const transport = new Transport({ baseUrl: 'https://api.example', env, clock: systemClock, keptConnections: 0 });
  const headers = { Authorization: `Bearer ${CANARY}` };
  return transport.send({ path: '/x', headers, body: '{}' }, new AbortController().signal);
};

describe('through a proxy', () => {
  it('requests a tunnel by host name; the proxy never sees the token', async () => {
    server = await startFaultyServer(() => whole(200, 'a\n'), { tls: selfSigned() });
    const proxy = await startProxy(200, server.port);
    const error = await sendThrough(proxy.url).catch((thrown: unknown) => thrown);
    // The tunnel stands and TLS runs in it: its certificate is refused as it would be without a proxy.
    expect(networkProblem(error, 'api.example')).toMatchObject({ code: 'certificate', config: true });
    expect(proxy.requests).toHaveLength(1);
    expect(proxy.requests[0]).toMatch(/^CONNECT api\.example:443 HTTP\/1\.1\r\n/);
    expect(proxy.requests[0]).toContain(`Proxy-Authorization: Basic ${Buffer.from('kim:se@cret').toString('base64')}`);
    expect(proxy.requests[0]).not.toContain(CANARY);
  });

  it.each([
    [407, true],
    [403, true],
    [502, false],
  ])('reports an answer %i of the proxy', async (status, config) => {
    const proxy = await startProxy(status, 1);
    const error = await sendThrough(proxy.url).catch((thrown: unknown) => thrown);
    const trouble = networkProblem(error, 'api.example');
    expect(trouble).toMatchObject({ code: 'proxy', config });
    expect(trouble.message).not.toMatch(/kim|cret/);
  });
});
