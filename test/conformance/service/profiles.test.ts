import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { ExportClient } from '../../../src/service/export/client.ts';
import { ALL_PROPERTIES, downloadProfiles, IDS_ALONE } from '../../../src/service/export/profiles.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { LeapingClock } from '../../support/clock.ts';
import { validateRequest, validateResponse } from '../../support/service/openapi.ts';
import { recorder } from '../../support/service/service.ts';

const CSV = 'df_external_id,df_name,df_unified_id\nA-1,"Kim, Minsu",u1\n,,u2\n';

interface Answer {
  readonly status?: number;
  readonly body?: string;
  /** Declares this many bytes more than are sent. */
  readonly cut?: number;
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Downloads profiles from a server that gives these answers in turn, the last one again and again. */
async function download(answers: readonly Answer[], request = IDS_ALONE) {
  const seen: unknown[] = [];
  const server = createServer((req, res) => {
    let body = '';
    req.on('data', (part) => (body += part));
    req.on('end', () => {
      const { status = 200, body: text = CSV, cut = 0 } = answers[Math.min(seen.length, answers.length - 1)] ?? {};
      const { pathname, searchParams } = new URL(req.url ?? '', 'http://host');
      const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]));
      const parts = { path: pathname, query: Object.fromEntries(searchParams), headers, body: JSON.parse(body) };
      expect(validateRequest('exportProfiles', { method: req.method ?? '', ...parts })).toEqual([]);
      seen.push(parts.body);
      res.writeHead(status, { 'content-length': Buffer.byteLength(text) + cut });
      res.write(text, () => (cut > 0 ? res.destroy() : res.end()));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { result, text } = await downloadFrom(url, request);
  return { result, text, seen };
}

async function downloadFrom(baseUrl: string, request = ALL_PROPERTIES) {
  const clock = new LeapingClock();
  const service = new ExportClient({
    baseUrl,
    serviceId: 'demo-service',
    exportToken: new Secret('demo-export-token'),
    clock,
    env: {},
  });
  closers.push(() => service.close());
  let text = '';
  const { signal } = new AbortController();
  const openOutput = () => {
    text = '';
    const write = (bytes: Uint8Array) => {
      text += Buffer.from(bytes).toString();
    };
    return { write };
  };
  const deps = { service, clock, random: () => 0.5, logger: recorder().logger, signal, openOutput };
  return { result: await downloadProfiles(request, deps), text };
}

describe('the export of profiles', () => {
  it('gives every checked byte of a snapshot, and asks for little', async () => {
    const { result, text, seen } = await download([{}]);
    expect(result).toMatchObject({ kind: 'checked', bytes: CSV.length, scan: { rows: 2 } });
    expect(text).toBe(CSV);
    expect(seen).toEqual([
      { properties: ['df_unified_id'], properties_condition_type: 'include', identities_condition_type: 'all' },
    ]);
  });

  it.each<[string, readonly Answer[], number]>([
    ['a failure of the service', [{ status: 503 }, {}], 2],
    ['a limit', [{ status: 429 }, {}], 2],
    ['a body that was cut', [{ body: CSV.slice(0, 50), cut: 20 }, {}], 2],
    ['a failure inside a 200', [{ body: '{"result":"fail","message":"query_error"}' }, {}], 2],
    ['a last line without its end', [{ body: CSV.trimEnd() }], 2],
  ])('asks again after %s', async (_what, answers, requests) => {
    const { result, text, seen } = await download(answers);
    expect(result.kind).toBe('checked');
    expect(text.trimEnd()).toBe(CSV.trimEnd());
    expect(seen).toHaveLength(requests);
  });

  it.each<[string, readonly Answer[], string]>([
    ['a service that fails for good', [{ status: 500 }], 'retry'],
    ['a limit that stays', [{ status: 429 }], 'retry'],
    ['a body without a byte', [{ body: '' }], 'retry'],
    ['a wrong token', [{ status: 401 }], 'config'],
    ['a body that is broken twice in the same way', [{ body: `${CSV}u3,x\n` }], 'retry'],
    ['another table', [{ body: 'a,b\n1,2\n' }], 'config'],
    ['an unknown address', [{ status: 404 }], 'gone'],
    ['a request that is not taken', [{ status: 400 }], 'invalid'],
  ])('gives no snapshot for %s', async (_what, answers, kind) => {
    const { result } = await download(answers);
    expect(result).toMatchObject({ kind, clause: expect.stringMatching(/./) });
  });
});

describe('the profiles of the embedded service', () => {
  let sim: Simulator | undefined;
  afterEach(() => sim?.close());
  const idsIn = (text: string) => text.split('\n').map((line) => line.split(',')[2]);

  it('connect the id of the company with the id of the data, until they are deleted', async () => {
    sim = await startSimulator();
    const before = await downloadFrom(sim.url);
    expect(validateResponse('exportProfiles', 200, { 'content-type': 'text/csv' }, before.text)).toEqual([]);
    expect(before.text.split('\n')[0]).toBe(
      'df_birth,df_external_id,df_gender,df_membership,df_name,df_unified_id,favourite_colour',
    );
    expect(before.result).toMatchObject({ kind: 'checked', scan: { rows: 2_000 } });
    const alone = await downloadFrom(sim.url, IDS_ALONE);
    expect(alone.text.split('\n')[0]).toBe('df_external_id,df_unified_id');
    const body = { identity: { external_id: '00000017' }, request_datetime: '2026-01-20T03:00:00.000Z' };
    await fetch(`${sim.url}/api/v1/identities/delete?service_id=demo-service`, {
      method: 'POST',
      headers: { access_token: 'demo-import-token', 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const after = await downloadFrom(sim.url);
    expect(after.result).toMatchObject({ kind: 'checked', scan: { rows: 1_999 } });
    expect(before.text).toContain('00000017');
    expect(after.text).not.toContain('00000017');
    expect(idsIn(after.text)).toHaveLength(idsIn(before.text).length - 1);
  });
});
