import { afterEach, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { LeapingClock } from '../../support/clock.ts';
import { refusal } from '../../support/service/faults.ts';
import { type OperationId, validateResponse } from '../../support/service/openapi.ts';
import {
  dayBody,
  deleteRequest,
  exportRequest,
  SERVICE_ID,
  startTestSimulator,
  TOKENS,
} from '../../support/service/simulator.ts';
import type { ScenarioPatch } from '../../support/service/test-service.ts';

let sim: Pick<Simulator, 'url' | 'close'>;
afterEach(async () => sim.close());

/** The embedded service, and the one of the tests, which can do more. */
const NAMES = { service_id: SERVICE_ID, export_token: TOKENS.export, import_token: TOKENS.import };
const start = (scenario?: ScenarioPatch, embedded: object = {}) =>
  scenario === undefined
    ? startSimulator({ clock: new LeapingClock(), scenario: { ...NAMES, ...embedded } })
    : startTestSimulator(scenario);

const DAY = '2026-01-10';
const asked = dayBody(DAY);

/** What came back, with the answer held to the specification. */
async function judged(id: OperationId, response: Response) {
  const text = await response.text();
  const headers = Object.fromEntries(response.headers);
  const body = headers['content-type']?.includes('json') ? JSON.parse(text) : text;
  expect(validateResponse(id, response.status, headers, body), `${response.status} ${text.slice(0, 200)}`).toEqual([]);
  return { status: response.status, headers, body };
}

interface Case {
  readonly name: string;
  /** Of the service of the tests; undefined: the embedded service answers. */
  readonly scenario?: ScenarioPatch;
  /** Keys of the scenario of the embedded service. */
  readonly embedded?: object;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly wants: { status: number; message?: string };
}

const exportCases: readonly Case[] = [
  { name: 'data', wants: { status: 200 } },
  { name: 'data of the tests', scenario: {}, wants: { status: 200 } },
  {
    name: 'data under the other event name',
    scenario: { columns: { event_name: 'df_event_name' } },
    wants: { status: 200 },
  },
  {
    name: 'few properties',
    body: { ...asked, properties: ['sum'], properties_condition_type: 'include' },
    wants: { status: 200 },
  },
  {
    name: 'a failure in a 200',
    scenario: { fault: () => refusal(200, { message: 'client_connection_closed' }) },
    wants: { status: 200, message: 'client_connection_closed' },
  },
  { name: 'no condition', body: { from_date: DAY }, wants: { status: 400, message: 'invalid_parameter' } },
  {
    name: 'a bad date',
    body: { ...asked, from_date: '2026-1-10' },
    wants: { status: 400, message: 'invalid_parameter' },
  },
  { name: 'an old date', body: dayBody('2025-11-01'), wants: { status: 400, message: 'exceed_date_range_limit' } },
  {
    name: 'a wrong token',
    headers: { Authorization: 'Bearer other' },
    wants: { status: 401, message: 'unauthorized_token' },
  },
  {
    name: 'no quota',
    scenario: { limits: { exports_per_hour: 0 } },
    wants: { status: 429, message: 'too_many_api_requests' },
  },
  {
    name: 'no slot',
    scenario: { limits: { concurrent_exports: 0 } },
    wants: { status: 429, message: 'too_many_api_requests' },
  },
  {
    name: 'an unknown error',
    scenario: { fault: () => refusal(500, { message: 'unknown_error' }) },
    wants: { status: 500, message: 'unknown_error' },
  },
  { name: 'a query too big', scenario: { isTooBig: () => true }, wants: { status: 500, message: 'query_error' } },
  { name: 'HTML', scenario: { fault: () => refusal(503) }, wants: { status: 503 } },
];

const deleteCases: readonly (Case & { wants: { code: string } })[] = [
  { name: 'done', wants: { status: 200, code: '20000' } },
  { name: 'a wrong token', headers: { access_token: 'other' }, wants: { status: 200, code: '40201' } },
  { name: 'an empty id', body: '', wants: { status: 200, code: '40001' } },
  {
    name: 'over the limit',
    embedded: { answers: [{ operation: 'delete', status: 429, code: '40401' }] },
    wants: { status: 429, code: '40401' },
  },
  ...['40000', '40001', '40101', '40402', '40403', '50000'].map((code) => ({
    name: `code ${code}`,
    embedded: { answers: [{ operation: 'delete', code }] },
    wants: { status: 200, code },
  })),
];

describe('answers of both services follow openapi.yaml', () => {
  it.each(exportCases)('export: $name', async ({ scenario, body, headers, wants }) => {
    sim = await start(scenario);
    const answer = await judged('exportEvents', await exportRequest(sim, body ?? asked, headers));
    expect(answer.status).toBe(wants.status);
    if (wants.message) expect(answer.body).toEqual({ result: 'fail', message: wants.message });
  });

  it.each(deleteCases)('delete: $name', async ({ embedded, body, headers, wants }) => {
    sim = await start(undefined, embedded);
    const answer = await judged('deleteProfile', await deleteRequest(sim, body ?? 'someone', headers));
    expect(answer.status).toBe(wants.status);
    expect(answer.body.code).toBe(wants.code);
  });

  it('a wrong service_id is answered with its code', async () => {
    sim = await start();
    const url = `${sim.url}/api/v1/identities/delete?service_id=other`;
    const headers = { access_token: TOKENS.import, 'Content-Type': 'application/json' };
    const answer = await judged('deleteProfile', await fetch(url, { method: 'POST', headers, body: '{}' }));
    expect(answer.body.code).toBe('40101');
  });
});
