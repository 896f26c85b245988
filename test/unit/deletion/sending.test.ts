import { describe, expect, it } from 'vitest';
import { configError } from '../../../src/base/errors.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { runDeletionCase } from '../../../src/erasure/case.ts';
import { RateLimiter } from '../../../src/erasure/rate-limiter.ts';
import { quickClock } from '../../support/deletion/deletions.ts';
import { answerOf, names, setUpPlans } from '../../support/deletion/plans.ts';

const setup = setUpPlans();

describe('a run whose ledger cannot be opened', () => {
  it('leaves the ledger to the next run', async () => {
    const { config } = parseDestinationConfig(
      { base_url: 'http://127.0.0.1:9', service_id: 's', import_token: 't', ledger_dir: setup.plans.folders.ledger },
      () => undefined,
    );
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const io = {
      clock: quickClock(),
      random: () => 0.5,
      logger,
      signal: new AbortController().signal,
      lines: undefined,
    };
    const broken = runDeletionCase({
      config,
      io,
      consent: 'configured',
      deleter: { deleteProfile: async () => answerOf('done', '20000') },
      read: () => Promise.reject(new Error('the list broke off')),
    });
    await expect(broken).rejects.toThrow('the list broke off');
    expect((await setup.plans.execute(['a'], () => answerOf('done', '20000'))).report.done).toBe(1);
  });
});

describe('the answer to a deletion', () => {
  it('is requested again if its meaning is unknown, and counted by its code', async () => {
    const { report, asked } = await setup.plans.execute(['a', 'b', 'c'], (id) =>
      id === 'b' ? answerOf('undecided', '40402') : answerOf('done', '20000'),
    );
    expect(asked.sort()).toEqual(['a', 'b', 'b', 'c']);
    expect(report).toMatchObject({ done: 2, undecided: 1, undecided_codes: { 40402: 1 }, requests: 4 });
  });

  it('is said once for each code, where it leaves ids undecided', async () => {
    await setup.plans.execute(['a', 'b', 'c', 'd', 'e'], (id) => {
      if (id === 'e') return answerOf('done', '20000');
      return id === 'd' ? answerOf('retry', '50000') : answerOf('undecided', '40402');
    });
    const said = setup.plans.logged.filter((line) => line.startsWith('The deletion of an id is undecided: the answer'));
    expect(said).toHaveLength(2);
  });

  it('is requested six times if it is a fault; after ten such ids the run stops', async () => {
    const { report, failure, asked } = await setup.plans.execute(names(12), () => answerOf('retry', '50000'));
    expect(asked).toEqual(names(10).flatMap((id) => Array.from({ length: 6 }, () => id)));
    expect(report).toMatchObject({ done: 0, undecided: 12, undecided_codes: { 50000: 10 } });
    expect(failure).toMatchObject({ kind: 'transient' });
    expect(setup.plans.logged).toContain('Nothing more is sent: the answer');
  });

  it('resets that count if it is clear', async () => {
    const answer = (id: string) => (id === 'p5' ? answerOf('rejected', '40001') : answerOf('retry', '50000'));
    const { report, asked } = await setup.plans.execute(names(14), answer);
    expect(new Set(asked)).toEqual(new Set(names(14)));
    expect(report).toMatchObject({ rejected: 1, rejected_codes: { 40001: 1 }, undecided: 13 });
  });

  it('ends the run, and is unknown in the ledger, if the request cannot be sent', async () => {
    const answer = (id: string) => {
      if (id === 'b') throw configError('The proxy is no address.');
      return answerOf('done', '20000');
    };
    const { report, failure } = await setup.plans.execute(['a', 'b', 'c', 'd'], answer);
    expect(report).toMatchObject({ done: 1, undecided: 3 });
    expect(failure).toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^The proxy is no address\. This run deleted 1 of 4 ids/),
    });
    const lines = setup.plans.folders.ledgerLines().filter(({ kind }) => kind === 'after');
    const [first, second, ...rest] = lines.map(({ outcome, code }) => `${outcome} ${code}`);
    expect([first, second]).toEqual(['done 20000', 'undecided failed']);
    expect(new Set([...rest, 'not_sent stopped'])).toEqual(new Set(['not_sent stopped']));
  });
});

describe('a long deletion', () => {
  it('logs each minute its progress and what it waits for', async () => {
    const { plans } = setup;
    const reset = plans.clock.now() + 90_000;
    plans.onLongSleep = () => plans.timers.at(-1)?.call();
    const { report } = await plans.execute(['a', 'b', 'c', 'd'], (id, nth) => {
      if (id === 'b') return answerOf('rejected', '40001');
      if (id !== 'c' || nth > 1) return answerOf('done', '20000');
      expect(plans.timers.at(-1)?.ms).toBe(60_000);
      plans.timers.at(-1)?.call();
      return answerOf('wait', '40401', 0, reset);
    });
    expect(report).toMatchObject({ done: 3, rejected: 1 });
    const lines = plans.logged.filter((line) => line.startsWith('Deleting'));
    expect(lines.slice(0, 2)).toEqual([
      'Deleting: 2 of 4 decided (1 done).',
      "Deleting: 2 of 4 decided (1 done); waiting 90 s for the service's limit to reset.",
    ]);
    const [progress] = plans.events.filter(({ event }) => event === 'erase.progress');
    expect(progress.fields).toEqual({ done: 1, rejected: 1, undecided: 0, total: 4 });
    // Nothing is said any more once the run has ended.
    expect(plans.timers.filter(({ ms }) => ms === 60_000)).toEqual([]);
  });
});

describe('the rate limiter', () => {
  it('releases the slot of a request that was stopped while it waited', async () => {
    const limiter = new RateLimiter(quickClock(), { requestsPerMinute: 60, maxConcurrentRequests: 1 });
    await limiter.acquire(new AbortController().signal);
    limiter.release(undefined);
    const stopped = new AbortController();
    const waiting = limiter.acquire(stopped.signal);
    stopped.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    await limiter.acquire(new AbortController().signal);
  });
});
