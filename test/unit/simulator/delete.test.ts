import { afterEach, describe, expect, it } from 'vitest';
import type { Simulator } from '../../../src/simulator/index.ts';
import { deleteRequest, SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';

const DAY = '2026-01-10';
let sim: Simulator | undefined;
afterEach(async () => sim?.close());

describe('deletions', () => {
  const codeOf = async (answer: Response) => ((await answer.json()) as { code: string }).code;

  it('are counted, and every id is kept', async () => {
    sim = await startTestSimulator({ deletions: { codes: { bad: '40402' } } });
    for (const id of ['a', 'a', 'bad']) await deleteRequest(sim, id);
    expect(sim.deletions()).toEqual([
      { externalId: 'a', count: 2, deleted: 2, answers: ['20000', '20000'] },
      { externalId: 'bad', count: 1, deleted: 0, answers: ['40402'] },
    ]);
  });

  it('are cut before or after they are executed', async () => {
    const faults = [
      { kind: 'cut_after', when: { nth: 1 } },
      { kind: 'refuse', when: { nth: 2 } },
    ];
    sim = await startTestSimulator({ faults });
    await expect(deleteRequest(sim, 'a')).rejects.toThrow('fetch failed');
    await expect(deleteRequest(sim, 'b')).rejects.toThrow('fetch failed');
    expect(await codeOf(await deleteRequest(sim, 'b'))).toBe('20000');
    expect(sim.deletions().map(({ count, deleted }) => [count, deleted])).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  it('are answered with HTML in a 200', async () => {
    sim = await startTestSimulator({
      faults: [{ kind: 'status', status: 200, body: '<html>', when: { external_id: 'x' } }],
    });
    expect(await (await deleteRequest(sim, 'x')).text()).toBe('<html>');
    expect(await codeOf(await deleteRequest(sim, 'y'))).toBe('20000');
  });

  it.each([
    ['no identity', { request_datetime: '2026-01-20T03:00:00.000Z' }],
    ['an id that is a number', { identity: { external_id: 7 }, request_datetime: '2026-01-20T03:00:00.000Z' }],
    ['no milliseconds', { identity: { external_id: 'a' }, request_datetime: '2026-01-20T03:00:00Z' }],
    ['an impossible time', { identity: { external_id: 'a' }, request_datetime: '2026-01-20T25:00:00.000Z' }],
  ])('are refused for %s', async (_name, body) => {
    sim = await startTestSimulator();
    const headers = { access_token: TOKENS.import, 'Content-Type': 'application/json' };
    const url = `${sim.url}/api/v1/identities/delete?service_id=${SERVICE_ID}`;
    expect(await codeOf(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }))).toBe('40001');
    expect(sim.deletions()).toEqual([]);
  });

  it('remove the events of the profile, by scenario', async () => {
    sim = await startTestSimulator({ rows: { of_deleted_profiles: 'removed', users: 3 } });
    const before = [...sim.truth(DAY)];
    const id = before.find((row) => row.has('member_no'))?.get('member_no') ?? '';
    const unified = before.find((row) => row.get('member_no') === id)?.get('df_unified_id');
    await deleteRequest(sim, id);
    const after = [...sim.truth(DAY)];
    expect(after.length).toBeLessThan(before.length);
    expect(after).toEqual(before.filter((row) => row.get('df_unified_id') !== unified));
  });
});
