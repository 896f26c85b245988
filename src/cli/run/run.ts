// This folder: the run behind `sync` with its plan, its record, its summary and its notification.

import { messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import { SuppressionList } from '../../erasure/suppression-list.ts';
import { pinnedTypes } from '../../extract/discover-columns.ts';
import { extractDeps } from '../../extract/extract-deps.ts';
import { type PlanInput, planRun } from '../../extract/which-days.ts';
import { openExportClient } from '../../service/export/client.ts';
import type { Place, Sink, StreamSink } from '../../targets/contract.ts';
import { Load } from '../../targets/load.ts';
import { type CommandConfig, EXPORT_KEYS, type ExportConfig, requireKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import { openOptions } from '../places.ts';
import { progressOf, withProgress } from '../progress.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { summaryOf } from './summary.ts';

export interface SyncRun {
  readonly place: Place;
  readonly config: CommandConfig;
  /** The days given on the command line, which take precedence over the configuration. */
  readonly daySelection: Pick<PlanInput, 'from' | 'to' | 'fullRefresh'>;
  readonly maxWaitMs?: number | undefined;
  /** File with a pinned schema. */
  readonly schemaFile?: string | undefined;
}

/** What a run came to: what is done, and what ended it early, if anything did. */
export interface RunOutcome {
  readonly summary: Summary;
  readonly error?: unknown;
}

function failedOutcome(done: Summary, error: unknown, context: Context): RunOutcome {
  const { exit, error: sentence } = failureOf(error, context);
  return { summary: { ...done, exit, error: sentence }, error };
}

/** Opens a place, plans, and exports into it. The place records the run. */
export function runSync(run: SyncRun, context: Context): Promise<RunOutcome> {
  return outcomeOf(async () => {
    const { place } = run;
    const config = requireKeys(run.config, ...EXPORT_KEYS);
    const pinned = pinnedTypes(run.schemaFile);
    const sink = await place.target.open(openOptions(place, config, context, pinned));
    return recordedRun(sink, () => loadInto(sink, run, config, context), context);
  }, context);
}

/** Does the work of a run on an open place, records there how it ended, and closes the place. */
export async function recordedRun(
  sink: Pick<Sink, 'recordRun' | 'close'>,
  work: () => Promise<RunOutcome>,
  context: Context,
): Promise<RunOutcome> {
  const { clock, logger } = context;
  const now = () => new Date(clock.now()).toISOString();
  const began = now();
  let outcome = await outcomeOf(work, context);
  const { rows, days, exports, bytes, exit: exitCode, error: cause } = outcome.summary;
  try {
    await sink.recordRun({ began, ended: now(), exitCode, cause, version: VERSION, rows, days, exports, bytes });
  } catch (error) {
    if (outcome.error === undefined) outcome = failedOutcome(outcome.summary, error, context);
    else logger.warn('run.record', `This run could not be recorded: ${messageOf(error)}`);
  }
  // What is committed and recorded stays, whatever becomes of the lock.
  await sink.close().catch((error: unknown) => {
    logger.warn('run.close', `The place could not be closed: ${messageOf(error)}`);
  });
  return outcome;
}

/** The outcome of work; of work that throws, that nothing is done. */
async function outcomeOf(work: () => Promise<RunOutcome>, context: Context): Promise<RunOutcome> {
  try {
    return await work();
  } catch (error) {
    return failedOutcome(EMPTY_SUMMARY, error, context);
  }
}

/** Plans a run, and loads its days into an open place. */
async function loadInto(
  sink: Sink | StreamSink,
  { daySelection, maxWaitMs }: SyncRun,
  config: ExportConfig,
  context: Context,
): Promise<RunOutcome> {
  const { clock } = context;
  const began = clock.now();
  const { state } = sink;
  const suppression = SuppressionList.of(config)?.filter(config);
  SuppressionList.refuseOlder('The place', state?.suppressionLength, suppression?.length);
  const { exportState, receipts } = state?.events ?? {};
  const plan = planRun({ ...daySelection, settings: config, state: exportState, receipts, now: began });
  let waitingUntil: number | undefined;
  const onWait = (until: number | undefined) => {
    waitingUntil = until;
  };
  const service = openExportClient(config, context, { maxWaitMs, onWait });
  const load = new Load(extractDeps(config, service, context, suppression));
  const progress = () => progressOf(load.counts, { plannedDays: plan.days.length, began, waitingUntil }, clock.now());
  const work = () => load.loadAll(plan, sink);
  const summaryNow = () =>
    summaryOf(plan, load.counts, { seconds: (clock.now() - began) / 1_000, keepsCursor: 'commit' in sink });
  try {
    await withProgress(progress, work, context);
    return { summary: summaryNow() };
  } catch (error) {
    return failedOutcome(summaryNow(), error, context);
  } finally {
    await service.close();
  }
}
