// This folder: HTTP for both operations: connections, proxies, bodies, limit headers.

import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Clock, nextTurn } from '../../base/clock.ts';
import type { Env } from '../../base/env.ts';
import { ProxyAgent, proxyFor } from './proxy.ts';

export interface OutgoingRequest {
  readonly method: 'POST' | 'HEAD';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const scopedPath = (path: string, serviceId: string): string =>
  `${path}?service_id=${encodeURIComponent(Buffer.from(serviceId).toString())}`;

export interface RawAnswer {
  readonly status: number;
  /** Headers of the answer, by names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** The body, which `bytesOf` reads. */
  readonly stream: IncomingMessage;
  /** The error of the connection so far. */
  readonly failure: () => Error | undefined;
  /** Closes the connection in any state. */
  disconnect(): void;
}

/** The server closed the connection, without an error, before the answer was complete. */
export class Truncated extends Error {}

const CONNECT_TIMEOUT_MS = 30_000;
/** Header fields of an answer, all together; 16 KB is Node's own limit, which cookies of a gateway can exceed. */
const MAX_HEADER_BYTES = 64 * 1024;
/**
 * Bytes of a body that are read ahead of its reader: with Node's own 16 KiB reading stops and starts at every chunk.
 */
const READ_AHEAD_BYTES = 1 << 20;
/** Turns of the event loop until Node has told what it knows of a connection. */
export const TURNS = 3;

export interface TransportOptions {
  readonly baseUrl: string;
  readonly env: Env;
  readonly clock: Clock;
  /** Connections kept alive between requests; 0: each request opens and closes its own connection. */
  readonly keptConnections: number;
  /** Called whenever a connection is established, TLS included. */
  readonly onConnect?: (() => void) | undefined;
}

/**
 * The HTTP client of both operations. It sends requests to one origin only and does not follow redirects. It uses
 * Node's own client. undici 7 ends the process by an assertion when a connection closes while its reader is busy
 * (nodejs/undici#5360). It also takes a reset for a clean end of a body without a length. undici 8 needs Node 22.
 */
export class Transport {
  readonly #options: TransportOptions;
  readonly #base: URL;
  readonly #requests = new Set<ClientRequest>();
  #agent: HttpAgent | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#base = new URL(options.baseUrl);
  }

  get host(): string {
    return this.#base.host;
  }

  /** Rejects with an error of Node, with the signal's reason, or with a configuration failure for a bad proxy. */
  async send(outgoing: OutgoingRequest, signal: AbortSignal): Promise<RawAnswer> {
    signal.throwIfAborted();
    const { protocol, hostname, port, pathname } = this.#base;
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      method: outgoing.method,
      path: `${pathname.replace(/\/+$/, '')}${outgoing.path}`,
      headers: outgoing.headers,
      agent: this.#agentFor(protocol),
      maxHeaderSize: MAX_HEADER_BYTES,
      signal,
    });
    let failure: Error | undefined;
    request.once('close', () => this.#requests.delete(request));
    this.#requests.add(request);
    this.#watchConnection(request);
    const stream = await new Promise<IncomingMessage>((resolve, reject) => {
      request.on('error', (error) => {
        failure ??= error;
        reject(signal.aborted ? signal.reason : error);
      });
      // Node emits no error where it closes the connection by itself, as after a 101.
      request.once('close', () => reject(new Truncated('the connection was closed without an answer')));
      request.once('response', resolve);
      request.end(outgoing.body);
    });
    // The reader of the body receives this error.
    stream.on('error', () => {});
    const { statusCode: status = 0, headers } = stream;
    return { status, headers, stream, failure: () => failure, disconnect: () => stream.destroy() };
  }

  async close(): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    for (const request of this.#requests) request.destroy();
    agent?.destroy();
    // When a connection closes, Node 24 opens another for a request that waited for it, although that was destroyed.
    for (let turn = 0; turn < TURNS && agent !== undefined; turn++) {
      await nextTurn();
      agent.destroy();
    }
  }

  #agentFor(protocol: string): HttpAgent {
    const { keptConnections, baseUrl, env } = this.#options;
    if (this.#agent !== undefined) return this.#agent;
    const keepAlive = keptConnections > 0;
    const maxSockets = keepAlive ? keptConnections : Number.POSITIVE_INFINITY;
    // NODE_TLS_REJECT_UNAUTHORIZED has no effect here; NODE_EXTRA_CA_CERTS names further authorities.
    const options = { keepAlive, maxSockets, rejectUnauthorized: true, highWaterMark: READ_AHEAD_BYTES };
    // Throws for a proxy that cannot be used.
    proxyFor(baseUrl, env);
    this.#agent = protocol === 'https:' ? new ProxyAgent(env, options) : new HttpAgent(options);
    return this.#agent;
  }

  #watchConnection(request: ClientRequest): void {
    const { clock, onConnect } = this.#options;
    const secure = this.#base.protocol === 'https:';
    const late = Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' });
    const cancel = clock.after(CONNECT_TIMEOUT_MS, () => request.destroy(late));
    const onConnected = () => {
      cancel();
      onConnect?.();
    };
    request.once('close', cancel);
    request.once('socket', (socket) => {
      if (request.reusedSocket) onConnected();
      else socket.once(secure ? 'secureConnect' : 'connect', onConnected);
    });
  }
}
