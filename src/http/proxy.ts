import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent, type AgentOptions, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { isLoopback, withoutBrackets } from '../base/address.ts';
import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';

/**
 * The proxy for an `https` address by HTTPS_PROXY and NO_PROXY, in lower or upper case. Undefined for none, and for
 * loopback: a proxy elsewhere would reach its own. Throws a configuration failure for a proxy that cannot be used.
 */
export function proxyFor(address: string, env: Env): URL | undefined {
  const url = new URL(address);
  if (isLoopback(url.hostname)) return undefined;
  const envValue = (name: string) => env[name.toLowerCase()] || env[name] || '';
  const proxy = envValue('HTTPS_PROXY').trim();
  if (proxy === '' || isExempt(url, envValue('NO_PROXY'))) return undefined;
  const proxyAddress = /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
  try {
    const proxyUrl = new URL(proxyAddress);
    credentialsOf(proxyUrl);
    if (/^https?:\/\/[^/]/i.test(proxyAddress)) return proxyUrl;
  } catch {
    // It is no URL, or its credentials cannot be read.
  }
  throw configError(
    'HTTPS_PROXY is not the address of a proxy: wanted http://host:port, with %25 for a % in a password.',
  );
}

/** True if NO_PROXY names the host, a domain above it, or everything; an entry may end in a port. */
function isExempt({ hostname, port }: URL, noProxy: string): boolean {
  const host = withoutBrackets(hostname);
  const entries = noProxy.toLowerCase().split(/[\s,]+/);
  return entries.some((entry) => {
    if (entry === '*' || entry === host) return true;
    const [, name = '', onlyPort] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry) ?? [];
    if (name === '' || (onlyPort !== undefined && onlyPort !== (port || '443'))) return false;
    return hostname === name || hostname.endsWith(`.${name}`);
  });
}

/** A proxy that gave no connection: it answered with `status`, or `cause` is why it did not answer. */
export class ProxyError extends Error {
  /** Host and port of the proxy. */
  readonly host: string;
  readonly status: number | undefined;
  /** Ours, if the proxy refused to connect: only the user can help. For that of Node the S3 client asks again. */
  readonly code: 'ERR_PROXY_REFUSED' | 'ECONNREFUSED';

  constructor({ host }: URL, status: number | undefined, cause?: Error) {
    super(`the proxy ${host} gave no connection`, { cause });
    this.host = host;
    this.status = status;
    this.code = status === 403 || status === 407 ? 'ERR_PROXY_REFUSED' : 'ECONNREFUSED';
  }
}

/** Longest time (ms) in which a proxy opens a tunnel. */
const MAX_PROXY_TIMEOUT_MS = 9_000;

/**
 * An agent whose TLS connections run through the proxy that the environment has for their host, if any. The proxy sees
 * the name of the host and ciphertext alone.
 */
export class ProxyAgent extends Agent {
  readonly #env: Env;
  readonly #proxyTimeoutMs: number;

  /** `connectTimeoutMs`: how long the client waits for a connection. A silent proxy fails before, and is named. */
  constructor(env: Env, options: AgentOptions, connectTimeoutMs: number) {
    super(options);
    this.#env = env;
    this.#proxyTimeoutMs = Math.min(MAX_PROXY_TIMEOUT_MS, connectTimeoutMs * 0.9);
  }

  /** Throws a configuration failure for a proxy that cannot be used: then the request is not sent. */
  override createConnection(options: ConnectionOptions, callback: (error: Error | null, socket?: Duplex) => void) {
    const host = options.host ?? '';
    const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${options.port ?? 443}`;
    const proxy = proxyFor(`https://${authority}`, this.#env);
    if (proxy === undefined) return super.createConnection(options, callback) as Duplex;
    tunnelTo(proxy, authority, this.#proxyTimeoutMs)
      .then((tunnel) => tlsConnect({ ...options, socket: tunnel }))
      .then((socket) => callback(null, socket), callback);
    return undefined;
  }
}

function tunnelTo(proxy: URL, authority: string, timeout: number): Promise<Duplex> {
  const send = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send({
      hostname: withoutBrackets(proxy.hostname),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      headers: { Host: authority, ...credentialsOf(proxy) },
      agent: false,
      rejectUnauthorized: true,
      timeout,
    });
    request.once('error', (error) => reject(new ProxyError(proxy, undefined, error)));
    request.once('timeout', () => request.destroy(Object.assign(new Error('silent'), { code: 'ETIMEDOUT' })));
    const refuse = (answer: IncomingMessage) => {
      answer.destroy();
      reject(new ProxyError(proxy, answer.statusCode));
    };
    // What answers without a tunnel is a web server.
    request.once('response', refuse);
    request.once('connect', (answer, socket, earlyBytes) => {
      const { statusCode = 0 } = answer;
      if (statusCode >= 200 && statusCode < 300 && earlyBytes.length === 0) {
        socket.setTimeout(0);
        return resolve(socket);
      }
      socket.destroy();
      refuse(answer);
    });
    request.end();
  });
}

/** Throws for a `%` that encodes nothing. */
function credentialsOf({ username, password }: URL): { 'Proxy-Authorization'?: string } {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
