import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { configError } from '../../../src/base/errors.ts';
import { contextOf } from '../../../src/cli/context.ts';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { runAndRecord } from '../../../src/cli/run/run.ts';
import { envOf } from '../../support/env.ts';

const terminal = { result() {}, note() {}, status() {}, interactive: false, columns: 80 };
it('a record that cannot be written fails a run that was good, and never hides why another failed', async () => {
  const full = new Error('the disk is full');
  const sink = { recordRun: () => Promise.reject(full), close: async () => {} };
  const signal = new AbortController().signal;
  const context = contextOf({ terminal, clock: systemClock, env: envOf({}), signal }, 'info', 'text');
  const summary = EMPTY_SUMMARY;
  expect(await runAndRecord(sink, async () => ({ summary }), context)).toMatchObject({ failure: { error: full } });
  const error = configError('The token is wrong.');
  expect(await runAndRecord(sink, async () => ({ summary, error }), context)).toMatchObject({ failure: { error } });
});
