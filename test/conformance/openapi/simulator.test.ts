import { afterEach, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { LeapingClock } from '../../support/clock.ts';
import { type OperationId, responseProblems } from '../../support/service/openapi.ts';
import {
  dayBody,
  deleteRequest,
  exportRequest,
  SERVICE_ID,
  startTestService,
  TOKENS,
} from '../../support/service/start-service.ts';
import type { ScenarioPatch } from '../../support/service/test-service.ts';

let sim: Pick<Simulator, 'url' | 'close'>;
afterEach(async () => sim.close());

/** The embedded service, and the one of the tests, which can do more. */
const NAMES = { service_id: SERVICE_ID, export_token: TOKENS.export, import_token: TOKENS.import };
const start = (scenario?: ScenarioPatch, embedded: object = {}) =>
  scenario === undefined
    ? startSimulator({ clock: new LeapingClock(), scenario: { ...NAMES, ...embedded } })
    : startTestService(scenario);

const DAY = '2026-01-10';
const asked = dayBody(DAY);

/** What came back, with the answer held to the specification. */
async function judged(id: OperationId, response: Response) {
  const text = await response.text();
  const headers = Object.fromEntries(response.headers);
  const body = headers['content-type']?.includes('json') ? JSON.parse(text) : text;
  expect(responseProblems(id, response.status, headers, body), `${response.status} ${text.slice(0, 200)}`).toEqual([]);
  return { status: response.status, headers, body };
}

/** What is sent in place of a valid request for the day, and how the service is to be. */
interface Circumstances {
  /** Of the service of the tests; undefined: the embedded service answers. */
  readonly scenario?: ScenarioPatch;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

const exportCases: [name: string, status: number, message: string | undefined, Circumstances][] = [
  ['data', 200, undefined, {}],
  ['data of the tests', 200, undefined, { scenario: {} }],
  ['the other event name', 200, undefined, { scenario: { columns: { event_name: 'df_event_name' } } }],
  ['few properties', 200, undefined, { body: { ...asked, properties: ['sum'], properties_condition_type: 'include' } }],
  ['no condition', 400, 'invalid_parameter', { body: { from_date: DAY } }],
  ['a bad date', 400, 'invalid_parameter', { body: { ...asked, from_date: '2026-1-10' } }],
  ['an old date', 400, 'exceed_date_range_limit', { body: dayBody('2025-11-01') }],
  ['a wrong token', 401, 'unauthorized_token', { headers: { Authorization: 'Bearer other' } }],
  ['no quota', 429, 'too_many_api_requests', { scenario: { limits: { exports_per_hour: 0 } } }],
  ['no slot', 429, 'too_many_api_requests', { scenario: { limits: { concurrent_exports: 0 } } }],
  ['a query too big', 500, 'query_error', { scenario: { isTooBig: () => true } }],
];

const deleteCases: [name: string, status: number, code: string, { body?: string; headers?: Record<string, string> }][] =
  [
    ['done', 200, '20000', {}],
    ['a wrong token', 200, '40201', { headers: { access_token: 'other' } }],
    ['an empty id', 200, '40001', { body: '' }],
  ];

describe('answers of both services follow openapi.yaml', () => {
  it.each(exportCases)('export: %s is %i %s', async (_name, status, message, { scenario, body = asked, headers }) => {
    sim = await start(scenario);
    const answer = await judged('exportEvents', await exportRequest(sim, body, headers));
    expect(answer.status).toBe(status);
    if (message !== undefined) expect(answer.body).toEqual({ result: 'fail', message });
  });

  it.each(deleteCases)('delete: %s is %i %s', async (_name, status, code, { body = 'someone', headers }) => {
    sim = await start();
    const answer = await judged('deleteProfile', await deleteRequest(sim, body, headers));
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  it.each<{ readonly code: string; readonly status?: number }>([
    { code: '40401', status: 429 },
    ...['40000', '40001', '40101', '40402', '40403', '50000'].map((code) => ({ code })),
  ])('delete: $code of a scenario', async (answered) => {
    sim = await start(undefined, { answers: [{ operation: 'delete', ...answered }] });
    const answer = await judged('deleteProfile', await deleteRequest(sim, 'someone'));
    expect([answer.status, answer.body.code]).toEqual([answered.status ?? 200, answered.code]);
  });

  it('a wrong service_id is answered with its code', async () => {
    sim = await start();
    const url = `${sim.url}/api/v1/identities/delete?service_id=other`;
    const headers = { access_token: TOKENS.import, 'Content-Type': 'application/json' };
    const answer = await judged('deleteProfile', await fetch(url, { method: 'POST', headers, body: '{}' }));
    expect(answer.body.code).toBe('40101');
  });
});
