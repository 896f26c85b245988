import { describe, expect, it } from 'vitest';
import { ManualClock, settle } from '../../support/clock.ts';
import { ask, CSV, CSV_HEAD, GZIP, length } from '../../support/service/faulty-export.ts';
import { CHUNKED, chunks, head, type Step, serve, whole } from '../../support/service/faulty-server.ts';
import { answerOf, CANARY, EXPORT_REQUEST, exportService } from '../../support/service/service.ts';
import { deferred, until } from '../../support/wait.ts';

describe('a connection without bytes', () => {
  const stalling = async (steps: readonly Step[]) => {
    const server = await serve(() => steps);
    const clock = new ManualClock();
    const { service, quota } = exportService(server.url, { clock });
    const asking = answerOf(service);
    // The time limit starts twice: for the head, and for the body.
    const headCame = () => until(() => clock.set.filter((ms) => ms === 600_000).length >= 2);
    return { server, clock, asking, quota, headCame };
  };

  it('stalls after ten minutes when there is no head', async () => {
    const { server, clock, asking, quota } = await stalling([{ hold: true }]);
    let isAnswered = false;
    void asking.then(() => {
      isAnswered = true;
    });
    await until(() => server.requests.length === 1);
    clock.pass(599_000);
    await settle();
    expect(isAnswered).toBe(false);
    clock.pass(1_000);
    expect(await asking).toMatchObject({ kind: 'retry_or_split', code: 'stall' });
    expect(quota.released).toBe(1);
  });

  it.each<[string, readonly Step[]]>([
    ['after the head', []],
    ['in the middle of a body', [{ send: chunks(CSV) }]],
  ])('stalls %s', async (_where, sent) => {
    const { clock, asking, quota, headCame } = await stalling([{ send: head(200, CHUNKED) }, ...sent, { hold: true }]);
    await headCame();
    await clock.passUntil(() => quota.released > 0, 700_000, 100_000);
    expect(await asking).toMatchObject({ kind: 'retry_or_split', code: 'stall' });
  });

  it('does not stall while bytes arrive now and then', async () => {
    const [later, last] = [deferred(), deferred()];
    const { clock, asking, headCame } = await stalling([
      { send: head(200, length(CSV)) },
      { send: CSV.slice(0, 900) },
      { until: later.promise },
      { send: CSV.slice(900, 1_000) },
      { until: last.promise },
      { send: CSV.slice(1_000) },
    ]);
    await headCame();
    await settle();
    clock.pass(590_000);
    const waits = clock.set.length;
    later.resolve();
    await until(() => clock.set.length > waits);
    clock.pass(590_000);
    last.resolve();
    expect(await asking).toEqual({ kind: 'data', text: CSV });
    clock.pass(10_000_000);
  });
});

describe('closing an export', () => {
  it.each<[string, readonly Step[]]>([
    ['before the head', []],
    ['within the body', [{ send: head(200, CHUNKED) }, { send: chunks(CSV) }]],
  ])('by an abort %s rejects with its reason', async (_where, sent) => {
    const server = await serve(() => [...sent, { hold: true }]);
    const { service, quota } = exportService(server.url);
    const controller = new AbortController();
    const asking = answerOf(service, { signal: controller.signal });
    await until(() => server.requests.length === 1);
    await settle();
    controller.abort(new Error('enough'));
    await expect(asking).rejects.toThrow('enough');
    expect(quota.released).toBe(1);
  });

  it.each(['identity', 'gzip'])('with an unread body closes the connection (%s)', async (coding) => {
    const bytes = coding === 'gzip' ? GZIP : Buffer.from(CSV);
    const server = await serve(() => [
      { send: head(200, { ...CHUNKED, 'Content-Encoding': coding }) },
      { send: chunks(bytes) },
      { hold: true },
    ]);
    const { service, quota } = exportService(server.url);
    await service.export(EXPORT_REQUEST, new AbortController().signal, async (answer) => {
      if (answer.kind !== 'data') throw new Error(answer.clause);
      for await (const _chunk of answer.stream) break;
    });
    expect(quota.released).toBe(1);
    await service.close();
  });
});

describe('the token', () => {
  it('is sent to one origin only: a redirect is not followed, nor is its address printed', async () => {
    const other = await serve(() => whole(200, CSV, CSV_HEAD));
    const { answer } = await ask(
      whole(302, '', { Location: `${other.url}/login?secret=1&token=${CANARY}`, 'Content-Type': 'text/html' }),
    );
    expect(answer).toMatchObject({ kind: 'config', code: 'redirect' });
    expect(JSON.stringify(answer)).not.toMatch(/secret|canary/);
    expect(other.requests).toEqual([]);
  });
});

describe('an answer that cannot be read as it is', () => {
  const refusal = async (steps: readonly Step[]) => {
    const { answer } = await ask(steps);
    if (answer.kind === 'data') throw new Error('data');
    return answer;
  };

  it.each([
    ['coding', { 'Content-Encoding': 'br' }, 'content_encoding', /compressed .* as br/],
    ['charset', { 'Content-Type': 'text/csv; charset=euc-kr' }, 'charset', /euc-kr/],
  ])('is named: another %s', async (_what, headers, code, named) => {
    const clause = expect.stringMatching(named);
    expect(await refusal(whole(200, CSV, headers))).toMatchObject({ kind: 'unsupported', code, clause });
  });

  it.each([
    ['a page', 200, '<html>', 'retry', 'html_200'],
    ['a reason', 200, '{"message":"too_many_api_requests"}', 'wait', 'too_many_api_requests'],
    ['a failure', 503, '<html>', 'retry', 'unavailable'],
  ])('counts as in UTF-8 if it is no CSV: %s in another charset', async (_title, status, body, kind, code) => {
    const answer = await refusal(whole(status, body, { 'Content-Type': 'text/html; charset=iso-8859-1' }));
    expect(answer).toMatchObject({ kind, code });
  });
});
