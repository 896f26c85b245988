import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { nextTurn } from '../../../src/base/clock.ts';

/** A request as it arrived; header names in lower case. */
export interface RawRequest {
  readonly line: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The connection it came on, counted from 1. */
  readonly connection: number;
}

/** The steps of an answer, byte by byte. Nothing else is sent. */
export type Step =
  | { readonly send: string | Uint8Array }
  /** Sends the bytes, so many at a time, each part on its own. */
  | { readonly trickle: string | Uint8Array; readonly bytes: number }
  /** Goes on when the promise resolves. */
  | { readonly until: Promise<unknown> }
  /** Sends nothing more for as long as the other side stays. */
  | { readonly hold: true }
  /** A FIN: the clean end of the connection. */
  | { readonly close: true }
  /** An RST. */
  | { readonly reset: true }
  /** Told however the answer ended. */
  | { readonly end: (isClosed: boolean) => void };

export type Script = (request: RawRequest, nth: number) => readonly Step[] | Promise<readonly Step[]>;

export interface FaultyServer {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly RawRequest[];
  close(): Promise<void>;
}

export interface FaultyServerOptions {
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Sent on every connection before anything is read. */
  readonly greeting?: string;
  /** Does away with every connection before a byte is read. */
  readonly resetOnConnect?: boolean;
}

/** A server for one test, which closes it. */
export async function serve(script: Script, options?: FaultyServerOptions): Promise<FaultyServer> {
  const server = await startFaultyServer(script, options);
  onTestFinished(() => server.close());
  return server;
}

/** A TCP server on loopback that answers each HTTP request by a script. Keep-alive unless the script ends the connection. */
export async function startFaultyServer(script: Script, options: FaultyServerOptions = {}): Promise<FaultyServer> {
  const requests: RawRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const accept = (socket: Socket) => {
    const connection = ++connections;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    if (options.resetOnConnect) return void socket.resetAndDestroy();
    if (options.greeting !== undefined) socket.write(options.greeting);
    takeRequests(socket, connection, async (request) => {
      requests.push(request);
      await play(socket, await script(request, requests.length));
    });
  };
  const server: Server = options.tls ? createTlsServer(options.tls, accept) : createServer(accept);
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers the requests of a connection one after the other. A script that throws ends it. */
function takeRequests(socket: Socket, connection: number, answer: (request: RawRequest) => Promise<void>): void {
  let buffered = Buffer.alloc(0);
  let answered = Promise.resolve();
  socket.on('data', (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    for (let read = requestIn(buffered, connection); read !== undefined; read = requestIn(buffered, connection)) {
      const { request, length } = read;
      buffered = buffered.subarray(length);
      answered = answered.then(() => answer(request)).catch(() => void socket.destroy());
    }
  });
}

function requestIn(bytes: Buffer, connection: number): { request: RawRequest; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [line, ...rest] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    rest.map((text) => [text.slice(0, text.indexOf(':')).toLowerCase(), text.slice(text.indexOf(':') + 1).trim()]),
  );
  const length = end + 4 + Number(headers['content-length'] ?? 0);
  if (bytes.length < length) return undefined;
  return { request: { line, headers, body: bytes.subarray(end + 4, length).toString('utf8'), connection }, length };
}

async function play(socket: Socket, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if ('end' in step) step.end(socket.destroyed);
    else if (socket.destroyed) continue;
    else if ('send' in step) await written(socket, step.send);
    else if ('trickle' in step) {
      const bytes = Buffer.from(step.trickle);
      for (let at = 0; at < bytes.length; at += step.bytes) {
        await written(socket, bytes.subarray(at, at + step.bytes));
        await nextTurn();
      }
    } else if ('until' in step) await step.until;
    else if ('hold' in step) await new Promise((resolve) => socket.once('close', resolve));
    else if ('close' in step) socket.end();
    else {
      await delay(MS_TO_READ);
      socket.resetAndDestroy();
    }
  }
}

/** A reset does away with bytes that were not read yet: the other side is given a chance to read them. */
const MS_TO_READ = 10;

async function written(socket: Socket, bytes: string | Uint8Array): Promise<void> {
  if (bytes.length === 0) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      socket.off('close', done);
      resolve();
    };
    socket.once('close', done);
    socket.write(bytes, done);
  });
}

export type Headers = Readonly<Record<string, string | number | undefined>>;

/** The head of an answer, with the empty line behind it. An undefined header is left out. */
export function head(status: number, headers: Headers = {}): string {
  const lines = Object.entries(headers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`;
}

/** A whole answer with its right length. */
export function whole(status: number, body: string | Uint8Array, headers: Headers = {}): Step[] {
  const bytes = Buffer.from(body);
  return [{ send: Buffer.concat([Buffer.from(head(status, { 'Content-Length': bytes.length, ...headers })), bytes]) }];
}

export const json = (status: number, value: unknown, headers: Headers = {}): Step[] =>
  whole(status, JSON.stringify(value), { 'Content-Type': 'application/json', ...headers });

/** Frames bytes as chunks of a chunked body, without the last one. */
export function chunks(body: string | Uint8Array, size = 1_024): Buffer {
  const bytes = Buffer.from(body);
  const out: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size);
    out.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat(out);
}

export const LAST_CHUNK = '0\r\n\r\n';
export const CHUNKED = { 'Transfer-Encoding': 'chunked', 'Content-Type': 'text/csv' };
export const gzip = (body: string): Buffer => gzipSync(body);
