// This folder: from a plan to verified windows. `plan/` decides which days to request, `download/` requests them until
// there is a verified answer, `spool/` stores it on disk; the files beside them make windows, each with its receipt and
// state.

import pLimit from 'p-limit';
import { sha256 } from '../base/json.ts';
import { EVIDENCE_BITS } from '../cells/columns/scan.ts';
import { Batch, type BatchLimits, ONE_WINDOW } from './batch.ts';
import type { ExtractDeps } from './deps.ts';
import { discard, type Extraction } from './download/extraction.ts';
import { Scheduler } from './download/schedule.ts';
import { ServiceFacts } from './download/service-facts.ts';
import type { RequestHashes } from './export-request.ts';
import type { Plan } from './plan/plan.ts';
import { Spool } from './spool/spool.ts';
import { NOTHING_TO_REMOVE } from './spool/spool-writer.ts';
import type { Window } from './window.ts';
import { WindowBuilder } from './window-builder.ts';

/**
 * Version of spool files; a run does not use those of another one, nor those with other bits of evidence. It is raised
 * with each other change of what an export gives: the bytes of its spool file, or the scan in its sidecar.
 */
const SPOOL_VERSION = 3;

/** As `extractBatches`, with one window at a time. */
export async function* extractWindows(plan: Plan, deps: ExtractDeps): AsyncGenerator<Window, void, undefined> {
  for await (const [window] of extractBatches(plan, deps, ONE_WINDOW)) yield window;
}

/**
 * Executes a plan; yields batches of verified windows in the order of days. To request the next batch means that the
 * last one is committed: its files are removed then. At most `maxConcurrentExports` windows are downloaded, waiting or
 * delivered at any time, beside those of a batch. However it ends, only verified files that the next run with the same
 * filters can use, and a broken body whose path was reported, stay on disk. Throws the first UserError when its
 * window's turn comes, after the windows before it were delivered.
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
  const extraction = await openExtraction(plan, deps, AbortSignal.any([deps.signal, controller.signal]));
  const batch = new Batch(limits, deps.clock);
  const scheduler = new Scheduler(extraction, batch);
  try {
    yield* inOrder(extraction, scheduler, batch, onWaiting);
    // Every wanted day is committed, so that reusable files of dead runs are no longer needed.
    if (!plan.isPartial && deps.sharing?.keep !== true) await extraction.spool.discardUnused();
  } finally {
    batch.drain();
    controller.abort(new Error('the extraction has ended'));
    await scheduler.close();
    await extraction.spool.close();
  }
}

async function* inOrder(
  extraction: Extraction,
  scheduler: Scheduler,
  batch: Batch,
  onWaiting: (window: Window) => void,
): AsyncGenerator<readonly Window[]> {
  const builder = new WindowBuilder(extraction);
  const most = extraction.deps.options.maxConcurrentExports;
  try {
    for (;;) {
      extraction.signal.throwIfAborted();
      scheduler.fill(most);
      if (!(await batch.mayWaitFor(scheduler.ready()))) {
        yield* flush();
        continue;
      }
      const results = await scheduler.shift();
      if (results === undefined) break;
      for (const result of results) {
        const window = builder.build(result);
        if (window === undefined) continue;
        if (batch.sharesDay(window, extraction.facts.known.rangesInclusive === false)) yield* flush();
        batch.add(window);
        onWaiting(window);
        if (batch.isFull) yield* flush();
      }
    }
  } catch (error) {
    extraction.signal.throwIfAborted();
    yield* deliver(batch.drain());
    throw error;
  }
  yield* flush();
  builder.finish();

  async function* flush() {
    // Other downloads continue while the consumer works; this batch counts as one of them.
    scheduler.fill(most - 1);
    yield* deliver(batch.drain());
  }

  async function* deliver(windows: readonly Window[]) {
    if (windows.length === 0) return;
    yield windows;
    for (const window of windows) await discard(extraction, window);
    batch.markFlushed();
  }
}

type SpoolDeps = Pick<ExtractDeps, 'options' | 'spoolDir' | 'clock'>;

function openSpool(hashes: RequestHashes, { options, spoolDir, clock }: SpoolDeps): Promise<Spool> {
  const { timezone, suppression } = options;
  const fingerprint = sha256([SPOOL_VERSION, EVIDENCE_BITS, hashes.request, timezone, suppression?.mark]);
  return Spool.open(spoolDir, hashes.request, fingerprint, clock);
}

async function openExtraction(plan: Plan, deps: ExtractDeps, signal: AbortSignal): Promise<Extraction> {
  return {
    plan,
    deps,
    signal,
    spool: await openSpool(plan.hashes, deps),
    limit: pLimit(deps.options.maxConcurrentExports),
    sentBefore: deps.service.sent,
    facts: new ServiceFacts(plan, deps),
    makeRoom: NOTHING_TO_REMOVE,
    paths: [],
  };
}
