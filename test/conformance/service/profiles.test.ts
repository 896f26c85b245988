import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { ALL_PROPERTIES, downloadProfiles, IDS_ALONE } from '../../../src/service/export/profiles.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { LeapingClock } from '../../support/clock.ts';
import { type Step, serve, whole } from '../../support/service/faulty-server.ts';
import { requestProblems, responseProblems } from '../../support/service/openapi.ts';
import { exportService, logRecorder } from '../../support/service/service.ts';

const CSV = 'df_external_id,df_name,df_unified_id\nA-1,"Kim, Minsu",u1\n,,u2\n';

const OK = whole(200, CSV);

/** Downloads profiles from a server that gives these answers in turn, the last one again and again. */
async function download(answers: readonly (readonly Step[])[], request = IDS_ALONE) {
  const { url, requests } = await serve((request, nth) => {
    expect(requestProblems('exportProfiles', request)).toEqual([]);
    return answers[Math.min(nth, answers.length) - 1] ?? [];
  });
  return { ...(await downloadFrom(url, request)), requests };
}

async function downloadFrom(baseUrl: string, request = ALL_PROPERTIES) {
  const clock = new LeapingClock();
  const exportToken = new Secret('demo-export-token');
  const { service } = exportService(baseUrl, { serviceId: 'demo-service', exportToken, clock });
  onTestFinished(() => service.close());
  let text = '';
  const { signal } = new AbortController();
  const openOutput = () => {
    text = '';
    const write = (bytes: Uint8Array) => {
      text += Buffer.from(bytes).toString();
    };
    return { write };
  };
  const deps = { service, clock, random: () => 0.5, logger: logRecorder().logger, signal, openOutput };
  return { result: await downloadProfiles(request, deps), text };
}

describe('the export of profiles', () => {
  it('gives every checked byte of a snapshot, and asks for little', async () => {
    const { result, text, requests } = await download([OK]);
    expect(result).toMatchObject({ kind: 'checked', bytes: CSV.length, scan: { rows: 2 } });
    expect(text).toBe(CSV);
    expect(requests.map(({ body }) => JSON.parse(body))).toEqual([
      { properties: ['df_unified_id'], properties_condition_type: 'include', identities_condition_type: 'all' },
    ]);
  });

  it.each<[string, readonly (readonly Step[])[]]>([
    ['a failure of the service', [whole(503, ''), OK]],
    ['a last line without its end', [whole(200, CSV.trimEnd()), whole(200, CSV.trimEnd())]],
  ])('asks again after %s', async (_what, answers) => {
    const { result, text, requests } = await download(answers);
    expect(result.kind).toBe('checked');
    expect(text.trimEnd()).toBe(CSV.trimEnd());
    expect(requests).toHaveLength(2);
  });
});

describe('the profiles of the embedded service', () => {
  let sim: Simulator | undefined;
  afterEach(() => sim?.close());

  it('connect the id of the company with the id of the data, until they are deleted', async () => {
    sim = await startSimulator();
    const before = await downloadFrom(sim.url);
    expect(responseProblems('exportProfiles', 200, { 'content-type': 'text/csv' }, before.text)).toEqual([]);
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
  });
});
