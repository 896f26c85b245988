// This folder: parts of the commands `sync`: options, the run with its progress, record and summary, the notification.

import type { SourceConfig } from '../../config/source.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import { extractDeps, openExportSession } from '../../extract/session.ts';
import { summaryOf, type Tally } from '../../extract/summary.ts';
import { type Loaded, type Loader, nothingLoaded } from '../../sinks/load.ts';
import type { Context } from '../context.ts';
import { planLocal, type WantedDays } from './local-plan.ts';
import { createProgress } from './progress.ts';
import { withRunRecord } from './run-record.ts';
import { EMPTY_SUMMARY, type Summary } from './summary.ts';

const TICK_MS = 500;

/** One run of the export into one target. */
export interface SyncRun {
  readonly config: SourceConfig;
  readonly days: WantedDays;
  readonly maxWaitMs: number | undefined;
  /** The service address to store in the state instead of the one that is called (the demo's port changes). */
  readonly storedBaseUrl?: string;
  /** Path of the copy for readers that is published after a run that committed something; if the target supports it. */
  readonly publish?: string | undefined;
  /** Called with the summary when the run ends, successfully or not. */
  onSummary(summary: Summary): void;
}

/** Plans, exports and commits; closes the target in any case. */
export async function sync(run: SyncRun, open: () => Promise<Loader>, context: Context): Promise<void> {
  const began = context.clock.now();
  const loader = await open();
  let summary = EMPTY_SUMMARY;
  const onSummary = (found: Summary) => {
    summary = found;
    run.onSummary(found);
  };
  const settings = { ...run.config, baseUrl: run.storedBaseUrl ?? run.config.baseUrl };
  const work = async () => {
    const plan = planLocal(settings, await loader.readPriorLoads(), run.days, began);
    await execute({ ...run, onSummary }, plan, context, loader);
  };
  const publish = async () => {
    if (run.publish === undefined || summary.windows === 0) return;
    await loader.publish?.(run.publish);
    context.logger.info('run.published', `A copy for readers is in ${run.publish}.`);
  };
  try {
    await withRunRecord(loader.runs, context, () => summary, work, publish);
  } finally {
    await loader.close();
  }
}

/** Executes a plan with a progress display; passes the summary on whether it succeeds or fails. */
async function execute(run: SyncRun, plan: Plan, outer: Context, loader: Loader): Promise<void> {
  const began = outer.clock.now();
  const progress = createProgress(outer.terminal, outer.clock);
  const context: Context = { ...outer, logger: outer.loggerThrough(progress.wrap) };
  const session = openExportSession(run.config, context, run.maxWaitMs);
  const deps = extractDeps(run.config, session.service, context);
  const loaded = nothingLoaded();
  let waitingUntil: number | undefined;
  session.quota.onWait((until) => {
    waitingUntil = until;
  });
  const show = () =>
    progress.update({
      windows: loaded.windows,
      planned: Math.max(plan.windows.length, loaded.windows),
      rows: loaded.rows,
      bytes: deps.tally.bytes,
      quotaLeft: session.quota.forecast(1).left,
      waitingUntil,
    });
  const ticker = setInterval(show, TICK_MS);
  try {
    await loader.load(plan, deps, loaded, show);
  } finally {
    clearInterval(ticker);
    progress.stop();
    await session.close();
    run.onSummary(summarize(plan, deps.tally, loaded, (context.clock.now() - began) / 1_000));
  }
}

function summarize(plan: Plan, tally: Tally, loaded: Loaded, seconds: number): Summary {
  return {
    ...EMPTY_SUMMARY,
    ...summaryOf(plan, tally),
    rows: loaded.rows,
    windows: loaded.windows,
    seconds,
    columns_added: loaded.columnsAdded,
    columns_widened: [...loaded.columnsWidened.values()],
    id_repeats: loaded.idRepeats,
    rescued_cells: [...loaded.rescued.values()].reduce((sum, cells) => sum + cells, 0),
    suppressed_rows: loaded.suppressed,
  };
}
