// This folder: the run behind `sync` with its plan, its record, its summary and its notification.

import { messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import { refuseOlderList, SuppressionList } from '../../erasure/suppression-list.ts';
import { readPinnedTypes } from '../../extract/discover-columns.ts';
import { extractDeps } from '../../extract/extract-deps.ts';
import { type PlanInput, planRun } from '../../extract/which-days.ts';
import { type ExportClient, openExportClient } from '../../service/export/client.ts';
import type { Place, Sink, StreamSink } from '../../targets/contract.ts';
import { Load } from '../../targets/load.ts';
import { type CommandConfig, EXPORT_KEYS, requireKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import { openOptions } from '../places.ts';
import { progressOf, withProgress } from '../progress.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { summaryOf } from './summary.ts';

export interface SyncRun {
  readonly place: Place;
  readonly config: CommandConfig;
  /** The days that the caller asks for, which take precedence over the configuration. */
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

/** Opens a place, plans, and exports into it. The place records the run. */
export async function runSync(run: SyncRun, context: Context): Promise<RunOutcome> {
  const { place, daySelection, maxWaitMs } = run;
  const { clock } = context;
  let began = clock.now();
  let sink: Sink | StreamSink | undefined;
  let service: ExportClient | undefined;
  let summaryNow = (): Summary => EMPTY_SUMMARY;
  let error: unknown;
  try {
    const config = requireKeys(run.config, ...EXPORT_KEYS);
    sink = await place.target.open(openOptions(place, config, context, readPinnedTypes(run.schemaFile)));
    // A wait for the lock of the place does not count.
    began = clock.now();
    const suppression = SuppressionList.of(config)?.readFilter(config);
    refuseOlderList('The place', sink.state?.suppressionLength, suppression?.length);
    const { exportState, receipts } = sink.state?.events ?? {};
    const plan = planRun({ ...daySelection, settings: config, state: exportState, receipts, now: began });
    let waitingUntil: number | undefined;
    const onWait = (until: number | undefined) => {
      waitingUntil = until;
    };
    service = openExportClient(config, context, { maxWaitMs, onWait });
    const load = new Load(extractDeps(config, service, context, suppression));
    const keepsCursor = 'commit' in sink;
    summaryNow = () => summaryOf(plan, load.counts, { seconds: (clock.now() - began) / 1_000, keepsCursor });
    const progress = () => progressOf(load.counts, { plannedDays: plan.days.length, began, waitingUntil }, clock.now());
    await withProgress(progress, load.loadAll(plan, sink), context);
  } catch (thrown) {
    error = thrown;
  } finally {
    await service?.close();
  }
  return endRun(sink, { began, summary: summaryNow(), error }, context);
}

/**
 * Ends a run. If its place was opened, records there how it ended, and closes it. `began`: the instant (ms).
 * `summary`: what was done. `error`: what ended it early, if anything did.
 */
export async function endRun(
  sink: Pick<Sink, 'recordRun' | 'close'> | undefined,
  { began, summary, error }: RunOutcome & { readonly began: number },
  context: Context,
): Promise<RunOutcome> {
  const { clock, logger } = context;
  let outcome = outcomeOf(summary, error, context);
  if (sink === undefined) return outcome;
  const { rows, days, exports, bytes, exit: exitCode, error: cause } = outcome.summary;
  const span = { began: isoTime(began), ended: isoTime(clock.now()) };
  try {
    await sink.recordRun({ ...span, exitCode, cause, version: VERSION, rows, days, exports, bytes });
  } catch (recordError) {
    if (error === undefined) outcome = outcomeOf(summary, recordError, context);
    else logger.warn('run.record', `This run could not be recorded: ${messageOf(recordError)}`);
  }
  // What is committed and recorded stays, whatever becomes of the lock.
  await sink.close().catch((closeError: unknown) => {
    logger.warn('run.close', `The place could not be closed: ${messageOf(closeError)}`);
  });
  return outcome;
}

const isoTime = (instant: number): string => new Date(instant).toISOString();

function outcomeOf(summary: Summary, error: unknown, context: Context): RunOutcome {
  if (error === undefined) return { summary };
  const { exit, error: sentence } = failureOf(error, context);
  return { summary: { ...summary, exit, error: sentence }, error };
}
