// This folder: HTTP requests to one origin. This file sends them, and `proxy.ts` opens their connections. `answer.ts`
// gives the bytes of an answer, and throws where they are not whole; `body.ts` decompresses them. `time-limit.ts` ends a
// wait. `failures.ts` says why no answer came.

import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { withoutBrackets } from '../base/address.ts';
import { type Clock, nextTurn } from '../base/clock.ts';
import type { Runtime } from '../base/runtime.ts';
import { HttpAnswer, TURNS_AFTER_END } from './answer.ts';
import { ConnectionClosed } from './failures.ts';
import { ProxyAgent } from './proxy.ts';

export interface OutgoingRequest {
  readonly method: 'POST' | 'HEAD';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface TransportOptions extends Pick<Runtime, 'clock' | 'env'> {
  readonly baseUrl: string;
  /** Most connections, which requests share and keep alive; 0: each request opens and closes its own. */
  readonly keptConnections: number;
  /** Longest time until a connection is established, TLS included (ms); default 30 s. */
  readonly connectTimeoutMs?: number | undefined;
}

const CONNECT_TIMEOUT_MS = 30_000;
/** Bytes that are read ahead of a body's reader. With Node's own 16 KiB reading stops and starts at every chunk. */
const READ_AHEAD_BYTES = 1 << 20;

/**
 * An HTTP client. It sends requests to one origin only and does not follow redirects. It uses Node's own client.
 * undici 7 ends the process by an assertion when a connection closes while its reader is busy (nodejs/undici#5360). It
 * also takes a reset for a clean end of a body without a length. undici 8 needs Node 22.
 */
export class Transport {
  readonly #clock: Clock;
  readonly #connectTimeoutMs: number;
  readonly #base: URL;
  readonly #requests = new Set<ClientRequest>();
  readonly #establishedSockets = new WeakSet<Socket>();
  readonly #agent: HttpAgent;

  constructor(options: TransportOptions) {
    const { baseUrl, env, clock, keptConnections, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
    this.#clock = clock;
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#base = new URL(baseUrl);
    const keepAlive = keptConnections > 0;
    const maxSockets = keepAlive ? keptConnections : Number.POSITIVE_INFINITY;
    // NODE_TLS_REJECT_UNAUTHORIZED has no effect here; NODE_EXTRA_CA_CERTS names further authorities.
    const agentOptions = { keepAlive, maxSockets, rejectUnauthorized: true, highWaterMark: READ_AHEAD_BYTES };
    this.#agent =
      this.#base.protocol === 'https:'
        ? new ProxyAgent(env, agentOptions, connectTimeoutMs)
        : new HttpAgent(agentOptions);
  }

  get host(): string {
    return this.#base.host;
  }

  /** Rejects with an error of Node, with the signal's reason, or with a configuration failure for a bad proxy. */
  async send(outgoing: OutgoingRequest, signal: AbortSignal): Promise<HttpAnswer> {
    signal.throwIfAborted();
    const { protocol, hostname, port, pathname } = this.#base;
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
      hostname: withoutBrackets(hostname),
      port,
      method: outgoing.method,
      path: `${pathname.replace(/\/+$/, '')}${outgoing.path}`,
      headers: outgoing.headers,
      agent: this.#agent,
      signal,
    });
    this.#requests.add(request);
    const stopTimer = this.#limitConnecting(request);
    return new Promise((resolve, reject) => {
      request.on('error', (error) => reject(signal.aborted ? signal.reason : error));
      request.once('response', (stream) => resolve(new HttpAnswer(request, stream)));
      request.once('close', () => {
        this.#requests.delete(request);
        stopTimer();
        // Node emits no error where it closes the connection by itself, as after a 101.
        reject(new ConnectionClosed('the connection was closed without an answer'));
      });
      request.end(outgoing.body);
    });
  }

  async close(): Promise<void> {
    for (const request of this.#requests) request.destroy();
    this.#agent.destroy();
    // When a connection closes, Node opens another for a request that waited for it, although that was destroyed.
    for (let turn = 0; turn < TURNS_AFTER_END; turn++) {
      await nextTurn();
      this.#agent.destroy();
    }
  }

  /** Destroys a request that has no connection in time, until the returned function is called. */
  #limitConnecting(request: ClientRequest): () => void {
    const timeoutError = Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' });
    const stopTimer = this.#clock.after(this.#connectTimeoutMs, () => request.destroy(timeoutError));
    request.once('socket', (socket) => {
      // Node's `reusedSocket` is false for a request that waited for its connection.
      if (this.#establishedSockets.has(socket)) return stopTimer();
      socket.once(this.#base.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        this.#establishedSockets.add(socket);
        stopTimer();
      });
    });
    return stopTimer;
  }
}
