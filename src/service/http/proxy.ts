import { request as httpRequest } from 'node:http';
import { Agent, type AgentOptions, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import type { Env } from '../../base/env.ts';
import { configError } from '../../base/errors.ts';
import { isLoopback } from '../../config/base-url.ts';

/**
 * The proxy for an address by HTTPS_PROXY and NO_PROXY (in lower or upper case); undefined for none, and for loopback,
 * since a proxy elsewhere would reach its own. Throws a configuration failure for a proxy that cannot be used.
 */
export function proxyFor(baseUrl: string, env: Env): URL | undefined {
  const url = new URL(baseUrl);
  if (url.protocol !== 'https:' || isLoopback(url.hostname)) return undefined;
  const either = (name: string) => env(name.toLowerCase()) || env(name) || '';
  const proxy = either('HTTPS_PROXY').trim();
  if (proxy === '' || isExempt(url, either('NO_PROXY'))) return undefined;
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
  if (URL.canParse(text) && /^https?:\/\/[^/]/i.test(text)) return new URL(text);
  throw configError('HTTPS_PROXY is not the address of a proxy that can be used here, wanted http://host:port.');
}

/** True if NO_PROXY names the host, a domain above it, or everything; an entry may end in a port. */
function isExempt(url: URL, noProxy: string): boolean {
  const host = url.hostname.toLowerCase();
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const match = /^(.*?)(?::(\d+))?$/.exec(entry);
      const name = (match?.[1] ?? entry).replace(/^\*?\./, '');
      if (match?.[2] !== undefined && match[2] !== port) return false;
      return host === name || host.endsWith(`.${name}`);
    });
}

export class ProxyRefused extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`the proxy answered ${status}`);
    this.status = status;
  }
}

type SocketCallback = (error: Error | null, socket?: Duplex) => void;

/** An agent whose TLS connections run through an HTTP proxy, which sees the host's name and ciphertext alone. */
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
  const send = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send({
      hostname: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      headers: { Host: authority, ...credentials(proxy) },
      agent: false,
      rejectUnauthorized: true,
    });
    request.once('error', reject);
    request.once('connect', (answer, socket, early) => {
      if (answer.statusCode === 200 && early.length === 0) return resolve(socket);
      socket.destroy();
      reject(new ProxyRefused(answer.statusCode ?? 0));
    });
    request.end();
  });
}

function credentials({ username, password }: URL): { 'Proxy-Authorization'?: string } {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
