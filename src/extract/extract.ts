import pLimit from 'p-limit';
import { configFailure } from '../base/errors.ts';
import { Scanner } from '../schema/scanner.ts';
import { discardAnswer } from './download/ask.ts';
import type { Fetch, Outcome } from './download/outcome.ts';
import { RETRY } from './download/retry.ts';
import type { Knowledge, Run } from './download/run.ts';
import { Downloads } from './download/windows.ts';
import { gapFailure, nameDays } from './plan/gaps.ts';
import type { Plan } from './plan/plan.ts';
import type { ExtractDeps, WindowScanner } from './ports.ts';
import { Progress } from './progress.ts';
import { sha256 } from './question.ts';
import { filesOf, receiptOf } from './receipt.ts';
import { Spool } from './spool/spool.ts';
import { newTally } from './summary.ts';
import type { Window } from './window.ts';

/** Raised whenever a spool file of an older program could be misread. */
const SPOOL_VERSION = 2;

/**
 * Carries out a plan: verified windows, in order of days, one at a time. Asking for the next one says that the last one
 * is committed: its files are removed then. At most `maxConcurrentExports` windows are downloaded, waiting or handed out
 * at any time. Whichever way it ends, nothing stays on disk but verified files that the next run of the same question
 * can use (S11), or a broken body whose path was reported. Throws the first Failure when its window's turn comes.
 */
export async function* extractWindows(plan: Plan, deps: ExtractDeps): AsyncGenerator<Window, void, undefined> {
  for (const { event, message } of plan.warnings) deps.logger.warn(event, message);
  if (plan.days.length === 0) return;
  const controller = new AbortController();
  const run = await openRun(plan, deps, AbortSignal.any([deps.signal, controller.signal]));
  const downloads = new Downloads(run);
  const hand = new HandOver(run);
  try {
    yield* inOrder(run, downloads, hand);
    // Every day wanted is committed: what is left of dead runs is for nobody any more.
    if (!plan.isPartial) await run.spool.discardLeft();
  } finally {
    controller.abort(new Error('the extraction has ended'));
    await downloads.close();
    await run.spool.close();
  }
}

async function* inOrder(run: Run, downloads: Downloads, hand: HandOver): AsyncGenerator<Window, void, undefined> {
  const most = run.deps.options.maxConcurrentExports;
  for (;;) {
    run.signal.throwIfAborted();
    downloads.fill(most);
    const outcomes = await downloads.shift();
    if (outcomes === undefined) break;
    // While the consumer works the others go on; this window takes one of the places.
    downloads.fill(most - 1);
    for (const outcome of outcomes) {
      const window = hand.take(outcome);
      if (window === undefined || outcome.kind !== 'window') continue;
      yield window;
      await discardAnswer(run, outcome.answer);
      hand.committed(window);
    }
  }
  hand.end();
}

/** Turns outcomes into windows, with what must hold between them. */
class HandOver {
  readonly #run: Run;
  readonly #progress: Progress;
  #lost: string[] = [];
  #clamped: string[] = [];
  #refusal: string | undefined;

  constructor(run: Run) {
    this.#run = run;
    this.#progress = new Progress(run.plan);
  }

  take(outcome: Outcome): Window | undefined {
    switch (outcome.kind) {
      case 'gone':
        this.#lose(outcome.day);
        return undefined;
      case 'dropped':
        this.#refusal = outcome.message;
        this.#run.deps.logger.debug('window.dropped', `${outcome.span.first}: ${outcome.message}`);
        return undefined;
      case 'window':
        this.#settleLosses();
        return this.#window(outcome);
    }
  }

  committed(window: Window): void {
    const { tally } = this.#run;
    tally.committed++;
    tally.committedRows += window.receipt.rows;
    tally.nextFromDate = window.state.from_date;
  }

  /** After the last window: losses that no window followed, and a run in which nothing was ever answered. */
  end(): void {
    this.#settleLosses();
    if (this.#refusal !== undefined && !this.#run.known.answered) {
      throw configFailure(
        `The service refuses the export of ${this.#run.plan.firstDay}, which is not over everywhere yet: ${this.#refusal}`,
      );
    }
  }

  #lose(day: string): void {
    if (this.#progress.lose(day) === 'gap') this.#lost.push(day);
    else this.#clamped.push(day);
  }

  /** Days lost one after the other are named together. */
  #settleLosses(): void {
    const { logger } = this.#run.deps;
    const [lost, clamped] = [this.#lost, this.#clamped];
    this.#lost = [];
    this.#clamped = [];
    if (clamped.length > 0) {
      logger.warn('window.clamped', `The service no longer exports ${nameDays(clamped)}: reading goes on after that.`);
    }
    if (lost.length === 0) return;
    if (this.#run.plan.onGap === 'fail') throw gapFailure(lost, this.#run.tally.windows > 0);
    this.#run.tally.gaps.push(...lost);
    logger.warn('window.gap', `The service no longer exports ${nameDays(lost)}: recorded as a gap.`);
  }

  #window(fetch: Fetch): Window {
    const { plan, deps, known, tally } = this.#run;
    const receipt = receiptOf(fetch, this.#progress.coversTo(fetch), deps.options.timezone !== undefined);
    const state = this.#progress.stateAfter(fetch, receipt.id, known, deps.clock.now());
    const before = plan.rowsOf?.(receipt.from, receipt.to);
    if (before !== undefined && receipt.rows + receipt.suppressed < before) {
      deps.logger.warn(
        'window.fewer_rows',
        `${receipt.from} has ${receipt.rows} rows now and had ${before} when it was read before: rows were removed at the service, or a download was cut.`,
        { window: receipt.from, rows: receipt.rows, before },
      );
    }
    this.#tellOfBytes(fetch);
    tally.windows++;
    tally.rows += receipt.rows;
    return { receipt, files: filesOf(fetch), state };
  }

  /** Bytes that are no UTF-8 are kept as U+FFFD: how many cells, and where the first is. */
  #tellOfBytes(fetch: Fetch): void {
    for (const { scan } of fetch.answer.parts) {
      const { cells, first } = scan.invalidUtf8;
      if (first === undefined) continue;
      this.#run.deps.logger.warn(
        'window.invalid_utf8',
        `${fetch.answer.from}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${cells} ${cells === 1 ? 'cell' : 'cells'}, first in row ${first.row}, column ${first.column}.`,
        { window: fetch.answer.from, cells, row: first.row, column: first.column },
      );
    }
  }
}

async function openRun(plan: Plan, deps: ExtractDeps, signal: AbortSignal): Promise<Run> {
  const { options } = deps;
  const fingerprint = sha256([SPOOL_VERSION, plan.hashes.question, options.timezone, options.suppression?.digest]);
  const spool = await Spool.open(deps.spoolDir, plan.hashes.question, fingerprint, deps.clock);
  return {
    plan,
    deps,
    signal,
    spool,
    tally: deps.tally ?? newTally(),
    retry: options.retry ?? RETRY,
    limit: pLimit(options.maxConcurrentExports),
    known: knowledgeOf(plan),
    sentBefore: deps.service.sent,
    scanner: deps.scannerFactory ?? (() => scannerOf(deps)),
  };
}

function scannerOf({ options }: ExtractDeps): WindowScanner {
  const { timezone, suppression, requireSystem } = options;
  return new Scanner({ timezone, requireSystem: requireSystem ?? true, dropRow: suppression?.isSuppressed });
}

const knowledgeOf = (plan: Plan): Knowledge => ({
  inclusive: plan.inclusive,
  finalNewline: plan.state.final_newline,
  confirming: undefined,
  maxWindowDays: plan.state.max_window_days,
  nameGroups: plan.state.name_groups,
  askLimit: undefined,
  // What this question has brought before shows that it is a valid one.
  answered: plan.state.last_receipt !== undefined && !plan.fullRefresh,
  names: new Set(),
  clockWarned: false,
});
