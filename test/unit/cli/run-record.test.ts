import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { configError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { contextOf } from '../../../src/cli/context.ts';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { recordRun } from '../../../src/cli/run/run.ts';
import { summaryOf } from '../../../src/cli/run/summary.ts';
import { NO_PRIOR_LOADS } from '../../../src/extract/receipt.ts';
import type { RunRecord } from '../../../src/table/place-state.ts';
import { newLoadCounts } from '../../../src/targets/load-days.ts';
import { envOf } from '../../support/env.ts';
import { planFor } from '../../support/extract/extraction.ts';
import { ManualClock } from '../../support/service/service.ts';

const terminal = { result() {}, note() {}, status() {}, interactive: false, columns: 80 };
const contextFor = (signal: AbortSignal) =>
  contextOf({ terminal, clock: systemClock, env: envOf({}), signal }, 'info', 'text');

it('the record of a run holds how it ended, without secrets', async () => {
  const records: Pick<RunRecord, 'exitCode' | 'cause'>[] = [];
  const sink = { recordRun: async ({ exitCode, cause }: RunRecord) => void records.push({ exitCode, cause }) };
  const context = contextFor(new AbortController().signal);
  context.redactor.add(new Secret('canary-token'));
  await recordRun(sink, 0, { summary: EMPTY_SUMMARY }, context);
  await recordRun(sink, 0, { summary: EMPTY_SUMMARY, error: configError('canary-token is no token.') }, context);
  expect(records).toEqual([
    { exitCode: 0, cause: null },
    { exitCode: 2, cause: '****** is no token.' },
  ]);
});

it('a record that cannot be written fails a run that was good, and never hides why another failed', async () => {
  const sink = { recordRun: () => Promise.reject(new Error('the disk is full')) };
  const context = contextFor(new AbortController().signal);
  await expect(recordRun(sink, 0, { summary: EMPTY_SUMMARY }, context)).rejects.toThrow('the disk is full');
  const failed = { summary: EMPTY_SUMMARY, error: configError('The token is wrong.') };
  await expect(recordRun(sink, 0, failed, context)).resolves.toBeUndefined();
});

it('the summary counts the plan when nothing happened, and what happened otherwise', () => {
  const planned = planFor(new ManualClock(Date.UTC(2026, 2, 10, 16)), NO_PRIOR_LOADS, { startDate: '2026-03-09' });
  expect(summaryOf(planned, newLoadCounts(), 2)).toEqual({
    ...EMPTY_SUMMARY,
    seconds: 2,
    from_date: '2026-03-09',
    next_from_date: '2026-03-09',
  });
  const counts = {
    ...newLoadCounts(),
    nextFromDate: '2026-03-15',
    toDateInclusive: false,
    gaps: ['2026-03-11', '2026-03-12'],
  };
  expect(summaryOf(planned, counts, 2)).toMatchObject({
    next_from_date: '2026-03-15',
    to_date_inclusive: false,
    gaps: ['2026-03-11', '2026-03-12'],
  });
});
