import { mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { transientError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { proveErasure } from '../../../src/erasure/ledger/verify.ts';
import { answerOf, done, setUpPlans } from '../../support/deletion/plans.ts';

const setup = setUpPlans();
const folder = () => setup.plans.folders.ledger;

describe('the proof of an erasure', () => {
  const prove = (id: string, serviceId?: string, path = folder()) => {
    const service = serviceId === undefined ? undefined : { baseUrl: 'http://127.0.0.1:9', serviceId };
    return proveErasure(id, { folder: path, key: undefined, service });
  };

  it('lists every answer with its position, and who requested it', async () => {
    const { plans } = setup;
    const answer = (_id: string, nth: number) => (nth === 1 ? answerOf('retry', '50000') : done());
    await plans.execute(['a'], answer, { requested_by: 'dpo', reason: 'art. 17' });
    await plans.execute(['a'], () => answerOf('rejected', '40001'));
    const [one, two] = plans.folders.ledgerFiles();
    const by = { requested_by: 'dpo', reason: 'art. 17', file: one, service_id: 's', base_url: 'http://127.0.0.1:9' };
    expect(await prove('a')).toMatchObject({
      erased: true,
      service_id: 's',
      base_url: 'http://127.0.0.1:9',
      answers: [
        { ...by, outcome: 'retry', code: '50000', line: 3 },
        { ...by, outcome: 'done', code: '20000', line: 5, status: 200 },
        { outcome: 'rejected', code: '40001', line: 3, file: two, requested_by: null, reason: null },
      ],
    });
    expect(await prove('a', 'other')).toMatchObject({ erased: false, answers: [], service_id: 'other' });
    const elsewhere = { baseUrl: 'http://127.0.0.1:8', serviceId: 's' };
    const there = await proveErasure('a', { folder: folder(), key: undefined, service: elsewhere });
    expect(there).toMatchObject({ erased: false, answers: [], base_url: elsewhere.baseUrl });
  });

  it('has the purge of a run that went on with the one in which the id was deleted', async () => {
    const { plans } = setup;
    await plans.execute(['a', 'b'], done, {}, () => Promise.reject(transientError('in use')));
    const { asked } = await plans.execute(['a', 'b'], done, {}, async () => {});
    const { purges, answers } = await prove('a');
    expect([asked, answers.length]).toEqual([[], 1]);
    expect(purges.map(({ outcome, file }) => [outcome, file])).toEqual([
      ['open', plans.folders.ledgerFiles()[0]],
      ['done', plans.folders.ledgerFiles()[1]],
    ]);
  });

  it('has no purge of a run in which the id was requested again and not deleted', async () => {
    const { plans } = setup;
    const run = async (
      hours: number,
      answers: Record<string, 'done' | 'rejected' | 'undecided'>,
      isPurged: boolean,
    ) => {
      await plans.clock.sleep(hours * 3_600_000);
      const answer = (id: string) => answerOf(answers[id] ?? 'stop', '0');
      const removing = () => (isPurged ? Promise.resolve() : Promise.reject(transientError('in use')));
      return (await plans.execute(['a', 'b'], answer, {}, removing)).asked;
    };
    expect(new Set(await run(0, { a: 'done', b: 'undecided' }, false))).toEqual(new Set(['a', 'b']));
    expect(new Set(await run(20, { b: 'undecided' }, false))).toEqual(new Set(['b']));
    // The run that deleted a is too old by now: a is requested again, and the purge is of b alone.
    expect(new Set(await run(5, { a: 'rejected', b: 'done' }, true))).toEqual(new Set(['a', 'b']));
    const outcomes = async (id: string) => (await prove(id)).purges.map(({ outcome }) => outcome);
    expect([await outcomes('a'), await outcomes('b')]).toEqual([['open', 'open'], ['done']]);
  });

  it('does not say that people are still in a place from which a run before has removed them', async () => {
    const { plans } = setup;
    await plans.execute(
      ['a', 'b'],
      (id) => answerOf(id === 'a' ? 'done' : 'undecided', '0'),
      {},
      async () => {},
    );
    const { asked } = await plans.execute(
      ['a', 'b'],
      () => answerOf('stop', '40201'),
      {},
      async () => {},
    );
    const { purges } = await prove('a');
    expect(asked).toEqual(['b']);
    expect(purges).toMatchObject([
      { outcome: 'done', counts: { rows: 1 } },
      {
        outcome: 'open',
        unreached: [expect.stringMatching(/still there unless another line says that they were removed/)],
      },
    ]);
  });

  it('requires the name of a service if the ledger has several', async () => {
    const { plans } = setup;
    await plans.execute(['a'], done);
    await plans.execute(['b'], done, { service_id: 'other' });
    await expect(prove('a')).rejects.toThrow('is of several services');
    expect(await prove('a', 's')).toMatchObject({ erased: true });
    expect(await prove('b', 's')).toMatchObject({ erased: false, answers: [] });
    expect(await prove('b', 'other')).toMatchObject({ erased: true });
  });

  it('names no service if the ledger is empty', async () => {
    mkdirSync(folder());
    const key = new Secret('k'.repeat(32));
    expect(await proveErasure('a', { folder: folder(), key, service: undefined })).toMatchObject({
      erased: false,
      base_url: null,
      service_id: null,
    });
  });
});
