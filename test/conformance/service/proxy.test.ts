import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { networkProblem } from '../../../src/http/failures.ts';
import { Transport } from '../../../src/http/transport.ts';
import { serve, whole } from '../../support/service/faulty-server.ts';
import { startProxy } from '../../support/service/proxy.ts';
import { selfSigned } from '../../support/service/self-signed.ts';
import { CANARY } from '../../support/service/service.ts';

const sendThrough = (proxy: string) => {
  const env = { HTTPS_PROXY: proxy };
  const transport = new Transport({ baseUrl: 'https://api.example', env, clock: systemClock, keptConnections: 0 });
  const headers = { Authorization: `Bearer ${CANARY}` };
  return transport.send({ method: 'POST', path: '/x', headers, body: '{}' }, new AbortController().signal);
};

describe('through a proxy', () => {
  it.each([200, 201])(
    'requests a tunnel by host name; the proxy, which answers %i, never sees the token',
    async (status) => {
      const server = await serve(() => whole(200, 'a\n'), { tls: selfSigned() });
      const proxy = await startProxy(status, server.port);
      const error = await sendThrough(proxy.url).catch((thrown: unknown) => thrown);
      // The tunnel stands and TLS runs in it: its certificate is refused as it would be without a proxy.
      expect(networkProblem(error, 'api.example')).toMatchObject({ code: 'certificate', needsUser: true });
      expect(proxy.requests).toHaveLength(1);
      expect(proxy.requests[0]).toMatch(/^CONNECT api\.example:443 HTTP\/1\.1\r\n/);
      expect(proxy.requests[0]).toContain(
        `Proxy-Authorization: Basic ${Buffer.from('kim:se@cret').toString('base64')}`,
      );
      expect(proxy.requests[0]).not.toContain(CANARY);
    },
  );

  it.each([
    [407, true],
    [403, true],
    [502, false],
  ])('reports an answer %i of the proxy', async (status, config) => {
    const proxy = await startProxy(status, 1);
    const error = await sendThrough(proxy.url).catch((thrown: unknown) => thrown);
    const trouble = networkProblem(error, 'api.example');
    expect(trouble).toMatchObject({ code: 'proxy', needsUser: config });
    expect(trouble.clause).not.toMatch(/kim|cret/);
  });

  it.each([
    ['that refuses', 'http://127.0.0.1:1', 'the proxy 127.0.0.1:1 of HTTPS_PROXY refused the connection'],
    [
      'whose name is wrong',
      'http://kim:s@proxy.invalid:3128',
      'the name of the proxy proxy.invalid:3128 of HTTPS_PROXY',
    ],
  ])('names a proxy %s, not the service', async (_which, proxy, clause) => {
    const error = await sendThrough(proxy).catch((thrown: unknown) => thrown);
    expect(networkProblem(error, 'api.example')).toMatchObject({
      ...{ code: 'proxy', needsUser: false },
      clause: expect.stringContaining(clause),
    });
  });
});
