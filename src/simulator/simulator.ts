// This folder: the embedded service of the demo and the command `simulate`. It has the operations of the real service
// on loopback, with made-up events and profiles. It shares `base` alone with the client. `simulator.ts` is its HTTP
// server, `service.ts` what requests share, `scenario.ts` the settings; `export.ts` and `delete.ts` answer. The data in
// `dataset.ts` are events (`events.ts`), their cells (`columns.ts`) and profiles (`people.ts`), drawn by `random.ts`.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Clock, systemClock } from '../base/clock.ts';
import { codeOf, configError, messageOf } from '../base/errors.ts';
import { tryParseJson } from '../base/json.ts';
import { serveDelete } from './delete.ts';
import { serveExport, serveProfiles } from './export.ts';
import { parseScenario, type Scenario } from './scenario.ts';
import { answerFailure, type Exchange, SimulatedService } from './service.ts';

export interface Simulator {
  readonly url: string;
  readonly scenario: Scenario;
  readonly close: () => Promise<void>;
}

const LOOPBACK = '127.0.0.1';
const ROUTES: ReadonlyMap<string, (exchange: Exchange) => Promise<void>> = new Map([
  ['/api/v1/export/event', serveExport],
  ['/api/v1/export/userprofile', serveProfiles],
  ['/api/v1/identities/delete', serveDelete],
]);

/**
 * Starts the embedded service on loopback; port 0 takes a free one. `scenario` has keys of schemas/scenario.json.
 * Throws a configuration error if the scenario or the port is unusable.
 */
export async function startSimulator({
  port = 0,
  scenario: keys = {},
  clock = systemClock,
}: {
  readonly port?: number;
  readonly scenario?: unknown;
  readonly clock?: Clock;
} = {}): Promise<Simulator> {
  const scenario = parseScenario(keys);
  const service = new SimulatedService(scenario, clock);
  const server = createServer({ keepAliveTimeout: 5_000 }, (req, res) => void serveRequest(service, req, res));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const why = codeOf(cause) ?? messageOf(cause);
      reject(configError(`The port ${port} cannot be used (${why}): give another, or 0 for a free one.`, { cause }));
    });
    server.listen(port, LOOPBACK, resolve);
  });
  const { port: openPort } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://${LOOPBACK}:${openPort}`, scenario, close };
}

async function serveRequest(service: SimulatedService, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const controller = new AbortController();
  res.once('close', () => controller.abort());
  res.on('error', () => controller.abort());
  try {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://loopback');
    const body = tryParseJson(await text(req));
    const exchange = { service, req, res, body, serviceId: searchParams.get('service_id'), signal: controller.signal };
    const serve = ROUTES.get(pathname);
    if (serve === undefined) answerFailure(exchange, 404, 'not_found');
    else await serve(exchange);
  } catch {
    // The client is gone, or the simulator has a defect. The service never answers so.
    res.destroy();
  }
}
