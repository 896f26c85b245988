// This folder: the run behind `sync` with its plan, its progress, its record, its summary and its notification.

import { messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import { readFilterForPlace } from '../../erasure/suppression-list.ts';
import { extractDeps } from '../../extract/extract-deps.ts';
import { type PlanInput, planRun } from '../../extract/which-days.ts';
import { openExportClient } from '../../service/export/client.ts';
import type { Place, Sink, StreamSink } from '../../targets/contract.ts';
import { Load } from '../../targets/load.ts';
import { type CommandConfig, type ExportConfig, requireExportKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { type Failure, failureOf } from '../failure.ts';
import { readPinnedTypes } from '../pinned-types.ts';
import { loadOptions } from '../places.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { withProgress } from '../terminal/progress.ts';
import { progressOf } from './run-progress.ts';
import { summaryOf } from './summary.ts';

/** What a sync is asked to do. */
export interface SyncInput {
  readonly place: Place;
  readonly config: CommandConfig;
  /** The days that the caller asks for, which take precedence over the configuration. */
  readonly daySelection: Pick<PlanInput, 'from' | 'to' | 'fullRefresh'>;
  readonly maxWaitMs?: number | undefined;
  /** File with a pinned schema. */
  readonly schemaFile?: string | undefined;
}

/** What a run came to: what is done, and what ended it early, if anything did. The summary tells of both. */
export interface RunOutcome {
  readonly summary: Summary;
  readonly failure?: Failure | undefined;
}

/** Opens a place, plans, and exports into it. The place records the run, also one that fails. */
export async function runSync(input: SyncInput, context: Context): Promise<RunOutcome> {
  const { place, schemaFile } = input;
  try {
    const config = requireExportKeys(input.config);
    const sink = await place.target.open(loadOptions(place, config, context, readPinnedTypes(schemaFile)));
    return await withRunRecord(sink, () => exportInto(sink, { ...input, config }, context), context);
  } catch (error) {
    return failedRun(EMPTY_SUMMARY, error, context);
  }
}

async function exportInto(
  sink: Sink | StreamSink,
  { config, daySelection, maxWaitMs }: SyncInput & { readonly config: ExportConfig },
  context: Context,
): Promise<RunOutcome> {
  const { clock } = context;
  const began = clock.now();
  const suppression = readFilterForPlace(config, sink.state?.suppressionLength);
  const { exportState, receipts } = sink.state?.events ?? {};
  const plan = planRun({ ...daySelection, settings: config, state: exportState, receipts, now: began });
  let waitingUntil: number | undefined;
  const onWait = (until: number | undefined) => {
    waitingUntil = until;
  };
  const service = openExportClient(config, context, { maxWaitMs, onWait });
  const load = new Load(extractDeps(config, service, context, suppression));
  const progress = () => progressOf(load.result, { plannedDays: plan.days.length, began, waitingUntil }, clock.now());
  const summaryNow = () => {
    const seconds = (clock.now() - began) / 1_000;
    return summaryOf(plan, load.result, { seconds, keepsCursor: sink.kind === 'stateful' });
  };
  try {
    await withProgress(progress, load.loadAll(plan, sink), context);
    return { summary: summaryNow() };
  } catch (error) {
    return failedRun(summaryNow(), error, context);
  } finally {
    await service.close();
  }
}

/** Does the work of a run in a place that is open. Records there how the run ended, and closes it, whatever happened. */
export async function withRunRecord(
  sink: Pick<Sink, 'recordRun' | 'close'>,
  work: () => Promise<RunOutcome>,
  context: Context,
): Promise<RunOutcome> {
  const { clock, logger } = context;
  // A wait for the lock of the place does not count.
  const began = new Date(clock.now()).toISOString();
  let outcome = await work().catch((error: unknown) => failedRun(EMPTY_SUMMARY, error, context));
  const { rows, days, exports, bytes, exit: exitCode, error: cause } = outcome.summary;
  const ended = new Date(clock.now()).toISOString();
  try {
    await sink.recordRun({ began, ended, exitCode, cause, version: VERSION, rows, days, exports, bytes });
  } catch (error) {
    // A run that had failed before is told by its own failure.
    if (outcome.failure === undefined) outcome = failedRun(outcome.summary, error, context);
    else logger.warn('run.record', `This run could not be recorded: ${messageOf(error)}`);
  }
  // What is committed and recorded stays, whatever becomes of the lock.
  await sink.close().catch((error: unknown) => {
    logger.warn('run.close', `The place could not be closed: ${messageOf(error)}`);
  });
  return outcome;
}

/** The outcome of a run that an error has ended, with what was done before it. */
function failedRun(summary: Summary, error: unknown, context: Context): RunOutcome {
  const failure = failureOf(error, context);
  return { summary: { ...summary, exit: failure.exitCode, error: failure.sentence }, failure };
}
