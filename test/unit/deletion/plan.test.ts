import { describe, expect, it } from 'vitest';
import { configError } from '../../../src/base/errors.ts';
import { answerOf, done, names, setUpPlans } from '../../support/deletion/plans.ts';

const setup = setUpPlans();
const without = { ledger_dir: undefined };

describe('a plan of deletions', () => {
  it('requires a ledger before it reads an id, unless it is a dry run', async () => {
    let isRead = false;
    const ids = (function* () {
      isRead = true;
      yield 'a';
    })();
    await expect(setup.plans.run(ids, without)).rejects.toThrow('needs a ledger: set ledger_dir');
    expect(isRead).toBe(false);
    const dry = await setup.plans.plan(['a'], without);
    expect(dry.report).toMatchObject({ mode: 'dry_run', ids: 1, run: null, head: null });
  });

  it('is confirmed by its hash in capitals and with spaces', async () => {
    const real = await setup.plans.plan(['a']);
    const { report } = await real.execute(` ${real.hash.toUpperCase()}\n`, { deleteProfile: async () => done() });
    expect(report.done).toBe(1);
  });

  it('is refused when no row has an id, and begins no run', async () => {
    const { plans } = setup;
    await expect(plans.execute(['', null, ' '], done)).rejects.toThrow(
      /3 of 3 rows are refused .* Check that the ID field is the right one/,
    );
    expect(plans.folders.ledgerFiles()).toEqual([]);
    expect(await plans.execute([], done)).toMatchObject({ report: { run: null, head: null, ids: 0 }, asked: [] });
    expect(plans.folders.ledgerFiles()).toEqual([]);
  });

  it('stops reading when it is stopped, and unlocks the ledger', async () => {
    const { plans } = setup;
    const taken: string[] = [];
    const ids = (function* () {
      for (const id of names(5)) {
        taken.push(id);
        if (id === 'p2') plans.stop.abort(new Error('SIGTERM'));
        yield id;
      }
    })();
    await expect(plans.plan(ids)).rejects.toThrow('SIGTERM');
    expect(taken).toEqual(['p0', 'p1', 'p2']);
    await expect(plans.plan([])).resolves.toBeDefined();
  });
});

describe('a deletion', () => {
  it('stays open and purges nothing if the service does not answer, and is resumed', async () => {
    const { plans } = setup;
    let purges = 0;
    const purge = async () => void purges++;
    const down = (id: string) => (id === 'p0' ? done() : answerOf('retry', '50000'));
    const first = await plans.execute(names(13), down, {}, purge);
    expect(first.failure).toMatchObject({
      kind: 'transient',
      message: expect.stringContaining('This run deleted 1 of 13 ids and left 12 undecided'),
    });
    expect(plans.kinds().at(-1)).toBe('after');
    expect(purges).toBe(0);
    const second = await plans.execute(names(13), done, {}, purge);
    expect(second.asked).toEqual(names(13).slice(1));
    expect(second.report).toMatchObject({ ids: 13, done_before: 1, done: 12, undecided: 0 });
    expect(second.failure).toBeUndefined();
    expect(purges).toBe(1);
    const [, opened] = plans.folders.ledgerLines().filter(({ kind }) => kind === 'open');
    expect(opened).toMatchObject({ ids: 12, resumes: expect.any(String) });
    expect(plans.kinds().at(-1)).toBe('close');
  });

  it('closes its ledger after its last id, with or without undecided ids', async () => {
    const { plans } = setup;
    const answer = (id: string) => (id === 'b' ? answerOf('undecided', '40402') : done());
    const { failure } = await plans.execute(['a', 'b', 'c'], answer);
    expect(failure?.message).toContain('gave no clear answer (40402: 1)');
    expect(plans.folders.ledgerLines().at(-1)).toMatchObject({
      kind: 'close',
      counts: { done: 2, rejected: 0, undecided: 1, requests: 4 },
    });
  });

  it('reports its deletions if its purge fails, and stays open', async () => {
    const { plans } = setup;
    const purge = async () => {
      throw configError('The table is locked.');
    };
    const { report, failure } = await plans.execute(['a'], done, {}, purge);
    expect(failure?.message).toBe('The table is locked.');
    expect(report).toMatchObject({ done: 1, head: plans.folders.ledgerLines().at(-1)?.mac });
    expect(plans.kinds()).toEqual(['open', 'before', 'after', 'purging', 'purge']);
    expect(plans.folders.ledgerLines().at(-1)).toMatchObject({ outcome: 'open', unreached: ['The table is locked.'] });
  });

  it('reports the head of its ledger in its own field if it is stopped', async () => {
    const { plans } = setup;
    const purge = async () => {
      plans.stop.abort(new Error('SIGTERM'));
      plans.stop.signal.throwIfAborted();
    };
    await expect(plans.execute(['a'], done, {}, purge)).rejects.toThrow('SIGTERM');
    const [head] = plans.events.filter(({ event }) => event === 'ledger.head');
    expect(head).toMatchObject({ level: 'warn', fields: { head: plans.folders.ledgerLines().at(-1)?.mac } });
  });

  it('measures its seconds by the given clock', async () => {
    const { report } = await setup.plans.execute(names(3), done, { requests_per_minute: 60 });
    expect(report.seconds).toBeGreaterThan(1.9);
    expect(report.seconds).toBeLessThan(4);
  });

  it('reports its progress within the remaining ids of a resumed list', async () => {
    const { plans } = setup;
    const stop = (id: string) => (id === 'c' ? answerOf('stop', '40201') : done());
    const { report, failure } = await plans.execute(['a', 'b', 'c'], stop);
    expect(report).toMatchObject({ done: 2, undecided: 1, stopped_by: '40201' });
    expect(failure).toMatchObject({
      kind: 'config',
      message: 'the answer This run deleted 2 of 3 ids and left 1 undecided.',
    });
    await plans.execute(['a', 'b', 'c'], () => {
      plans.timers.at(-1)?.call();
      return done();
    });
    expect(plans.logged).toContain('Deleting: 0 of 1 decided (0 done).');
  });
});
