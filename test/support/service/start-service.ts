import { LeapingClock } from '../clock.ts';
import { type ScenarioPatch, TestService, type TestServiceOptions } from './test-service.ts';

export const TOKENS = { export: 'export-token-7f3a', import: 'import-token-9c1d' } as const;
export const SERVICE_ID = 'svc-1';

/** A service with small days of generated rows, a clock of its own, and the scenario given. */
export function startTestService(scenario: ScenarioPatch = {}, more: Partial<TestServiceOptions> = {}) {
  return TestService.start({
    clock: new LeapingClock(),
    exportToken: TOKENS.export,
    serviceId: SERVICE_ID,
    scenario,
    ...more,
  });
}

type Service = { readonly url: string };
type Headers = Readonly<Record<string, string>>;

const post = ({ url }: Service, path: string, headers: Headers, body: unknown): Promise<Response> =>
  fetch(`${url}/api/v1/${path}?service_id=${SERVICE_ID}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

export const exportRequest = (sim: Service, body: unknown, headers: Headers = {}) =>
  post(sim, 'export/event', { Authorization: `Bearer ${TOKENS.export}`, ...headers }, body);

/** One day, both ends the same, every event. */
export const dayBody = (day: string, to = day) => ({ events_condition_type: 'all', from_date: day, to_date: to });

export function deleteRequest(sim: Service, id: unknown, headers: Headers = {}): Promise<Response> {
  const body = { identity: { external_id: id }, request_datetime: '2026-01-20T03:00:00.000Z' };
  return post(sim, 'identities/delete', { access_token: TOKENS.import, ...headers }, body);
}
