import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { answerOf, done, names, setUpPlans } from '../../support/deletion/plans.ts';

const CLOSING_MS = 3_000;
const setup = setUpPlans();
const answers = () =>
  setup.plans.folders
    .ledgerLines()
    .filter(({ kind }) => kind === 'after')
    .map(({ outcome, code }) => `${outcome} ${code}`);
const requests = () => setup.plans.folders.ledgerLines().filter(({ kind }) => kind === 'before').length;

describe('a run that is stopped', () => {
  it('gives its requests some seconds to end, sends no other, and records the answers in the ledger', async () => {
    const { plans } = setup;
    const { report, failure, asked } = await plans.execute(names(6), async (id) => {
      if (id !== 'p1') return done();
      // Time for the next one to have its line in the ledger: it waits for this one's place.
      await expect.poll(requests).toBe(3);
      plans.stop.abort(new Error('SIGTERM'));
      await setImmediate();
      return done();
    });
    expect(asked).toEqual(['p0', 'p1']);
    expect(report).toMatchObject({ done: 2, undecided: 4, requests: 2 });
    expect(failure?.kind).toBe('transient');
    expect(answers()).toEqual(['done 20000', 'done 20000', 'not_sent stopped']);
    expect(plans.kinds().at(-1)).toBe('after');
    // Whoever stops it again once it has ended stops nothing.
    expect(plans.timers.filter(({ ms }) => ms === CLOSING_MS)).toHaveLength(1);
  });

  it('aborts a request that does not end by then, whose answer is unknown', async () => {
    const { plans } = setup;
    const cut: unknown[] = [];
    const { report, failure } = await plans.execute(['a', 'b', 'c'], (id, _nth, signal) => {
      if (id === 'a') return done();
      plans.stop.abort(new Error('SIGTERM'));
      cut.push(signal.aborted);
      plans.timers.find(({ ms }) => ms === CLOSING_MS)?.call();
      cut.push(signal.aborted, signal.reason);
      return Promise.reject(signal.reason);
    });
    expect(cut).toEqual([false, true, new Error('SIGTERM')]);
    expect(report).toMatchObject({ done: 1, undecided: 2, undecided_codes: {}, requests: 2 });
    expect(failure?.message).toContain('gave no clear answer. Run again');
    expect(answers().slice(0, 2)).toEqual(['done 20000', 'undecided failed']);
  });

  it('after its end is not affected', async () => {
    const { plans } = setup;
    await plans.execute(['a'], done);
    plans.stop.abort(new Error('SIGTERM'));
    expect(plans.timers.filter(({ ms }) => ms === CLOSING_MS)).toEqual([]);
  });

  it('during the pause after a fault leaves that id undecided at once', async () => {
    const { plans } = setup;
    const { report, asked } = await plans.execute(['a', 'b'], (_id, nth) => {
      if (nth === 2) plans.stop.abort(new Error('SIGTERM'));
      return answerOf('retry', '50000');
    });
    expect(asked).toEqual(['a', 'a']);
    expect(report).toMatchObject({ undecided: 2, undecided_codes: {}, requests: 2 });
  });

  it('during a wait for the limit ends at once', async () => {
    const { plans } = setup;
    plans.onLongSleep = () => plans.stop.abort(new Error('SIGTERM'));
    const { report, asked } = await plans.execute(['a', 'b'], () => answerOf('wait', '40401'));
    expect(asked).toEqual(['a']);
    expect(report).toMatchObject({ undecided: 2, requests: 1 });
    expect(plans.clock.slept.filter((ms) => ms > 30_000)).toEqual([]);
  });

  it('before its first request sends none', async () => {
    const { plans } = setup;
    const ids = (function* () {
      yield 'a';
      plans.stop.abort(new Error('SIGTERM'));
    })();
    const { report } = await plans.run(ids);
    expect(report).toMatchObject({ done: 0, undecided: 1, requests: 0 });
    expect(plans.kinds()).toEqual(['open']);
  });
});

describe('waits for the rate limit', () => {
  it('end the run after two hours without a decision, counted anew from each decision', async () => {
    const fifty = (_id: string, nth: number) => (nth <= 50 ? answerOf('wait', '40401') : done());
    const { report, failure } = await setup.plans.execute(names(5), fifty);
    expect(failure).toBeUndefined();
    expect(report).toMatchObject({ done: 5, requests: 255 });
  });

  it('end the run after 120 in a row, with a message', async () => {
    const { plans } = setup;
    const { report, asked } = await plans.execute(['a', 'b'], () => answerOf('wait', '40401'));
    expect(asked).toHaveLength(120);
    expect(report).toMatchObject({ undecided: 2, undecided_codes: {} });
    expect(plans.events.filter(({ event }) => event === 'erase.given_up')).toMatchObject([
      { level: 'error', message: 'Nothing more is sent: the answer', fields: { code: '40401' } },
    ]);
  });
});

describe('a service that is down', () => {
  it('is reported once, though several requests are under way', async () => {
    const { plans } = setup;
    const answer = (id: string) => (id === 'p0' ? done() : answerOf('retry', '50000'));
    const { report } = await plans.execute(names(40), answer, { max_concurrent_requests: 5 });
    expect(report.undecided_codes[50000]).toBeGreaterThanOrEqual(10);
    expect(report.undecided_codes[50000]).toBeLessThan(30);
    expect(plans.events.filter(({ event }) => event === 'erase.given_up')).toHaveLength(1);
  });

  it('ends the run with the first answer that refuses the token', async () => {
    const codes = ['40201', '40202', '40203', '40204'];
    const answer = (id: string) => (id === 'p0' ? done() : answerOf('stop', codes.shift() ?? '40209'));
    const { report } = await setup.plans.execute(names(12), answer, { max_concurrent_requests: 4 });
    expect(report).toMatchObject({ stopped_by: '40201', done: 1 });
  });
});

describe('deletion requests', () => {
  it('are sent one at a time until the first success, and then concurrently', async () => {
    let [under, most, mostBefore] = [0, 0, 0];
    let isDone = false;
    await setup.plans.execute(
      names(30),
      async (id) => {
        under++;
        most = Math.max(most, under);
        if (!isDone) mostBefore = Math.max(mostBefore, under);
        for (let turn = 0; turn < 20; turn++) await setImmediate();
        under--;
        if (Number(id.slice(1)) < 3) return answerOf('rejected', '40001');
        isDone = true;
        return done();
      },
      { max_concurrent_requests: 4, requests_per_minute: 1_000_000 },
    );
    expect([mostBefore, most]).toEqual([1, 4]);
  });

  it('are counted by the outcome of their ids, including unknown outcomes', async () => {
    const { plans } = setup;
    const kinds = { a: answerOf('done', '20000'), b: answerOf('rejected', '40001'), c: answerOf('undecided', '40402') };
    const { report } = await plans.execute(['b', 'c', 'a', 'd'], (id) => {
      if (id === 'd') plans.timers.at(-1)?.call();
      return id === 'b' ? kinds.b : id === 'c' ? kinds.c : kinds.a;
    });
    expect(plans.logged).toContain('Deleting: 3 of 4 decided (1 done).');
    expect([report.rejected_codes, report.undecided_codes]).toEqual([{ 40001: 1 }, { 40402: 1 }]);
  });

  it('are numbered in the ledger, each with its answer', async () => {
    const answer = (_id: string, nth: number) => (nth < 3 ? answerOf('retry', '50000') : done());
    await setup.plans.execute(['a'], answer);
    const lines = setup.plans.folders.ledgerLines().slice(1, -1);
    expect(lines.map(({ kind, attempt, outcome }) => [kind, attempt, outcome])).toEqual([
      ['before', 1, undefined],
      ['after', 1, 'retry'],
      ['before', 2, undefined],
      ['after', 2, 'retry'],
      ['before', 3, undefined],
      ['after', 3, 'done'],
    ]);
  });

  it('are retried after growing pauses of up to half a minute', async () => {
    const { plans } = setup;
    await plans.execute(['a'], () => answerOf('retry', '50000'), { requests_per_minute: 1_000_000 });
    expect(plans.clock.slept.filter((ms) => ms >= 200)).toEqual([250, 500, 1_000, 2_000, 4_000]);
  });
});
