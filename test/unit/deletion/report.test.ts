import { describe, expect, it } from 'vitest';
import { configError, type UserError } from '../../../src/base/errors.ts';
import type { ListCounts, Refusal } from '../../../src/deletion/input/deletion-list.ts';
import { failureOf, nothingAccepted, reportOf, reportTable } from '../../../src/deletion/report.ts';
import type { DeletionCounts } from '../../../src/deletion/send-requests.ts';
import { answerOf } from '../../support/deletion/plans.ts';

const staged = (more: Partial<ListCounts> = {}): ListCounts => ({
  received: 10,
  duplicates: 1,
  refused: new Map<Refusal, number>([
    ['missing', 2],
    ['blank', 1],
  ]),
  unique: 6,
  done: 1,
  rejectedBefore: 0,
  ...more,
});
const sent = (more: Partial<DeletionCounts> = {}): DeletionCounts => ({
  done: 2,
  rejected: 1,
  undecided: 1,
  codes: new Map([['40001', 1]]),
  unclear: new Map([['50000', 1]]),
  requests: 9,
  stoppedBy: undefined,
  ...more,
});
const part = {
  guard: null,
  run: 'r1',
  head: 'h1',
  seconds: 1.235,
  purge_only: false,
  places: [],
  unreached: [],
};
const executed = (counts: Partial<ListCounts>, more: Partial<DeletionCounts>) =>
  reportOf(staged(counts), sent(more), part);
const none = new Map<Refusal, number>();

describe('a report', () => {
  it('counts as undecided those who were never requested', () => {
    expect(executed({}, {})).toEqual({
      v: 1,
      kind: 'deletion',
      mode: 'executed',
      run: 'r1',
      received: 10,
      refused: { missing: 2, blank: 1 },
      duplicates: 1,
      ids: 6,
      done_before: 1,
      rejected_before: 0,
      purge_only: false,
      places: [],
      unreached: [],
      requests: 9,
      done: 2,
      rejected: 1,
      rejected_codes: { 40001: 1 },
      undecided: 2,
      undecided_codes: { 50000: 1 },
      guard: null,
      stopped_by: null,
      seconds: 1.235,
      head: 'h1',
    });
    expect(executed({}, { stoppedBy: answerOf('stop', '40201') }).stopped_by).toBe('40201');
  });

  it('has, for a plan, no requests and the reason for which a run would stop', () => {
    const plan = reportOf(staged(), undefined, { ...part, guard: 'too many', run: null, head: null });
    const zero = { requests: 0, done: 0, rejected: 0, undecided: 0, rejected_codes: {}, undecided_codes: {} };
    expect(plan).toMatchObject({
      ...zero,
      mode: 'dry_run',
      run: null,
      head: null,
      guard: 'too many',
      stopped_by: null,
    });
  });

  it('has, for a run, a table with a line for every code', () => {
    expect(
      reportTable(executed({}, {}))
        .split('\n')
        .map((line) => line.replace(/ {2,}(?=\d+$)/, ' = ')),
    ).toEqual([
      'rows received = 10',
      '  refused: the ID field is missing or null = 2',
      '  refused: the ID holds nothing visible = 1',
      '  repeated = 1',
      'ids = 6',
      '  done by the unfinished run before = 1',
      'deleted = 2',
      'rejected by the service = 1',
      '  40001 = 1',
      'undecided = 2',
      '  50000 = 1',
      'requests sent = 9',
    ]);
  });

  it('has, for a plan, a table of what would be deleted, with its numbers in one column', () => {
    const plan = (done: number) =>
      reportTable(reportOf(staged({ done, refused: none }), undefined, { ...part, run: null, head: null }));
    expect(plan(1)).toMatch(/\nids +6\n {2}done by the unfinished run before +1\nwould be deleted +5$/);
    expect(plan(0)).toMatch(/\nids +6\nwould be deleted +6$/);
    expect(
      new Set(
        plan(1)
          .split('\n')
          .map((line) => line.length),
      ).size,
    ).toBe(1);
    expect(plan(0).split('\n')[0]).toBe('rows received            10');
  });
});

describe('the failure of a run', () => {
  const clean = { refused: none, done: 0, unique: 3, received: 3 };
  const all = {
    done: 3,
    rejected: 0,
    undecided: 0,
    codes: new Map<string, number>(),
    unclear: new Map<string, number>(),
  };
  const failure = (
    counts: Partial<ListCounts>,
    more: Partial<DeletionCounts>,
    onRejected: 'fail' | 'continue' = 'continue',
    stopped?: UserError,
  ) => failureOf(executed(counts, more), { onRejected, ledgerDir: '/ledger' }, stopped);

  it('is absent if everybody was deleted', () => {
    expect(failure(clean, all)).toBeUndefined();
    expect(failure(clean, all, 'fail')).toBeUndefined();
  });

  it('is the answer that stopped it, before anything else', () => {
    expect(failure({}, {}, 'fail', configError('The token is refused.'))).toMatchObject({
      kind: 'config',
      message: 'The token is refused. This run deleted 2 of 5 ids and left 2 undecided.',
    });
  });

  it('is that ids are undecided, with the codes of their answers where there were any', () => {
    expect(failure({}, {}, 'fail')).toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(
        /^This run deleted 2 of 5 ids and left 2 undecided: .* answer \(50000: 1\)\. Run again/,
      ),
    });
    expect(failure({}, { unclear: new Map() })?.message).toContain('gave no clear answer. Run again');
    const two = new Map([
      ['50000', 1],
      ['odd_body', 2],
    ]);
    expect(failure({}, { unclear: two })?.message).toContain('(50000: 1, odd_body: 2)');
  });

  it('is that the service rejected every id, unless others were deleted, now or before', () => {
    const every = { ...all, done: 0, rejected: 3, codes: new Map([['40001', 3]]) };
    expect(failure(clean, every)).toMatchObject({ kind: 'config', message: expect.stringContaining('(40001: 3)') });
    expect(failure(clean, every)?.exitCode).not.toBe(5);
    expect(failure({ ...clean, unique: 4, done: 1 }, every)).toBeUndefined();
    expect(failure(clean, { ...every, done: 1, rejected: 2 })).toBeUndefined();
    expect(failure({ ...clean, unique: 4, done: 1 }, { ...every, done: 1, rejected: 2 })).toBeUndefined();
    expect(failure({ ...clean, unique: 0 }, { ...all, done: 0 })).toBeUndefined();
  });

  it('is under on_rejected "fail" that rows were refused or ids rejected', () => {
    const refused = { ...clean, received: 5, refused: new Map<Refusal, number>([['blank', 2]]) };
    const some = { ...all, done: 2, rejected: 1, codes: new Map([['40001', 1]]) };
    expect(failure(refused, all, 'fail')).toMatchObject({
      exitCode: 5,
      message: 'on_rejected is "fail": 2 of 5 rows are refused and never sent (2: the ID holds nothing visible).',
    });
    expect(failure(clean, some, 'fail')).toMatchObject({
      exitCode: 5,
      message: 'on_rejected is "fail": the service rejected 1 (40001: 1).',
    });
    expect(failure(refused, some, 'fail')?.message).toMatch(
      /nothing visible\); the service rejected 1 \(40001: 1\)\.$/,
    );
    expect(failure(refused, some)).toBeUndefined();
  });
});

describe('an input', () => {
  const problem = (more: Partial<ListCounts>) => nothingAccepted(executed(more, {}));

  it('is a configuration error if all its rows are refused', () => {
    expect(problem({ unique: 0, received: 3 })).toMatchObject({
      kind: 'config',
      message:
        'Nothing was deleted: 3 of 3 rows are refused and never sent (2: the ID field is missing or null; ' +
        '1: the ID holds nothing visible). Check that the ID field is the right one.',
    });
  });

  it('is valid without rows, or with one id', () => {
    expect(problem({ unique: 0, received: 0, refused: none })).toBeUndefined();
    expect(problem({ unique: 1 })).toBeUndefined();
  });
});
