// This folder: HTTP requests to one origin: connections, answers and their bodies, proxies, time limits, failures.

import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Clock, nextTurn } from '../base/clock.ts';
import type { Env } from '../base/env.ts';
import { codeOf } from '../base/errors.ts';
import { decodedBody } from './body.ts';
import { ConnectionClosed, WrongBody } from './failures.ts';
import { ProxyAgent, proxyFor, withoutBrackets } from './proxy.ts';
import type { TimeLimit } from './time-limit.ts';

export interface OutgoingRequest {
  readonly method: 'POST' | 'HEAD';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface TransportOptions {
  readonly baseUrl: string;
  readonly env: Env;
  readonly clock: Clock;
  /** Most connections, which requests share and keep alive; 0: each request opens and closes its own. */
  readonly keptConnections: number;
  /** Longest time until a connection is established, TLS included (ms); default 30 s. */
  readonly connectTimeoutMs?: number | undefined;
}

const CONNECT_TIMEOUT_MS = 30_000;
/** Bytes that are read ahead of a body's reader. With Node's own 16 KiB reading stops and starts at every chunk. */
const READ_AHEAD_BYTES = 1 << 20;
/** Turns of the event loop in which Node may open another connection after one was closed. */
const TURNS_TO_CLOSE = 3;
/** Turns of the event loop until Node has reported what follows the declared bytes of a body. */
const TURNS_TO_END = 3;

/**
 * An HTTP client. It sends requests to one origin only and does not follow redirects. It uses Node's own client.
 * undici 7 ends the process by an assertion when a connection closes while its reader is busy (nodejs/undici#5360). It
 * also takes a reset for a clean end of a body without a length. undici 8 needs Node 22.
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
  async send(outgoing: OutgoingRequest, signal: AbortSignal): Promise<HttpAnswer> {
    signal.throwIfAborted();
    const { protocol, hostname, port, pathname } = this.#base;
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
      hostname: withoutBrackets(hostname),
      port,
      method: outgoing.method,
      path: `${pathname.replace(/\/+$/, '')}${outgoing.path}`,
      headers: outgoing.headers,
      agent: this.#openAgent(),
      signal,
    });
    request.once('close', () => this.#requests.delete(request));
    this.#requests.add(request);
    this.#watchConnection(request);
    return new Promise((resolve, reject) => {
      request.on('error', (error) => reject(signal.aborted ? signal.reason : error));
      // Node emits no error where it closes the connection by itself, as after a 101.
      request.once('close', () => reject(new ConnectionClosed('the connection was closed without an answer')));
      request.once('response', (stream) => resolve(new HttpAnswer(request, stream)));
      request.end(outgoing.body);
    });
  }

  async close(): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    for (const request of this.#requests) request.destroy();
    agent?.destroy();
    // When a connection closes, Node 24 opens another for a request that waited for it, although that was destroyed.
    for (let turn = 0; turn < TURNS_TO_CLOSE && agent !== undefined; turn++) {
      await nextTurn();
      agent.destroy();
    }
  }

  #openAgent(): HttpAgent {
    if (this.#agent !== undefined) return this.#agent;
    const { keptConnections, baseUrl, env } = this.#options;
    const keepAlive = keptConnections > 0;
    const maxSockets = keepAlive ? keptConnections : Number.POSITIVE_INFINITY;
    // NODE_TLS_REJECT_UNAUTHORIZED has no effect here; NODE_EXTRA_CA_CERTS names further authorities.
    const options = { keepAlive, maxSockets, rejectUnauthorized: true, highWaterMark: READ_AHEAD_BYTES };
    // A proxy that cannot be used is refused before anything is sent.
    proxyFor(baseUrl, env);
    this.#agent = this.#base.protocol === 'https:' ? new ProxyAgent(env, options) : new HttpAgent(options);
    return this.#agent;
  }

  #watchConnection(request: ClientRequest): void {
    const { clock, connectTimeoutMs = CONNECT_TIMEOUT_MS } = this.#options;
    const isTls = this.#base.protocol === 'https:';
    const timeoutError = Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' });
    const cancel = clock.after(connectTimeoutMs, () => request.destroy(timeoutError));
    request.once('close', cancel);
    request.once('socket', (socket) => {
      if (request.reusedSocket) cancel();
      else socket.once(isTls ? 'secureConnect' : 'connect', cancel);
    });
  }
}

/** An answer: its head has come, its body is read once. */
export class HttpAnswer {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly #stream: IncomingMessage;
  /** The first error of the connection. */
  #failure: Error | undefined;

  constructor(request: ClientRequest, stream: IncomingMessage) {
    this.status = stream.statusCode ?? 0;
    this.headers = stream.headers;
    this.#stream = stream;
    request.on('error', (error) => {
      this.#failure ??= error;
    });
    // The reader of the body receives this error.
    stream.on('error', () => {});
  }

  /** Stops the body. A connection that is kept stays open if the whole answer has come. */
  close(): void {
    this.#stream.destroy();
  }

  /**
   * The decoded bytes of the body. Throws what the network threw, `TimeLimitReached`, `WrongBody`, or the caller's
   * reason; `bodyProblem` classifies it.
   */
  bytes(timeLimit?: TimeLimit): AsyncGenerator<Uint8Array, void, undefined> {
    return decodedBody(this.#received(timeLimit), this.headers);
  }

  /** The bytes as sent. Throws unless they end where the body is whole. */
  async *#received(timeLimit: TimeLimit | undefined): AsyncGenerator<Uint8Array, void, undefined> {
    const stream = this.#stream;
    const chunks: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
    const next = () => (timeLimit === undefined ? chunks.next() : timeLimit.waitFor(chunks.next()));
    let received = 0;
    let isCut = false;
    try {
      for (let chunk = await next(); chunk.done !== true; chunk = await next()) {
        received += chunk.value.length;
        yield chunk.value;
      }
    } catch (error) {
      // A whole answer on a sound connection has no error of its own: this one is its reader's.
      const isReadersError = this.#failure === undefined && stream.complete;
      if (timeLimit?.signal.aborted || isReadersError) throw error;
      isCut = true;
    } finally {
      await chunks.return?.();
    }
    await this.#checkEnd(received, isCut || !stream.complete);
  }

  /** Throws unless a body of so many bytes is whole. `isCut`: it ended before Node saw its end. */
  async #checkEnd(received: number, isCut: boolean): Promise<void> {
    const { 'content-length': length, 'transfer-encoding': encoding } = this.headers;
    if (length === undefined) {
      // Node takes a body that ends with its connection for complete, even if a reset was its end.
      const isReset = encoding === undefined && this.#failure !== undefined;
      if (isCut || isReset) throw this.#failure ?? new ConnectionClosed('the connection was closed early');
      return;
    }
    const declared = Number(length);
    for (let turn = 0; turn < TURNS_TO_END && received === declared && this.#failure === undefined; turn++)
      await nextTurn();
    const error = this.#failure;
    if (error !== undefined && isCut) throw error;
    // Node's parser fails where bytes follow behind a declared length.
    const sent = codeOf(error)?.startsWith('HPE_') ? 'more' : received;
    if (sent !== declared) throw new WrongBody('length', `declared ${declared} bytes of an answer and sent ${sent}`);
  }
}
