import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { configError, messageOf } from '../base/errors.ts';
import { serveDelete } from './delete.ts';
import { type Exchange, fail, parseBody, readBody } from './exchange.ts';
import { serveExport } from './export/serve-export.ts';
import type { SeenRequest } from './request-log.ts';
import type { Operation } from './scenario.ts';
import type { Service } from './service.ts';

const LOOPBACK = '127.0.0.1';
const PATHS: Readonly<Record<string, Operation>> = {
  '/api/v1/export/event': 'export',
  '/api/v1/identities/delete': 'delete',
};

export interface Listening {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves on loopback, and on nothing else. Port 0 takes a free one. */
export async function listen(service: Service, port: number): Promise<Listening> {
  const server = createServer({ keepAliveTimeout: 5_000 }, (req, res) => void serve(service, req, res));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(configError(`The simulator cannot listen on port ${port}: ${messageOf(cause)}.`, { cause })),
    );
    server.listen(port, LOOPBACK, resolve);
  });
  const taken = (server.address() as AddressInfo).port;
  return { url: `http://${LOOPBACK}:${taken}`, port: taken, close: () => stop(server) };
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function serve(service: Service, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const over = new AbortController();
  const url = new URL(req.url ?? '/', 'http://loopback');
  const seen = see(service, req, url);
  const exchange: Exchange = { service, req, res, seen, closed: over.signal };
  res.once('close', () => {
    over.abort();
    if (!res.writableFinished) seen.outcome = seen.fault ? (seen.outcome ?? `fault:${seen.fault}`) : 'closed';
    seen.done = true;
  });
  res.on('error', () => over.abort());
  try {
    await route(exchange);
  } catch (error) {
    if (!over.signal.aborted) crash(exchange, error);
  }
}

/** A defect of the simulator's own must never look like an answer of the service. */
function crash({ res, seen }: Exchange, error: unknown): void {
  seen.outcome = `defect: ${messageOf(error)}`;
  res.destroy();
}

async function route(exchange: Exchange): Promise<void> {
  const { service, req, seen } = exchange;
  const text = await readBody(req);
  if (text === undefined) return fail(exchange, 413, 'too_large');
  seen.body = parseBody(text);
  if (service.latencyMs > 0) await service.clock.sleep(service.latencyMs, exchange.closed);
  if (seen.operation === undefined) return fail(exchange, 404, 'not_found');
  if (req.method !== 'POST') return fail(exchange, 405, 'method_not_allowed', { Allow: 'POST' });
  return seen.operation === 'export' ? serveExport(exchange) : serveDelete(exchange);
}

function see(service: Service, req: IncomingMessage, url: URL): SeenRequest {
  const headers = Object.entries(req.headers).map(([name, value]) => [name, String(value)]);
  const seen: SeenRequest = {
    number: service.log.nextNumber(),
    operation: Object.hasOwn(PATHS, url.pathname) ? PATHS[url.pathname] : undefined,
    method: req.method ?? '',
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(headers),
    body: undefined,
    at: service.clock.now(),
    status: undefined,
    outcome: undefined,
    fault: undefined,
    bytes: 0,
    done: false,
  };
  service.log.add(seen);
  return seen;
}
