import { request as httpRequest } from 'node:http';
import { Agent, type AgentOptions, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';

/** The proxy refused to open a tunnel. */
export class ProxyRefused extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`the proxy answered ${status}`);
    this.status = status;
  }
}

type SocketCallback = (error: Error | null, socket?: Duplex) => void;

/** An agent whose TLS connections run through an HTTP proxy: it sees the host's name and ciphertext, nothing else. */
export class TunnelAgent extends Agent {
  readonly #proxy: URL;

  constructor(proxy: URL, options: AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }

  override createConnection(options: ConnectionOptions, callback: SocketCallback): undefined {
    tunnelTo(this.#proxy, `${options.host}:${options.port ?? 443}`).then(
      (socket) => callback(null, tlsConnect({ ...options, socket })),
      (error: Error) => callback(error),
    );
  }
}

function tunnelTo(proxy: URL, authority: string): Promise<Duplex> {
  const request = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const asking = request({
      hostname: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      headers: { Host: authority, ...credentials(proxy) },
      agent: false,
      rejectUnauthorized: true,
    });
    asking.once('error', reject);
    asking.once('connect', (answer, socket, early) => {
      if (answer.statusCode === 200 && early.length === 0) return resolve(socket);
      socket.destroy();
      reject(new ProxyRefused(answer.statusCode ?? 0));
    });
    asking.end();
  });
}

function credentials({ username, password }: URL): { 'Proxy-Authorization'?: string } {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
