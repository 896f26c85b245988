// This folder: the run behind `sync` with its record, its progress, its summary and its notification.

import type { Day } from '../../base/days.ts';
import { EXIT, messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import type { Suppression } from '../../cells/columns/scanner.ts';
import type { SourceConfig } from '../../config/source.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { type Plan, planRun } from '../../extract/plan/which-days.ts';
import { extractDeps, openExportClient } from '../../extract/session.ts';
import { priorLoadsOf } from '../../table/place-state.ts';
import type { Sink, StreamSink } from '../../targets/contract.ts';
import { loadDays, loadProfiles, newLoadCounts } from '../../targets/load-days.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import { EMPTY_SUMMARY } from '../results.ts';
import { progressOf, showing } from './progress.ts';
import { type RunResult, summaryOf } from './summary.ts';

export interface SyncRun {
  readonly config: SourceConfig & { readonly ledgerDir?: string | undefined };
  /** The days given on the command line, which take precedence over the configuration. */
  readonly days: { readonly from: Day | undefined; readonly to: Day | undefined; readonly fullRefresh: boolean };
  readonly maxWaitMs: number | undefined;
}

/** Plans, exports and commits; records the run in its place, and closes it in any case. Never throws. */
export async function sync(run: SyncRun, open: () => Promise<Sink | StreamSink>, context: Context): Promise<RunResult> {
  const began = context.clock.now();
  let result: RunResult = { summary: EMPTY_SUMMARY };
  try {
    const sink = await open();
    const stateful = 'commit' in sink ? sink : undefined;
    try {
      const suppression = suppressionOf(run.config);
      requireSuppression('The place', stateful?.state?.suppressionLength ?? 0, suppression);
      const prior = priorLoadsOf(stateful?.state);
      const plan = planRun({ settings: run.config, ...run.days, prior, now: began });
      result = await execute({ ...run, suppression }, plan, context, sink);
    } catch (error) {
      result = { ...result, error };
    } finally {
      try {
        if (stateful !== undefined) await recordRun(stateful, began, result, context);
      } finally {
        await stateful?.close();
      }
    }
    return result;
  } catch (error) {
    return { ...result, error: result.error ?? error };
  }
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
      if ('commit' in sink) error = await loadProfiles(sink, config, { ...deps, profiles: service });
      else logger.warn('profiles.none', 'This target has no table of user profiles.');
    }
    await loadDays(plan, sink, deps);
  };
  try {
    await showing(progress, loading(), context);
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

/** Records a run in its place. Of a run that failed, a record that cannot be written is a warning only. */
export async function recordRun(
  sink: Pick<Sink, 'recordRun'>,
  began: number,
  { summary, error }: RunResult,
  { clock, logger, signal, redactor }: Context,
): Promise<void> {
  const failure = error === undefined ? undefined : failureOf(error, signal);
  const { rows, days, exports, bytes } = summary;
  const record = {
    began: new Date(began).toISOString(),
    ended: new Date(clock.now()).toISOString(),
    exitCode: failure?.exit ?? EXIT.done,
    cause: failure === undefined ? null : redactor.mask(failure.message),
    version: VERSION,
    rows,
    days,
    exports,
    bytes,
  };
  try {
    await sink.recordRun(record);
  } catch (problem) {
    if (failure === undefined) throw problem;
    logger.warn('run.record', `This run could not be recorded: ${messageOf(problem)}`);
  }
}
