import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { configError, systemError } from '../../../src/base/errors.ts';
import { contextOf } from '../../../src/cli/context.ts';
import { failureOf, logFailure } from '../../../src/cli/failure.ts';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { withRunRecord } from '../../../src/cli/run/run.ts';
import { NO_TERMINAL } from '../../../src/cli/terminal/terminal.ts';

const SYSTEM = { terminal: NO_TERMINAL, clock: systemClock, env: {}, signal: new AbortController().signal };
const goodRun = async () => ({ summary: EMPTY_SUMMARY });

it('a record that cannot be written fails a run that was good, and never hides why another failed', async () => {
  const full = new Error('the disk is full');
  const sink = { recordRun: () => Promise.reject(full), close: async () => {} };
  const context = contextOf(SYSTEM, () => {}, 'info');
  expect(await withRunRecord(sink, goodRun, context)).toMatchObject({ failure: { error: full } });
  const error = configError('The token is wrong.');
  expect(await withRunRecord(sink, () => Promise.reject(error), context)).toMatchObject({ failure: { error } });
});

it('a place that cannot be closed is warned of: the run is committed and recorded', async () => {
  const logLines: string[] = [];
  const context = contextOf(SYSTEM, ({ message }) => logLines.push(message), 'info');
  const sink = { recordRun: async () => {}, close: () => Promise.reject(new Error('the lock is gone')) };
  const { summary, failure } = await withRunRecord(sink, goodRun, context);
  expect([summary, failure]).toEqual([EMPTY_SUMMARY, undefined]);
  expect(logLines).toEqual([expect.stringContaining('The place could not be closed: the lock is gone')]);
});

it('the debug log has what a failure says to maintainers', () => {
  const logLines: string[] = [];
  const context = contextOf(SYSTEM, ({ level, message }) => logLines.push(`${level} ${message}`), 'debug');
  for (const error of [systemError('DuckDB refused it.', { detail: 'Binder Error' }), configError('It is wrong.')])
    logFailure(failureOf(error, context), context.logger);
  expect(logLines).toEqual(['error DuckDB refused it.', 'debug Binder Error', 'error It is wrong.']);
});
