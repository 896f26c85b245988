// This folder: the run behind `sync` with its record, its progress, its summary and its notification.

import type { Day } from '../../base/days.ts';
import { EXIT, messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import type { Suppression } from '../../cells/columns/scanner.ts';
import type { SourceConfig } from '../../config/source.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { type Plan, planRun } from '../../extract/plan/which-days.ts';
import { priorLoadsOf } from '../../table/place-state.ts';
import type { Sink, StreamSink } from '../../targets/contract.ts';
import { loadDays, loadProfiles, newLoadCounts } from '../../targets/load-days.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import { EMPTY_SUMMARY } from '../results.ts';
import { progressOf, withProgress } from './progress.ts';
import { type RunResult, summaryOf } from './summary.ts';

export interface SyncRun {
  readonly config: SourceConfig & { readonly ledgerDir?: string | undefined };
  /** The days given on the command line, which take precedence over the configuration. */
  readonly days: { readonly from: Day | undefined; readonly to: Day | undefined; readonly fullRefresh: boolean };
  readonly maxWaitMs: number | undefined;
}

/** Plans, exports and commits; records the run in its place, and closes it in any case. Never throws. */
export async function sync(run: SyncRun, open: () => Promise<Sink | StreamSink>, context: Context): Promise<RunResult> {
  let sink: Sink | StreamSink;
  try {
    sink = await open();
  } catch (error) {
    return { summary: EMPTY_SUMMARY, error };
  }
  const work = async () => {
    const state = 'commit' in sink ? sink.state : undefined;
    const suppression = suppressionOf(run.config);
    requireSuppression('The place', state?.suppressionLength ?? 0, suppression);
    const now = context.clock.now();
    const plan = planRun({ settings: run.config, ...run.days, prior: priorLoadsOf(state), now });
    return await execute({ ...run, suppression }, plan, context, sink);
  };
  return await ('commit' in sink ? recorded(sink, work, context) : settled(work));
}

const settled = (work: () => Promise<RunResult>): Promise<RunResult> =>
  work().catch((error: unknown) => ({ summary: EMPTY_SUMMARY, error }));

/** Does the work of a run on an open place, records there how it ended, and closes the place. Never throws. */
export async function recorded(
  sink: Pick<Sink, 'recordRun' | 'close'>,
  work: () => Promise<RunResult>,
  { clock, logger, signal, redactor }: Context,
): Promise<RunResult> {
  const began = new Date(clock.now()).toISOString();
  let { summary, error } = await settled(work);
  const failure = error === undefined ? undefined : failureOf(error, signal);
  const { rows, days, exports, bytes } = summary;
  const ending = { exitCode: failure?.exit ?? EXIT.done, cause: failure ? redactor.mask(failure.message) : null };
  const ended = new Date(clock.now()).toISOString();
  try {
    await sink.recordRun({ began, ended, ...ending, version: VERSION, rows, days, exports, bytes });
  } catch (problem) {
    if (failure === undefined) error = problem;
    else logger.warn('run.record', `This run could not be recorded: ${messageOf(problem)}`);
  }
  try {
    await sink.close();
  } catch (problem) {
    error ??= problem;
  }
  return { summary, error };
}

async function execute(
  { config, maxWaitMs, suppression }: SyncRun & { readonly suppression: Suppression | undefined },
  plan: Plan,
  context: Context,
  sink: Sink | StreamSink,
): Promise<RunResult> {
  const { clock, logger } = context;
  const began = clock.now();
  let waitingUntil: number | undefined;
  const onWait = (until: number | undefined) => {
    waitingUntil = until;
  };
  const service = openExportClient(config, context, { maxWaitMs, onWait });
  const counts = newLoadCounts();
  const deps = { ...extractDeps(config, service, context, suppression), counts };
  const progress = () => {
    const { exports, bytes, stored } = counts;
    const days = stored.days.length + stored.daysUnchanged.length;
    const planned = Math.max(plan.days.length, days);
    const state = { days, planned, exports, rows: stored.rows, bytes, waitingUntil };
    return progressOf(state, clock.now() - began, clock.now());
  };
  let error: unknown;
  const loading = async () => {
    if (config.userProfiles) {
      if ('commit' in sink) error = await loadProfiles(sink, config, deps);
      else logger.warn('profiles.none', 'This target has no table of user profiles.');
    }
    await loadDays(plan, sink, deps);
  };
  try {
    await withProgress(progress, loading(), context);
  } catch (failure) {
    if (error !== undefined) logger.error('profiles.failed', messageOf(error));
    error = failure;
  } finally {
    await service.close();
  }
  const summary = summaryOf(plan, counts, (clock.now() - began) / 1_000);
  // An Arrow stream has no cursor.
  return { summary: 'commit' in sink ? summary : { ...summary, next_from_date: null }, error };
}
