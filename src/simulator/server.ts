import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { configError, messageOf } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { serveDelete } from './delete.ts';
import { type Exchange, fail, readBody } from './exchange.ts';
import { serveExport } from './export/serve-export.ts';
import type { SeenRequest } from './request-log.ts';
import type { Operation } from './scenario.ts';
import type { Service } from './service.ts';

const LOOPBACK = '127.0.0.1';
const PATHS: Readonly<Record<string, Operation>> = {
  '/api/v1/export/event': 'export',
  '/api/v1/identities/delete': 'delete',
};

/** Serves on loopback only. Port 0 takes a free one. */
export async function listen(service: Service, port: number) {
  const server = createServer({ keepAliveTimeout: 5_000 }, (req, res) => void serve(service, req, res));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(configError(`The simulator cannot listen on port ${port}: ${messageOf(cause)}.`, { cause })),
    );
    server.listen(port, LOOPBACK, resolve);
  });
  const taken = (server.address() as AddressInfo).port;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://${LOOPBACK}:${taken}`, port: taken, close };
}

async function serve(service: Service, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const over = new AbortController();
  const seen = see(service, req);
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
    if (over.signal.aborted) return;
    // A defect of the simulator itself must never look like an answer of the service.
    seen.outcome = `defect: ${messageOf(error)}`;
    res.destroy();
  }
}

async function route(exchange: Exchange): Promise<void> {
  const { service, req, seen } = exchange;
  const text = await readBody(req);
  if (text === undefined) return fail(exchange, 413, 'too_large');
  seen.body = jsonOf(text) ?? text;
  const { latencyMs = 0 } = service.options;
  if (latencyMs > 0) await service.clock.sleep(latencyMs, exchange.closed);
  if (seen.operation === undefined) return fail(exchange, 404, 'not_found');
  if (req.method !== 'POST') return fail(exchange, 405, 'method_not_allowed', { Allow: 'POST' });
  return seen.operation === 'export' ? serveExport(exchange) : serveDelete(exchange);
}

function see({ log, clock }: Service, req: IncomingMessage): SeenRequest {
  const { pathname, searchParams } = new URL(req.url ?? '/', 'http://loopback');
  return log.add({
    operation: Object.hasOwn(PATHS, pathname) ? PATHS[pathname] : undefined,
    method: req.method ?? '',
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)])),
    body: undefined,
    at: clock.now(),
    status: undefined,
    outcome: undefined,
    fault: undefined,
    bytes: 0,
    done: false,
  });
}
