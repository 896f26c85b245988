import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { transientError } from '../../../src/base/errors.ts';
import { code, json, SUCCESS } from '../../support/deletion/deletions.ts';
import { LedgerRuns, NOW } from '../../support/deletion/ledger-runs.ts';
import { answerOf, done, setUpPlans } from '../../support/deletion/plans.ts';

const HOUR = 3_600_000;

let runs: LedgerRuns;
beforeEach(async () => {
  runs = await LedgerRuns.start();
});
afterEach(() => runs.close());

describe('a run after an earlier run', () => {
  it('requests an id again when the earlier run was closed', async () => {
    await runs.go(['a']);
    await runs.go(['a']);
    expect(runs.server.ids()).toEqual(['a', 'a']);
  });

  it('resumes an earlier run of the same list that was killed: proved ids are skipped, the rest is requested, states are exact', async () => {
    runs.answer = ({ id }, response) => (id === 'c' ? code(response, '40201') : json(response, SUCCESS));
    await runs.go(['a', 'b', 'c']);
    expect(runs.folders.ledgerLines().at(-1)?.kind).not.toBe('close');
    runs.answer = (_d, response) => json(response, SUCCESS);
    const output = await runs.go(['b', 'c', 'a', 'b']);
    expect(runs.server.ids()).toEqual(['a', 'b', 'c', 'c']);
    expect(output.text).toContain('"destinationStats":{"recordCount":4,"rejectedRecordCount":0}');
    const opened = runs.folders.ledgerLines().filter(({ kind }) => kind === 'open');
    expect(opened.map(({ resumes }) => resumes)).toEqual([undefined, opened[0].run]);
    expect((await runs.verify()).ok).toBe(true);
    await runs.go(['a', 'b', 'c']);
    expect(runs.server.ids()).toHaveLength(7);
  });

  it('does not fail because the remaining ids are rejected when others were deleted before', async () => {
    runs.answer = ({ id }, response) => (id === 'b' ? code(response, '40201') : json(response, SUCCESS));
    await runs.go(['a', 'b']);
    runs.answer = (_d, response) => code(response, '40001');
    const output = await runs.go(['a', 'b']);
    expect(runs.server.ids()).toEqual(['a', 'b', 'b']);
    expect(output.code).toBe(0);
    expect(output.text).toContain('"destinationStats":{"recordCount":1,"rejectedRecordCount":1}');
  });

  it('resumes several killed runs of the same list', async () => {
    for (const stop of ['b', 'c']) {
      runs.answer = ({ id }, response) => (id === stop ? code(response, '40201') : json(response, SUCCESS));
      await runs.go(['a', 'b', 'c'], { max_concurrent_requests: 1 });
    }
    runs.answer = (_d, response) => json(response, SUCCESS);
    await runs.go(['a', 'b', 'c']);
    expect(runs.server.ids().filter((id) => id === 'a')).toHaveLength(1);
    expect(runs.server.ids().filter((id) => id === 'b')).toHaveLength(2);
  });

  it.each<[string, readonly string[], number]>([
    ['of another list', ['a', 'x'], NOW],
    ['begun a day before', ['a', 'b'], NOW + 24 * HOUR],
    ['begun in what is now the future', ['a', 'b'], NOW - 25 * HOUR],
  ])('does not resume one %s: ids are requested again, and it is named with its date', async (_name, ids, now) => {
    await runs.go(['a', 'b']);
    runs.cutShort();
    const output = await runs.go(ids, {}, now);
    expect(runs.server.ids()).toEqual(['a', 'b', ...ids]);
    const { run, at } = runs.folders.ledgerLines()[0];
    expect(output.text).toContain(`${run} of ${at}`);
    expect((await runs.verify()).ok).toBe(true);
  });

  it('resumes one that began less than a day ago', async () => {
    await runs.go(['a', 'b']);
    runs.cutShort();
    const output = await runs.go(['a', 'b'], {}, NOW + 24 * HOUR - 60_000);
    expect(output.code).toBe(0);
    expect(runs.server.ids()).toEqual(['a', 'b']);
    expect(output.text).not.toContain('never ended');
  });

  it('does not count deletions of a run that began a day before the resumed one', async () => {
    for (const [stop, hours] of [
      ['b', 0],
      ['c', 20],
    ] as const) {
      runs.answer = ({ id }, response) => (id === stop ? code(response, '40201') : json(response, SUCCESS));
      await runs.go(['a', 'b', 'c'], { max_concurrent_requests: 1 }, NOW + hours * HOUR);
    }
    runs.answer = (_d, response) => json(response, SUCCESS);
    await runs.go(['a', 'b', 'c'], { max_concurrent_requests: 1 }, NOW + 30 * HOUR);
    expect(runs.server.ids()).toEqual(['a', 'b', 'b', 'c', 'a', 'c']);
  });

  it('is not misled by a copied file to a run that was already resumed', async () => {
    await runs.go(['a', 'b']);
    runs.cutShort();
    const [first] = runs.folders.ledgerFiles();
    await runs.go(['a', 'b']);
    cpSync(runs.pathOf(0), join(runs.folders.ledger, first.replace('000001', '000003')));
    await runs.go(['a', 'b']);
    expect(runs.server.ids()).toEqual(['a', 'b', 'a', 'b']);
  });

  it('resumes its own list, whatever lists were run before and between', async () => {
    let stop = '';
    runs.answer = ({ id }, response) => (id === stop ? code(response, '40201') : json(response, SUCCESS));
    const list = ['a', 'b', 'c'];
    for (const [ids, stopped] of [
      [['x'], ''],
      [list, 'b'],
      [['y'], ''],
      [list, 'c'],
      [['z'], ''],
      [list, ''],
    ] as const) {
      stop = stopped;
      await runs.go(ids, { max_concurrent_requests: 1 });
    }
    expect(runs.server.ids()).toEqual(['x', 'a', 'b', 'y', 'b', 'c', 'z', 'c']);
  });

  it('ignores a copy of a file under the name of another run', async () => {
    await runs.go(['a', 'b']);
    runs.cutShort();
    await runs.go(['a', 'b']);
    cpSync(runs.pathOf(0), join(runs.folders.ledger, `ledger-000003-${'f'.repeat(16)}.jsonl`));
    await runs.go(['a', 'b']);
    expect(runs.server.ids()).toEqual(['a', 'b', 'a', 'b']);
  });

  it('does not resume one whose resumption was closed', async () => {
    await runs.go(['a', 'b']);
    runs.cutShort();
    await runs.go(['a', 'b']);
    await runs.go(['a', 'b']);
    expect(runs.server.ids()).toEqual(['a', 'b', 'a', 'b']);
  });

  it.each([1, 40, 200])('accepts a last line that was truncated %i bytes before its end', async (bytes) => {
    await runs.go(['a', 'b']);
    runs.cutShort(bytes);
    const output = await runs.go(['a', 'b']);
    expect(output.code).toBe(0);
    expect(runs.server.ids().filter((id) => id === 'a')).toHaveLength(1);
    expect((await runs.verify()).ok).toBe(true);
  });

  it('does not resume a run of another service', async () => {
    await runs.go(['a']);
    runs.cutShort();
    await runs.go(['a'], { service_id: 'other' });
    expect(runs.server.ids()).toEqual(['a', 'a']);
    await runs.go(['a']);
    expect(runs.server.ids()).toEqual(['a', 'a']);
  });

  it('refuses to write after a ledger that was edited', async () => {
    await runs.go(['a', 'b']);
    const text = readFileSync(runs.pathOf(0), 'utf8');
    writeFileSync(runs.pathOf(0), text.replace('"attempt":1', '"attempt":2'));
    const output = await runs.go(['c']);
    expect(output.code).not.toBe(0);
    expect(runs.server.ids()).toEqual(['a', 'b']);
  });
});

const setup = setUpPlans();

it('an id whose rejection a later run of the chain has left undecided is asked for again', async () => {
  const { plans } = setup;
  const rejected = (id: string) => (id === 'a' ? answerOf('rejected', '40001') : done());
  await plans.execute(['b', 'a'], rejected, {}, () => Promise.reject(transientError('in use')));
  const second = await plans.execute(['b', 'a'], () => answerOf('undecided', '40402'));
  const third = await plans.execute(['b', 'a'], done);
  expect([new Set(second.asked), third.asked]).toEqual([new Set(['a']), ['a']]);
});
