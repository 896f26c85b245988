// This folder: the run behind `sync` with its plan, its record, its summary and its notification.

import { messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import type { SourceConfig } from '../../config/source.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { extractDeps } from '../../extract/extract-deps.ts';
import { type PlanInput, planRun } from '../../extract/which-days.ts';
import { openExportClient } from '../../service/export/client.ts';
import { priorLoadsOf } from '../../table/place-state.ts';
import type { Sink, StreamSink } from '../../targets/contract.ts';
import { Load } from '../../targets/load.ts';
import type { Context } from '../context.ts';
import { RunFailed } from '../failure.ts';
import { progressOf, withProgress } from '../progress.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { summaryOf } from './summary.ts';

export interface SyncRun {
  readonly config: SourceConfig & { readonly spoolDir: string; readonly ledgerDir?: string | undefined };
  /** The days given on the command line, which take precedence over the configuration. */
  readonly days: Pick<PlanInput, 'from' | 'to' | 'fullRefresh'>;
  readonly maxWaitMs?: number | undefined;
}

/**
 * Plans, and exports into an open place. One that keeps what it loads records the run, and is closed. Throws RunFailed;
 * a stream throws what is wrong before the first request as it is.
 */
export async function runSync(run: SyncRun, sink: Sink | StreamSink, context: Context): Promise<Summary> {
  const work = () => loadInto(sink, run, context);
  return 'commit' in sink ? await withRunRecord(sink, work, context) : await work();
}

/** Does the work of a run on an open place, records there how it ended, and closes the place. Throws RunFailed. */
export async function withRunRecord(
  sink: Pick<Sink, 'recordRun' | 'close'>,
  work: () => Promise<Summary>,
  context: Context,
): Promise<Summary> {
  const { clock, logger } = context;
  const now = () => new Date(clock.now()).toISOString();
  const began = now();
  let summary: Summary;
  let failed: RunFailed | undefined;
  try {
    summary = await work();
  } catch (error) {
    failed = error instanceof RunFailed ? error : new RunFailed(EMPTY_SUMMARY, error, context);
    summary = failed.summary;
  }
  const { rows, days, exports, bytes, exit: exitCode, error: cause } = summary;
  try {
    await sink.recordRun({ began, ended: now(), exitCode, cause, version: VERSION, rows, days, exports, bytes });
  } catch (error) {
    if (failed !== undefined) logger.warn('run.record', `This run could not be recorded: ${messageOf(error)}`);
    failed ??= new RunFailed(summary, error, context);
  }
  // What is committed and recorded stays, whatever becomes of the lock.
  await sink.close().catch((error: unknown) => {
    logger.warn('run.close', `The place could not be closed: ${messageOf(error)}`);
  });
  if (failed !== undefined) throw failed;
  return summary;
}

/** Does the work of a run. */
async function loadInto(
  sink: Sink | StreamSink,
  { config, days, maxWaitMs }: SyncRun,
  context: Context,
): Promise<Summary> {
  const { clock, logger } = context;
  const began = clock.now();
  // The place, if it keeps what it loads.
  const stateful = 'commit' in sink ? sink : undefined;
  const suppression = suppressionOf(config);
  requireSuppression('The place', stateful?.state?.suppressionLength, suppression?.length);
  const plan = planRun({ ...days, settings: config, prior: priorLoadsOf(stateful?.state), now: began });
  let waitingUntil: number | undefined;
  const onWait = (until: number | undefined) => {
    waitingUntil = until;
  };
  const service = openExportClient(config, context, { maxWaitMs, onWait });
  const load = new Load(extractDeps(config, service, context, suppression));
  const progress = () => progressOf(load.counts, { plannedDays: plan.days.length, began, waitingUntil }, clock.now());
  const summary = (): Summary => {
    const done = summaryOf(plan, load.counts, (clock.now() - began) / 1_000);
    // A stream has no cursor.
    return stateful === undefined ? { ...done, next_from_date: null } : done;
  };
  if (config.userProfiles && stateful === undefined)
    logger.warn('profiles.none', 'This target has no table of user profiles.');
  // The days are loaded also where the profiles failed.
  const loadAll = async () => {
    const profilesError = config.userProfiles && stateful && (await load.loadProfiles(stateful, config));
    try {
      await load.loadDays(plan, sink);
    } catch (error) {
      if (profilesError) logger.error('profiles.failed', messageOf(profilesError));
      throw error;
    }
    if (profilesError) throw profilesError;
  };
  try {
    await withProgress(progress, loadAll, context);
  } catch (error) {
    throw new RunFailed(summary(), error, context);
  } finally {
    await service.close();
  }
  return summary();
}
