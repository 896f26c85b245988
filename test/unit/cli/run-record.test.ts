import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { configError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { contextOf } from '../../../src/cli/context.ts';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { runAndRecord } from '../../../src/cli/run/run.ts';
import { summaryOf } from '../../../src/cli/run/summary.ts';
import { newExtractCounts } from '../../../src/extract/extract-deps.ts';
import { NO_PRIOR_LOADS } from '../../../src/extract/receipt.ts';
import type { RunRecord } from '../../../src/table/place-state.ts';
import { NOTHING_LOADED } from '../../../src/targets/load.ts';
import { envOf } from '../../support/env.ts';
import { planFor } from '../../support/extract/extraction.ts';
import { ManualClock } from '../../support/service/service.ts';

const terminal = { result() {}, note() {}, status() {}, interactive: false, columns: 80 };
const contextFor = (signal: AbortSignal) =>
  contextOf({ terminal, clock: systemClock, env: envOf({}), signal }, 'info', 'text');

const close = async () => {};
const summary = EMPTY_SUMMARY;

it('the record of a run holds how it ended, without secrets', async () => {
  const records: Pick<RunRecord, 'exitCode' | 'cause'>[] = [];
  const recordRun = async ({ exitCode, cause }: RunRecord) => void records.push({ exitCode, cause });
  const context = contextFor(new AbortController().signal);
  context.redactor.add(new Secret('canary-token'));
  const error = configError('canary-token is no token.');
  await runAndRecord({ recordRun, close }, async () => ({ summary }), context);
  await runAndRecord({ recordRun, close }, async () => ({ summary, error }), context);
  await runAndRecord({ recordRun, close }, () => Promise.reject(error), context);
  expect(records).toEqual([
    { exitCode: 0, cause: null },
    { exitCode: 2, cause: '****** is no token.' },
    { exitCode: 2, cause: '****** is no token.' },
  ]);
});

it('a record that cannot be written fails a run that was good, and never hides why another failed', async () => {
  const full = new Error('the disk is full');
  const sink = { recordRun: () => Promise.reject(full), close };
  const context = contextFor(new AbortController().signal);
  expect(await runAndRecord(sink, async () => ({ summary }), context)).toEqual({ summary, error: full });
  const error = configError('The token is wrong.');
  expect(await runAndRecord(sink, async () => ({ summary, error }), context)).toEqual({ summary, error });
});

it('the summary counts the plan when nothing happened, and what happened otherwise', () => {
  const planned = planFor(new ManualClock(Date.UTC(2026, 2, 10, 16)), NO_PRIOR_LOADS, { startDate: '2026-03-09' });
  const nothing = { ...newExtractCounts(), ...NOTHING_LOADED };
  expect(summaryOf(planned, nothing, 2)).toEqual({
    ...EMPTY_SUMMARY,
    seconds: 2,
    from_date: '2026-03-09',
    next_from_date: '2026-03-09',
  });
  const counts = {
    ...nothing,
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
