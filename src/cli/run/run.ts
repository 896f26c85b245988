// This folder: the run behind `sync` with its record, its progress, its summary and its notification.

import { randomUUID } from 'node:crypto';
import type { Day } from '../../base/days.ts';
import { EXIT, severityOf, UserError } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { hashesOf } from '../../extract/export-request.ts';
import { discardShared } from '../../extract/extract.ts';
import { plannedWindows } from '../../extract/plan/forecast.ts';
import { deliveryOf, type Plan, planRun } from '../../extract/plan/plan.ts';
import type { Sharing } from '../../extract/ports.ts';
import { extractDeps, extractOptions, openExportSession } from '../../extract/session.ts';
import type { PriorLoads } from '../../extract/window.ts';
import { load, newLoadCounts } from '../../sinks/load.ts';
import type { Sink, StreamSink } from '../../sinks/sink.ts';
import { priorLoadsOf } from '../../table/state.ts';
import type { Context } from '../context.ts';
import { type Outcome, outcomeOf } from '../outcome.ts';
import { createProgress } from './progress.ts';
import { beginRecord } from './record.ts';
import { type AlsoSummary, EMPTY_SUMMARY, type Summary, summaryOf } from './summary.ts';

const TICK_MS = 500;

export interface SyncRun {
  readonly config: SourceConfig;
  readonly days: WantedDays;
  readonly maxWaitMs: number | undefined;
  /** The service address to store in the state instead of the one that is called (the demo's port changes). */
  readonly storedBaseUrl?: string;
  /** Set if further targets load the same exports (S54). */
  readonly sharing?: Sharing | undefined;
  /** Path of the copy for readers that is published after a run that committed something; if the target supports it. */
  readonly publish?: string | undefined;
}

/** What a run has done; `error` is what it failed with. */
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
        const plan = planLocal(settingsOf(run), priorLoadsOf(stateful?.state), run.days, began);
        await execute(run, plan, context, sink, (done) => {
          summary = done;
        });
        await record.end(summary);
        if (run.publish !== undefined && summary.windows > 0) {
          await stateful?.publish?.(run.publish);
          context.logger.info('run.published', `A copy for readers is in ${run.publish}.`);
        }
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

interface TargetPlace {
  readonly target: string;
  readonly place: string;
  open(): Promise<Sink | StreamSink>;
}

interface TargetResult extends TargetPlace, RunResult {
  readonly outcome?: Outcome | undefined;
}

/**
 * Loads several targets one after the other from the same exports: what one has downloaded, the others read from the
 * spool (S54). Each has its own plan, cursor and run record; one that fails is named, and the others go on. The summary
 * is that of the first, with the others in `also` and the requests of all; the error is the one with the worst exit
 * code.
 */
export async function syncAll(run: SyncRun, targets: readonly TargetPlace[], context: Context): Promise<RunResult> {
  const { logger, signal } = context;
  const shared = { command: randomUUID(), refusals: new Map() };
  const results: TargetResult[] = targets.map((one) => ({ ...one, summary: EMPTY_SUMMARY }));
  for (const [i, one] of targets.entries()) {
    const { target, place } = one;
    logger.info('sync.loading', `Loading ${target} ${place}.`, { target, place });
    // Keeps the files for the next command if a target has failed and still lacks them.
    const keep = i < targets.length - 1 || results.some(({ outcome }) => outcome !== undefined);
    const publish = i === 0 ? run.publish : undefined;
    const { summary, error } = await sync({ ...run, publish, sharing: { ...shared, keep } }, one.open, context);
    const outcome = error === undefined ? undefined : outcomeOf(error, signal);
    results[i] = { ...one, summary, error, outcome };
    if (outcome === undefined) continue;
    if (signal.aborted) {
      // The targets that were not begun are no more loaded than this one.
      const stopped = results.map((result, at) => (at < i ? result : { ...result, outcome }));
      return { summary: joined(stopped, context), error };
    }
    const fields = { target, place, exit: outcome.exit };
    logger.error('sync.target', `${target} ${place} failed: ${outcome.message}`, fields);
  }
  const unremoved = () => removeShared(run, shared.command, context).catch((error: unknown) => error);
  return { summary: joined(results, context), error: worstError(results) ?? (await unremoved()) };
}

function worstError(results: readonly TargetResult[]): unknown {
  const severity = ({ outcome }: TargetResult) => severityOf(outcome?.exit ?? EXIT.done);
  // If several are equally severe, the earlier target counts.
  const [worst] = results.toSorted((a, b) => severity(b) - severity(a));
  const [first] = results;
  const { outcome, error } = worst;
  if (worst === first || outcome === undefined) return error;
  // `also` has no entry for the first target: the sentence names its failure as well.
  const sentences = [`${worst.target} ${worst.place}: ${outcome.message}`];
  if (first.outcome !== undefined) {
    const { exit, message } = first.outcome;
    sentences.push(`${first.target} ${first.place} failed too (exit ${exit}): ${message}`);
  }
  const kind = error instanceof UserError ? error.kind : 'system';
  return new UserError(kind, sentences.join(' '), { exitCode: outcome.exit, cause: error });
}

/** Removes the shared downloads; called when all targets have committed. */
async function removeShared(run: SyncRun, command: string, context: Context): Promise<void> {
  // If the days were named, other runs may need files of other commands: those stay.
  const isPartial = run.days.from !== undefined || run.days.to !== undefined;
  const { config } = run;
  const deps = { spoolDir: config.spoolDir, clock: context.clock, options: extractOptions(config) };
  await discardShared(hashesOf(settingsOf(run)), deps, isPartial ? command : undefined);
}

/** The configuration of the plan and of the stored state, whose service address `storedBaseUrl` replaces. */
const settingsOf = ({ config, storedBaseUrl }: SyncRun): SourceConfig => ({
  ...config,
  baseUrl: storedBaseUrl ?? config.baseUrl,
});

function joined(results: readonly TargetResult[], { redactor }: Context): Summary {
  const [first, ...others] = results;
  const also = others.map(({ target, place, summary, outcome }): AlsoSummary => {
    const { rows, windows, next_from_date } = summary;
    const { exit, message } = outcome ?? { exit: EXIT.done, message: null };
    return { target, place, rows, windows, next_from_date, exit, error: message && redactor.mask(message) };
  });
  const sum = (key: 'exports' | 'bytes' | 'seconds') => results.reduce((total, { summary }) => total + summary[key], 0);
  return { ...first.summary, exports: sum('exports'), bytes: sum('bytes'), seconds: sum('seconds'), also };
}

/** Executes a plan with a progress display; tells what was done whether it succeeds or fails. */
async function execute(
  run: SyncRun,
  plan: Plan,
  outer: Context,
  sink: Sink | StreamSink,
  onEnd: (summary: Summary) => void,
): Promise<void> {
  const began = outer.clock.now();
  const progress = createProgress(outer);
  const planned = plannedWindows(plan).length;
  const context: Context = { ...outer, logger: outer.loggerThrough(progress.wrap) };
  const session = openExportSession(run.config, context, run.maxWaitMs);
  const counts = newLoadCounts();
  const deps = { ...extractDeps(run.config, session.service, context), sharing: run.sharing, counts };
  let waitingUntil: number | undefined;
  session.quota.onWait((until) => {
    waitingUntil = until;
  });
  const ticker = setInterval(() => {
    const { windows, rows } = counts.stored;
    progress.update({
      windows,
      planned: Math.max(planned, windows),
      rows,
      bytes: counts.bytes,
      quotaLeft: session.quota.forecast(1).left,
      waitingUntil,
    });
  }, TICK_MS);
  try {
    await load(plan, sink, deps);
  } finally {
    clearInterval(ticker);
    progress.stop();
    await session.close();
    onEnd(summaryOf(plan, counts, (context.clock.now() - began) / 1_000));
  }
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
