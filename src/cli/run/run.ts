// This folder: the run behind `sync` with its record, its progress, its summary and its notification.

import type { Day } from '../../base/days.ts';
import { messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import type { SourceConfig } from '../../config/source.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { planRun } from '../../extract/which-days.ts';
import { priorLoadsOf } from '../../table/place-state.ts';
import type { Sink, StreamSink } from '../../targets/contract.ts';
import { Load } from '../../targets/load.ts';
import type { Context } from '../context.ts';
import { type Failure, failureOf } from '../failure.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { progressOf, withProgress } from './progress.ts';
import { summaryOf } from './summary.ts';

export interface SyncRun {
  readonly config: SourceConfig & { readonly spoolDir: string; readonly ledgerDir?: string | undefined };
  /** The days given on the command line, which take precedence over the configuration. */
  readonly days: { readonly from: Day | undefined; readonly to: Day | undefined; readonly fullRefresh: boolean };
  readonly maxWaitMs: number | undefined;
}

export interface RunResult {
  /** With the exit code and the sentence of the failure, if there is one. */
  readonly summary: Summary;
  readonly failure?: Failure;
}

/** Plans, exports and commits; records the run in its place, and closes it in any case. Never throws. */
export async function runSync(
  run: SyncRun,
  open: () => Promise<Sink | StreamSink>,
  context: Context,
): Promise<RunResult> {
  let sink: Sink | StreamSink;
  try {
    sink = await open();
  } catch (error) {
    return resultOf({ summary: EMPTY_SUMMARY, error }, context);
  }
  const place = 'commit' in sink ? sink : undefined;
  const work = () => loadInto(sink, place, run, context);
  if (place !== undefined) return await runAndRecord(place, work, context);
  const { summary, error } = await settled(work);
  // An Arrow stream has no cursor.
  return resultOf({ summary: { ...summary, next_from_date: null }, error }, context);
}

/** Does the work of a run on an open place, records there how it ended, and closes the place. Never throws. */
export async function runAndRecord(
  sink: Pick<Sink, 'recordRun' | 'close'>,
  work: () => Promise<Work>,
  context: Context,
): Promise<RunResult> {
  const { clock, logger } = context;
  const began = new Date(clock.now()).toISOString();
  const result = resultOf(await settled(work), context);
  const { rows, days, exports, bytes, exit: exitCode, error: cause } = result.summary;
  const ended = new Date(clock.now()).toISOString();
  const record = { began, ended, exitCode, cause, version: VERSION, rows, days, exports, bytes };
  const recordError = await errorOf(sink.recordRun(record));
  if (result.failure !== undefined && recordError !== undefined)
    logger.warn('run.record', `This run could not be recorded: ${messageOf(recordError)}`);
  const closeError = await errorOf(sink.close());
  return result.failure ? result : resultOf({ summary: result.summary, error: recordError ?? closeError }, context);
}

/** What the work of a run came to: what was done, and what it threw in the end. */
interface Work {
  readonly summary: Summary;
  readonly error?: unknown;
}

const settled = (work: () => Promise<Work>): Promise<Work> =>
  work().catch((error: unknown) => ({ summary: EMPTY_SUMMARY, error }));

function resultOf({ summary, error }: Work, { signal, redactor }: Context): RunResult {
  if (error === undefined) return { summary };
  const failure = failureOf(error, signal);
  return { summary: { ...summary, exit: failure.exit, error: redactor.mask(failure.message) }, failure };
}

/** What a step throws; undefined if it succeeds. */
const errorOf = (step: Promise<void>): Promise<unknown> =>
  step.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Does the work of a run. `place`: the sink, if it stores its loads. Throws what is wrong before the first request. */
async function loadInto(
  sink: Sink | StreamSink,
  place: Sink | undefined,
  { config, days, maxWaitMs }: SyncRun,
  context: Context,
): Promise<Work> {
  const { clock, logger } = context;
  const began = clock.now();
  const suppression = suppressionOf(config);
  requireSuppression('The place', place?.state?.suppressionLength ?? 0, suppression);
  const plan = planRun({ settings: config, ...days, prior: priorLoadsOf(place?.state), now: began });
  let waitingUntil: number | undefined;
  const onWait = (until: number | undefined) => {
    waitingUntil = until;
  };
  const service = openExportClient(config, context, { maxWaitMs, onWait });
  const load = new Load(extractDeps(config, service, context, suppression));
  const loading = async () => {
    const profilesError = config.userProfiles && place ? await load.loadProfiles(place, config) : undefined;
    if (config.userProfiles && !place) logger.warn('profiles.none', 'This target has no table of user profiles.');
    const daysError = await errorOf(load.loadDays(plan, sink));
    if (daysError !== undefined && profilesError !== undefined)
      logger.error('profiles.failed', messageOf(profilesError));
    if (daysError !== undefined || profilesError !== undefined) throw daysError ?? profilesError;
  };
  const progress = () => progressOf(load.counts, { days: plan.days.length, began, waitingUntil }, clock.now());
  const error = await errorOf(withProgress(progress, loading(), context));
  await service.close();
  return { summary: summaryOf(plan, load.counts, (clock.now() - began) / 1_000), error };
}
