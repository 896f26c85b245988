// This folder: the run behind `sync` with its record, its progress, its summary and its notification.

import type { Day } from '../../base/days.ts';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { VERSION } from '../../base/version.ts';
import type { SourceConfig } from '../../config/source.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { type Plan, planRun } from '../../extract/which-days.ts';
import { priorLoadsOf } from '../../table/place-state.ts';
import type { Sink, StreamSink } from '../../targets/contract.ts';
import { Load } from '../../targets/load.ts';
import type { Context } from '../context.ts';
import { type Failure, failureOf } from '../failure.ts';
import { withProgress } from '../progress.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { progressOf } from './progress.ts';
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
  const work = () => loadInto(sink, run, context);
  if ('commit' in sink) return await runAndRecord(sink, work, context);
  const { summary, error } = await settled(work);
  // An Arrow stream has no cursor.
  return resultOf({ summary: { ...summary, next_from_date: null }, error }, context);
}

/** Does the work of a run on an open place, records there how it ended, and closes the place. Never throws. */
export async function runAndRecord(
  sink: Pick<Sink, 'recordRun' | 'close'>,
  work: () => Promise<WorkDone>,
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
  if (closeError !== undefined && (result.failure !== undefined || recordError !== undefined))
    logger.warn('run.close', `The place could not be closed: ${messageOf(closeError)}`);
  return result.failure ? result : resultOf({ summary: result.summary, error: recordError ?? closeError }, context);
}

/** What the work of a run came to: what was done, and what it threw in the end. */
interface WorkDone {
  readonly summary: Summary;
  readonly error?: unknown;
}

const settled = (work: () => Promise<WorkDone>): Promise<WorkDone> =>
  work().catch((error: unknown) => ({ summary: EMPTY_SUMMARY, error }));

function resultOf({ summary, error }: WorkDone, { signal, redactor }: Context): RunResult {
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

/** Does the work of a run. Throws what is wrong before the first request. */
async function loadInto(
  sink: Sink | StreamSink,
  { config, days, maxWaitMs }: SyncRun,
  context: Context,
): Promise<WorkDone> {
  const { clock, logger } = context;
  const began = clock.now();
  const stateful = 'commit' in sink ? sink : undefined;
  const suppression = suppressionOf(config);
  requireSuppression('The place', stateful?.state?.suppressionLength ?? 0, suppression);
  const plan = planRun({ settings: config, ...days, prior: priorLoadsOf(stateful?.state), now: began });
  let waitingUntil: number | undefined;
  const onWait = (until: number | undefined) => {
    waitingUntil = until;
  };
  const service = openExportClient(config, context, { maxWaitMs, onWait });
  const load = new Load(extractDeps(config, service, context, suppression));
  const progress = () => progressOf(load.counts, { plannedDays: plan.days.length, began, waitingUntil }, clock.now());
  const loading = () => loadAll(load, plan, sink, config.userProfiles ? config : undefined, logger);
  const error = await errorOf(withProgress(progress, loading, context));
  const closeError = await errorOf(service.close());
  return { summary: summaryOf(plan, load.counts, (clock.now() - began) / 1_000), error: error ?? closeError };
}

/**
 * Loads the profiles if there are settings for them, then the days, also where the profiles failed. Throws the failure
 * of the days, else that of the profiles.
 */
async function loadAll(
  load: Load,
  plan: Plan,
  sink: Sink | StreamSink,
  profileSettings: SourceConfig | undefined,
  logger: Logger,
): Promise<void> {
  const stores = 'commit' in sink;
  if (profileSettings && !stores) logger.warn('profiles.none', 'This target has no table of user profiles.');
  const profilesError = profileSettings && stores ? await load.loadProfiles(sink, profileSettings) : undefined;
  const daysError = await errorOf(load.loadDays(plan, sink));
  if (daysError !== undefined && profilesError !== undefined) logger.error('profiles.failed', messageOf(profilesError));
  if (daysError !== undefined || profilesError !== undefined) throw daysError ?? profilesError;
}
