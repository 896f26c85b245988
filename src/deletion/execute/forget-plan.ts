import { configFailure } from '../../base/errors.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { DeletionRun, type OnCompleted, type RunContext, type RunResult, requireLedger } from './deletion-run.ts';
import { guard } from './guard.ts';
import { type DeletionReport, nothingAccepted } from './report.ts';
import type { ProfileDeleter } from './send-requests.ts';

export interface ForgetOptions {
  /** `dry_run` in it is ignored: the confirmation is the consent. */
  readonly config: DestinationConfig;
  readonly io: RunContext;
  /** True with `--execute`: the ledger is opened and locked, and `execute` may be called. */
  readonly isReal: boolean;
}

/** A staged list of ids, counted and hashed. Call `close` in any case. */
export interface ForgetPlan {
  /** Of exactly these ids at this service: what `--confirm` must repeat. */
  readonly hash: string;
  readonly report: DeletionReport;
  /** The accepted ids, each once, in the order of the input: for a purge's mapping. */
  ids(): AsyncGenerator<string>;
  /** Deletes, once `confirm` is the plan's own hash and the guard lets it pass. */
  execute(confirm: string, deleter: ProfileDeleter, onCompleted?: OnCompleted): Promise<RunResult>;
  close(): void;
}

/** Reads a whole list of ids and reports what deleting it would do. Sends no request. */
export async function planForget(ids: AsyncIterable<unknown>, options: ForgetOptions): Promise<ForgetPlan> {
  const { config, io, isReal } = options;
  if (isReal) requireLedger(config);
  const run = await DeletionRun.open(config, io, isReal);
  try {
    for await (const id of ids) {
      io.signal.throwIfAborted();
      run.addRow(0, id);
    }
    return new Plan(run, options, await run.seal());
  } catch (error) {
    run.close();
    throw error;
  }
}

class Plan implements ForgetPlan {
  readonly hash: string;
  readonly report: DeletionReport;
  readonly #run: DeletionRun;
  readonly #options: ForgetOptions;

  constructor(run: DeletionRun, options: ForgetOptions, report: DeletionReport) {
    this.#run = run;
    this.#options = options;
    this.hash = run.listHash;
    this.report = report;
  }

  ids(): AsyncGenerator<string> {
    return this.#run.ids();
  }

  async execute(confirm: string, deleter: ProfileDeleter, onCompleted?: OnCompleted): Promise<RunResult> {
    const { config, isReal } = this.#options;
    if (!isReal) throw configFailure('Nothing was deleted: without --execute this is a plan only.');
    if (confirm.trim().toLowerCase() !== this.hash) {
      throw configFailure(
        `Nothing was deleted: the list is not the one that was confirmed. Its hash is ${this.hash}; look at the plan again.`,
      );
    }
    const nothing = nothingAccepted(this.report);
    if (nothing) throw nothing;
    guard(this.report.ids - this.report.done_before, config);
    return this.#run.execute(deleter, async () => {}, onCompleted);
  }

  close(): void {
    this.#run.close();
  }
}
