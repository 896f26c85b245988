// This folder: the run behind `sync` with its record, its progress, its summary and its notification.

import type { Day } from '../../base/days.ts';
import type { Suppression } from '../../cells/columns/row-filter.ts';
import type { SourceConfig } from '../../config/source.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { plannedWindows } from '../../extract/plan/forecast.ts';
import { deliveryOf, type Plan, planRun } from '../../extract/plan/plan.ts';
import { extractDeps, openExportSession, waitsAsOne } from '../../extract/session.ts';
import type { PriorLoads } from '../../extract/window.ts';
import { priorLoadsOf } from '../../table/state.ts';
import { load, newLoadCounts } from '../../targets/load.ts';
import type { Sink, StreamSink } from '../../targets/sink.ts';
import type { Context } from '../context.ts';
import { createProgress } from './progress.ts';
import { beginRecord } from './record.ts';
import { EMPTY_SUMMARY, type Summary, summaryOf } from './summary.ts';

const TICK_MS = 500;

export interface SyncRun {
  readonly config: SourceConfig;
  readonly days: WantedDays;
  readonly maxWaitMs: number | undefined;
  /** The service address to store in the state instead of the one that is called (the demo's port changes). */
  readonly storedBaseUrl?: string;
}

export interface RunResult {
  readonly summary: Summary;
  readonly error?: unknown;
}

/** Plans, exports and commits; closes the target in any case. Never throws. */
export async function sync(run: SyncRun, open: () => Promise<Sink | StreamSink>, context: Context): Promise<RunResult> {
  const began = context.clock.now();
  let summary: Summary = EMPTY_SUMMARY;
  try {
    const sink = await open();
    const stateful = 'commit' in sink ? sink : undefined;
    try {
      const record = await beginRecord(stateful?.runs, context);
      try {
        const suppression = suppressionOf(run.config);
        requireSuppression('The place', stateful?.state?.suppression, suppression);
        const plan = planLocal(settingsOf(run), priorLoadsOf(stateful?.state), run.days, began);
        const done = await execute({ ...run, suppression }, plan, context, sink);
        summary = done.summary;
        if (done.error !== undefined) throw done.error;
        await record.end(summary);
      } catch (error) {
        await record.fail(summary, error);
        throw error;
      }
    } finally {
      await stateful?.close();
    }
    return { summary };
  } catch (error) {
    return { summary, error };
  }
}

/** The configuration of the plan and of the stored state, whose service address `storedBaseUrl` replaces. */
const settingsOf = ({ config, storedBaseUrl }: SyncRun): SourceConfig => ({
  ...config,
  baseUrl: storedBaseUrl ?? config.baseUrl,
});

async function execute(
  run: SyncRun & { readonly suppression: Suppression | undefined },
  plan: Plan,
  context: Context,
  sink: Sink | StreamSink,
): Promise<RunResult> {
  const began = context.clock.now();
  const progress = createProgress(context);
  const planned = plannedWindows(plan).length;
  let waitingUntil: number | undefined;
  const { maxWaitMs } = run;
  const onWait = waitsAsOne((until) => {
    waitingUntil = until;
  });
  const session = openExportSession(run.config, context, { maxWaitMs, onWait });
  const counts = newLoadCounts();
  const deps = { ...extractDeps(run.config, session.service, context, run.suppression), maxWaitMs, onWait, counts };
  const ticker = setInterval(() => {
    const { windows, rows } = counts.stored;
    progress.update({
      days: windows,
      planned: Math.max(planned, windows),
      exports: counts.exports,
      rows,
      bytes: counts.bytes,
      waitingUntil,
    });
  }, TICK_MS);
  let error: unknown;
  try {
    await load(plan, sink, deps);
  } catch (failure) {
    error = failure;
  } finally {
    clearInterval(ticker);
    progress.stop();
    await session.close();
  }
  return { summary: summaryOf(plan, counts, (context.clock.now() - began) / 1_000), error };
}

/** The days given on the command line, which take precedence over the configuration. */
export interface WantedDays {
  readonly from: Day | undefined;
  readonly to: Day | undefined;
  readonly fullRefresh: boolean;
}

export function planLocal(settings: SourceConfig, prior: PriorLoads, wanted: WantedDays, now: number): Plan {
  const { from, to, fullRefresh } = wanted;
  return planRun({ settings, delivery: deliveryOf(settings.delivery), from, to, fullRefresh, prior, now });
}
