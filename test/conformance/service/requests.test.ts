import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { EventRequest } from '../../../src/service/export/export-service.ts';
import { type FaultyServer, json, serve, whole } from '../../support/service/faulty-server.ts';
import { requestProblems } from '../../support/service/openapi.ts';
import { answerOf, CANARY, deletionClient, EXPORT_REQUEST, exportService } from '../../support/service/service.ts';

let server: FaultyServer;

describe('the request for an export', () => {
  const ask = async (selection: EventRequest, serviceId = 'svc-1') => {
    server = await serve(() => whole(200, 'a\n'));
    const { service } = exportService(server.url, { serviceId });
    await answerOf(service, { request: selection });
    expect(server.requests).toHaveLength(1);
    return server.requests[0];
  };

  it.each([
    ['everything', EXPORT_REQUEST],
    ['some events', { ...EXPORT_REQUEST, events: ['df_purchase', '가입, "new"'], eventsCondition: 'include' }],
    ['but some properties', { ...EXPORT_REQUEST, properties: ['__proto__', 'a b'], propertiesCondition: 'exclude' }],
  ] as [string, EventRequest][])('follows openapi.yaml: %s', async (_name, selection) => {
    const request = await ask(selection);
    expect(requestProblems('exportEvents', request)).toEqual([]);
    expect(JSON.parse(request.body)).toEqual({
      ...(selection.events.length > 0 && { events: selection.events }),
      events_condition_type: selection.eventsCondition,
      ...(selection.properties.length > 0 && { properties: selection.properties }),
      properties_condition_type: selection.propertiesCondition,
      from_date: '2026-01-10',
      to_date: '2026-01-11',
    });
  });

  it('carries the token in one header and accepts only gzip', async () => {
    const { headers, line, body } = await ask(EXPORT_REQUEST);
    expect(headers).toMatchObject({
      authorization: `Bearer ${CANARY}`,
      'content-type': 'application/json',
      'accept-encoding': 'gzip',
    });
    expect(headers).not.toHaveProperty('access_token');
    expect(line + body).not.toContain(CANARY);
  });

  it('encodes the service id', async () => {
    const request = await ask(EXPORT_REQUEST, 'a/b?c=d&e#f 가 %2F');
    expect(requestProblems('exportEvents', request)).toEqual([]);
    const url = new URL(request.line.split(' ')[1], 'http://loopback');
    expect([...url.searchParams]).toEqual([['service_id', 'a/b?c=d&e#f 가 %2F']]);
  });
});

describe('the request for a deletion', () => {
  const OK = { status: true, code: '20000', message: 'OK', data: true };
  const remove = async (ids: readonly string[]) => {
    server = await serve(() => json(200, OK));
    const service = deletionClient(server.url, { ...systemClock, now: () => Date.UTC(2026, 0, 20, 3, 0, 0, 7) });
    const answers = [];
    for (const id of ids) answers.push(await service.deleteProfile(id, new AbortController().signal, false));
    await service.close();
    return { answers, requests: server.requests };
  };

  it('follows openapi.yaml for any id, which is sent unchanged', async () => {
    const ids = ['m-1', '../x', 'a b', '"', '🙂', '0', ' 가 ', 'x'.repeat(200_000)];
    const { answers, requests } = await remove(ids);
    expect(answers.every(({ kind }) => kind === 'done')).toBe(true);
    for (const [i, request] of requests.entries()) {
      expect(requestProblems('deleteProfile', request)).toEqual([]);
      expect(JSON.parse(request.body)).toEqual({
        identity: { external_id: ids[i] },
        request_datetime: '2026-01-20T03:00:00.007Z',
      });
      expect(request.headers).toMatchObject({ access_token: CANARY });
      expect(request.headers).not.toHaveProperty('authorization');
    }
    expect(new Set(requests.map(({ connection }) => connection)).size).toBe(1);
  });
});
