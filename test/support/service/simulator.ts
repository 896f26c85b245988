import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { type ScenarioPatch, TestService, type TestServiceOptions } from './test-service.ts';

/** The instant that tests take for now, unless they say otherwise: 2026-01-20 03:00 UTC, noon in the service's zone. */
export const NOW = Date.UTC(2026, 0, 20, 3);
export const TOKENS = { export: 'export-token-7f3a', import: 'import-token-9c1d' } as const;
export const SERVICE_ID = 'svc-1';

/** A clock that stands still until it is told, on which nothing ever sleeps for real. */
export interface HandClock extends Clock {
  advance(ms: number): void;
}

export function handClock(start = NOW): HandClock {
  let now = start;
  return {
    now: () => now,
    advance: (ms) => {
      now += ms;
    },
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      now += ms;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    },
    after: systemClock.after,
  };
}

/** A service with small days of generated rows, a clock of its own, and the scenario given. */
export function startTestSimulator(scenario: unknown = {}, more: Partial<TestServiceOptions> = {}) {
  return TestService.start({
    clock: handClock(),
    exportToken: TOKENS.export,
    serviceId: SERVICE_ID,
    scenario: scenario as ScenarioPatch,
    ...more,
  });
}

export function exportRequest(
  sim: { readonly url: string },
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${sim.url}/api/v1/export/event?service_id=${SERVICE_ID}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Authorization: `Bearer ${TOKENS.export}`, 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** One day, both ends the same, every event. */
export const dayBody = (day: string, to = day) => ({ events_condition_type: 'all', from_date: day, to_date: to });

export function deleteRequest(
  sim: { readonly url: string },
  id: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${sim.url}/api/v1/identities/delete?service_id=${SERVICE_ID}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { access_token: TOKENS.import, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ identity: { external_id: id }, request_datetime: '2026-01-20T03:00:00.000Z' }),
  });
}
