import { LeapingClock } from '../clock.ts';
import { type ScenarioPatch, TestService, type TestServiceOptions } from './test-service.ts';

export const TOKENS = { export: 'export-token-7f3a', import: 'import-token-9c1d' } as const;
export const SERVICE_ID = 'svc-1';

/** A service with small days of generated rows, a clock of its own, and the scenario given. */
export function startTestSimulator(scenario: ScenarioPatch = {}, more: Partial<TestServiceOptions> = {}) {
  return TestService.start({
    clock: new LeapingClock(),
    exportToken: TOKENS.export,
    serviceId: SERVICE_ID,
    scenario,
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
