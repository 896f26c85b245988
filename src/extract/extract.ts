// This folder: from a plan to verified windows. `plan/` decides which days to request, `download/` requests them until there
// is a verified answer, `spool/` stores it on disk; the files beside them make windows, each with its receipt and state.

import pLimit from 'p-limit';
import { sha256 } from '../base/json.ts';
import { Batch, type BatchLimits, ONE_WINDOW, type Waiting } from './batch.ts';
import { discard, type Run } from './download/run.ts';
import { Scheduler } from './download/schedule.ts';
import type { Plan } from './plan/plan.ts';
import type { ExtractDeps } from './ports.ts';
import { Spool } from './spool/spool.ts';
import type { Window } from './window.ts';
import { WindowBuilder } from './window-builder.ts';

/** Raised whenever a spool file of an older program could be misread. */
const SPOOL_VERSION = 3;

/**
 * Executes a plan: verified windows, in order of days, one at a time. Requesting the next one means that the last one
 * is committed: its files are removed then.
 */
export async function* extractWindows(plan: Plan, deps: ExtractDeps): AsyncGenerator<Window, void, undefined> {
  for await (const [window] of extractBatches(plan, deps, ONE_WINDOW)) yield window;
}

/**
 * Executes a plan: batches of verified windows, in order of days. Requesting the next batch means that the last one is
 * committed: its files are removed then. At most `maxConcurrentExports` windows are downloaded, waiting or handed out
 * at any time, beside those of a batch. Whichever way it ends, nothing stays on disk but verified files that the next run
 * with the same filters can use (S11), or a broken body whose path was reported. Throws the first UserError when its
 * window's turn comes, after the windows before it were handed on.
 */
export async function* extractBatches(
  plan: Plan,
  deps: ExtractDeps,
  limits: BatchLimits,
  onWaiting: (window: Window) => void = () => {},
): AsyncGenerator<readonly Window[], void, undefined> {
  for (const { event, message } of plan.warnings) deps.logger.warn(event, message);
  if (plan.days.length === 0) return;
  const controller = new AbortController();
  const run = await openRun(plan, deps, AbortSignal.any([deps.signal, controller.signal]));
  const scheduler = new Scheduler(run);
  const batch = new Batch(limits, deps.clock);
  try {
    yield* inOrder(run, scheduler, batch, onWaiting);
    // Every wanted day is committed: reusable files of dead runs are of no more use.
    if (!plan.isPartial && deps.sharing?.keep !== true) await run.spool.discardUnused();
  } finally {
    batch.take();
    controller.abort(new Error('the extraction has ended'));
    await scheduler.close();
    await run.spool.close();
  }
}

async function* inOrder(
  run: Run,
  scheduler: Scheduler,
  batch: Batch,
  onWaiting: (window: Window) => void,
): AsyncGenerator<readonly Window[]> {
  const builder = new WindowBuilder(run);
  const most = run.deps.options.maxConcurrentExports;
  try {
    for (;;) {
      run.signal.throwIfAborted();
      scheduler.fill(most);
      if (!(await batch.mayWaitFor(scheduler.ready()))) {
        yield* handOn();
        continue;
      }
      const results = await scheduler.shift();
      if (results === undefined) break;
      for (const result of results) {
        const taken = builder.take(result);
        if (taken === undefined) continue;
        if (batch.sharesDay(taken.window, run.known.rangesInclusive === false)) yield* handOn();
        batch.add(taken);
        onWaiting(taken.window);
        if (batch.isFull) yield* handOn();
      }
    }
  } catch (error) {
    run.signal.throwIfAborted();
    yield* storedBy(batch.take());
    throw error;
  }
  yield* handOn();
  builder.finish();

  async function* handOn() {
    // While the consumer works the others go on; this batch takes one of the places.
    scheduler.fill(most - 1);
    yield* storedBy(batch.take());
  }

  async function* storedBy(waiting: readonly Waiting[]) {
    if (waiting.length === 0) return;
    yield waiting.map(({ window }) => window);
    for (const { download } of waiting) await discard(run, download);
  }
}

/** What the folder of downloads depends on. */
type SpoolDeps = Pick<ExtractDeps, 'options' | 'spoolDir' | 'clock'>;

/**
 * Removes the downloads that a command kept for targets that have all committed them; all reusable ones of the
 * same filters if no command is given.
 */
export async function discardShared(
  plan: Pick<Plan, 'hashes'>,
  deps: SpoolDeps,
  command: string | undefined,
): Promise<void> {
  const spool = await openSpool(plan, deps);
  try {
    await spool.discardUnused(command);
  } finally {
    await spool.close();
  }
}

function openSpool({ hashes }: Pick<Plan, 'hashes'>, { options, spoolDir, clock }: SpoolDeps): Promise<Spool> {
  const fingerprint = sha256([SPOOL_VERSION, hashes.question, options.timezone, options.suppression?.digest]);
  return Spool.open(spoolDir, hashes.question, fingerprint, clock);
}

async function openRun(plan: Plan, deps: ExtractDeps, signal: AbortSignal): Promise<Run> {
  const { final_newline, max_window_days, name_groups, last_receipt } = plan.state;
  return {
    plan,
    deps,
    signal,
    spool: await openSpool(plan, deps),
    limit: pLimit(deps.options.maxConcurrentExports),
    sentBefore: deps.service.sent,
    known: {
      inclusive: plan.inclusive,
      rangesInclusive: plan.rangesInclusive,
      finalNewline: final_newline,
      maxWindowDays: max_window_days,
      nameGroups: name_groups,
      latestToDate: undefined,
      // What these filters have brought before shows that they are valid.
      answered: last_receipt !== undefined && !plan.fullRefresh,
      names: new Set(),
      serviceAheadMs: undefined,
      clockWarned: false,
    },
  };
}
