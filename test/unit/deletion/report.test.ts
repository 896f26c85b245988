import { describe, expect, it } from 'vitest';
import { configError, type UserError } from '../../../src/base/errors.ts';
import { type DeletionReport, deletionFailure, nothingAccepted, reportTable } from '../../../src/erasure/report.ts';

/** The report of a run over six ids, one of which an earlier run has deleted. */
function executed(more: Partial<DeletionReport> = {}): DeletionReport {
  const report = {
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
    requests: 9,
    done: 2,
    rejected: 1,
    rejected_codes: { 40001: 1 },
    undecided_codes: { 50000: 1 },
    guard: null,
    purge_only: false,
    places: [],
    unreached: [],
    stopped_by: null,
    seconds: 1.235,
    head: 'h1',
    ...more,
  } as const;
  const { ids, done_before, rejected_before, done, rejected } = report;
  return { ...report, undecided: ids - done_before - rejected_before - done - rejected };
}

describe('a report', () => {
  it('of a run has a table with a line for each code', () => {
    expect(
      reportTable(executed())
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

  it('of a plan has a table of ids to be deleted, with aligned numbers', () => {
    const plan = (done_before: number) => reportTable(executed({ mode: 'dry_run', done_before, refused: {} }));
    expect(plan(1)).toMatch(/\nids +6\n {2}done by the unfinished run before +1\nwould be deleted +5$/);
    expect(plan(0)).toMatch(/\nids +6\nwould be deleted +6$/);
    const lengths = plan(1)
      .split('\n')
      .map((line) => line.length);
    expect(new Set(lengths).size).toBe(1);
    expect(plan(0).split('\n')[0]).toBe('rows received            10');
  });
});

describe('the failure of a run', () => {
  /** Three ids, all of them deleted. */
  const clean = { refused: {}, done_before: 0, ids: 3, received: 3, done: 3, rejected: 0 };
  const failure = (more: Partial<DeletionReport>, onRejected: 'fail' | 'continue' = 'continue', stopped?: UserError) =>
    deletionFailure(executed(more), { onRejected, ledgerDir: '/ledger' }, stopped);

  it('is absent if every id was deleted', () => {
    expect(failure(clean)).toBeUndefined();
    expect(failure(clean, 'fail')).toBeUndefined();
  });

  it('is the answer that stopped it, before any other reason', () => {
    expect(failure({}, 'fail', configError('The token is refused.'))).toMatchObject({
      kind: 'config',
      message: 'The token is refused. This run deleted 2 of 5 ids and left 2 undecided.',
    });
  });

  it('names undecided ids with the codes of their answers', () => {
    expect(failure({}, 'fail')).toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(
        /^This run deleted 2 of 5 ids and left 2 undecided: .* answer \(50000: 1\)\. Run again/,
      ),
    });
    expect(failure({ undecided_codes: {} })?.message).toContain('gave no clear answer. Run again');
    expect(failure({ undecided_codes: { 50000: 1, odd_body: 2 } })?.message).toContain('(50000: 1, odd_body: 2)');
  });

  it('says that the service rejected every id, unless others were deleted now or before', () => {
    const every = { ...clean, done: 0, rejected: 3, rejected_codes: { 40001: 3 } };
    expect(failure(every)).toMatchObject({ kind: 'config', message: expect.stringContaining('(40001: 3)') });
    expect([failure(every)?.exitCode, failure(every, 'fail')?.exitCode]).toEqual([2, 5]);
    expect(failure({ ...every, ids: 4, done_before: 1 })).toBeUndefined();
    expect(failure({ ...every, done: 1, rejected: 2 })).toBeUndefined();
    expect(failure({ ...every, ids: 4, done_before: 1, done: 1, rejected: 2 })).toBeUndefined();
    expect(failure({ ...clean, ids: 0, done: 0 })).toBeUndefined();
  });

  it('under on_rejected "fail" names refused rows and rejected ids', () => {
    const refused = { ...clean, received: 5, refused: { blank: 2 } };
    const some = { done: 2, rejected: 1, rejected_codes: { 40001: 1 } };
    expect(failure(refused, 'fail')).toMatchObject({
      exitCode: 5,
      message: 'on_rejected is "fail": 2 of 5 rows are refused and never sent (2: the ID holds nothing visible).',
    });
    expect(failure({ ...clean, ...some }, 'fail')).toMatchObject({
      exitCode: 5,
      message: 'on_rejected is "fail": the service rejected 1 (40001: 1).',
    });
    expect(failure({ ...refused, ...some }, 'fail')?.message).toMatch(
      /nothing visible\); the service rejected 1 \(40001: 1\)\.$/,
    );
    expect(failure({ ...refused, ...some })).toBeUndefined();
  });
});

describe('the input of a deletion', () => {
  const problem = (more: Partial<DeletionReport>) => nothingAccepted(executed(more), { onRejected: 'continue' });

  it('is a configuration error if all its rows are refused', () => {
    expect(problem({ ids: 0, received: 3 })).toMatchObject({
      kind: 'config',
      message:
        'Nothing was deleted: 3 of 3 rows are refused and never sent (2: the ID field is missing or null; ' +
        '1: the ID holds nothing visible). Check that the ID field is the right one.',
    });
  });

  it('is valid without rows, or with one id', () => {
    expect(problem({ ids: 0, received: 0, refused: {} })).toBeUndefined();
    expect(problem({ ids: 1 })).toBeUndefined();
  });
});
