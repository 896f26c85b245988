// This folder: the deletion itself: guard, pace, requests, checkpoints, report.

import { tmpdir } from 'node:os';
import type { StateStats } from '../../airbyte/messages.ts';
import type { Clock } from '../../base/clock.ts';
import { configFailure, defect, Failure, transientFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { refusalOf } from '../input/refusal.ts';
import { Chain } from '../ledger/chain.ts';
import { Ledger } from '../ledger/ledger.ts';
import { openLedgerStore } from '../ledger/open-store.ts';
import type { LedgerOutput } from '../ledger/output.ts';
import type { LedgerStore, OpenContent } from '../ledger/store.ts';
import type { Stage } from '../stage/stage.ts';
import { StageWriter } from '../stage/stage-writer.ts';
import { Checkpoints, type StateAt } from './checkpoints.ts';
import type { DeletionCounts } from './counts.ts';
import { guardProblem } from './guard.ts';
import { listHash } from './list-hash.ts';
import { DeletionQueue } from './queue.ts';
import { type DeletionReport, failureOf, reportOf } from './report.ts';
import { type ProfileDeleter, sendRequests } from './send-requests.ts';

export interface RunContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Receives the ledger's lines when no ledger folder is configured. */
  readonly lines: LedgerOutput | undefined;
}

/** Writes a state to the platform: the state's text, and the counts of its rows. */
export type EmitState = (text: string, stats: Required<StateStats>) => Promise<void>;

/** Work of the run after its last request and before the ledger's closing line: the purges. */
export type OnCompleted = (ledger: Pick<Ledger, 'purge'>) => Promise<void>;

export interface RunResult {
  readonly report: DeletionReport;
  /** The failure that the run ends with; undefined on success. */
  readonly failure: Failure | undefined;
}

/**
 * One deletion from its first row to its report: `add…` rows, `seal`, look at the counts and the guard, then `execute`
 * or leave it. `close` in any case.
 */
export class DeletionRun {
  readonly #config: DestinationConfig;
  readonly #context: RunContext;
  readonly #ledgers: LedgerStore;
  readonly #writer: StageWriter;
  readonly #began: number;
  #stage: Stage | undefined;
  #open: Pick<OpenContent, 'list' | 'resumes'> = { list: '' };

  private constructor(config: DestinationConfig, context: RunContext, ledgers: LedgerStore, writer: StageWriter) {
    this.#config = config;
    this.#context = context;
    this.#ledgers = ledgers;
    this.#writer = writer;
    this.#began = context.clock.now();
  }

  /** Opens (and locks, where it is real) the ledger and the stage. Nothing is sent. */
  static async open(config: DestinationConfig, context: RunContext, isReal: boolean): Promise<DeletionRun> {
    const ledgers = await openLedgerStore({ config, isReal, clock: context.clock, lines: context.lines });
    try {
      return new DeletionRun(config, context, ledgers, new StageWriter(tmpdir()));
    } catch (error) {
      ledgers.close();
      throw error;
    }
  }

  /** A row with whatever stands in its ID field. */
  addRow(stream: number, id: unknown): void {
    const refusal = refusalOf(id, this.#config.maxIdLength);
    if (refusal !== undefined) this.#writer.addRefused(stream, refusal);
    else this.#writer.addId(stream, String(id));
  }

  /** A row whose request was taken back at its source, with whatever stands in its ID field. */
  addWithdrawn(stream: number, id: unknown): void {
    this.#writer.addWithdrawn(stream, typeof id === 'string' ? id : undefined);
  }

  addState(stream: number | undefined, text: string): void {
    this.#writer.addState(stream, text);
  }

  /** Ends the input, and finds out what an unfinished run of the same list has done. What a run would do, then. */
  async seal(): Promise<DeletionReport> {
    const stage = this.#writer.finish();
    this.#stage = stage;
    const { key } = this.#ledgers;
    const list = key.listHash(this.listHash);
    const { resumes, eachDone, notice } = await this.#ledgers.findUnfinished(list);
    if (notice !== undefined) this.#context.logger.warn('ledger.unfinished', notice);
    if (resumes !== undefined) await stage.markDone(key.idHash, eachDone);
    this.#open = { list, ...(resumes !== undefined && { resumes }) };
    const { counts } = stage;
    const guard = guardProblem(counts.unique - counts.done, this.#config);
    return reportOf({ counts, sent: undefined, guard, run: undefined, head: undefined, seconds: this.#seconds() });
  }

  /** Of exactly the accepted ids, at this service. After `seal`. */
  get listHash(): string {
    return listHash(this.#sealed().digest, this.#config);
  }

  /** The accepted ids, each once, in the order of the input. After `seal`. */
  async *ids(): AsyncGenerator<string> {
    for await (const step of this.#sealed().steps()) if (step.kind === 'id' && step.first === step.at) yield step.id;
  }

  /** Deletes. The guard must have let it pass. Rejects only for what makes going on impossible. */
  async execute(
    deleter: ProfileDeleter,
    emitState: EmitState,
    onCompleted: OnCompleted = async () => {},
  ): Promise<RunResult> {
    const stage = this.#sealed();
    const { counts } = stage;
    const ledger =
      counts.unique === 0
        ? discardingLedger(this.#ledgers, this.#context.clock)
        : await this.#ledgers.start({
            ...this.#open,
            ids: counts.unique - counts.done,
            ...(this.#config.requestedBy !== undefined && { requested_by: this.#config.requestedBy }),
            ...(this.#config.reason !== undefined && { reason: this.#config.reason }),
          });
    try {
      const sent = await this.#run(stage, ledger, deleter, emitState);
      const { signal } = this.#context;
      // A run that did not work its list through leaves its ledger open: the next one goes on with it.
      const isWorked = !signal.aborted && counts.unique - counts.done === sent.done + sent.rejected + sent.undecided;
      const isClosed = isWorked && sent.stoppedBy === undefined;
      // What follows may take long: the last answers are proof before it begins.
      await ledger.sync();
      const open = isClosed ? await failureOfWork(() => onCompleted(ledger)) : unclosed();
      if (open === undefined) await ledger.finish(closingCounts(sent));
      await ledger.sync();
      const { report, failure } = this.#executed(sent, ledger);
      return { report, failure: isClosed ? (open ?? failure) : (failure ?? open) };
    } catch (error) {
      await ledger.sync().catch(() => {});
      // Without a report this is the only message that has the head.
      this.#context.logger.warn('ledger.head', `Head of the ledger: ${ledger.head}`, { head: ledger.head });
      throw error;
    } finally {
      await ledger.close();
    }
  }

  close(): void {
    if (this.#stage) this.#stage.close();
    else this.#writer.discard();
    this.#ledgers.close();
  }

  async #run(stage: Stage, ledger: Ledger, deleter: ProfileDeleter, emitState: EmitState): Promise<DeletionCounts> {
    const { clock, random, logger, signal } = this.#context;
    const checkpoints = new Checkpoints(async ({ at, length }: StateAt, stats) => {
      await ledger.sync();
      await emitState((await stage.state(at, length)).toString(), stats);
    });
    const { unique, done, received } = stage.counts;
    if (received === 0 || done > 0) checkpoints.start();
    const queue = new DeletionQueue(stage, checkpoints);
    try {
      return await sendRequests({
        queue,
        deleter,
        ledger,
        idHash: (id) => this.#ledgers.key.idHash(id),
        limits: {
          requestsPerMinute: this.#config.requestsPerMinute,
          maxConcurrent: this.#config.maxConcurrentRequests,
        },
        total: unique - done,
        clock,
        random,
        logger,
        signal,
        onFirstDone: () => checkpoints.start(),
      });
    } finally {
      await queue.close();
      await checkpoints.flushed();
    }
  }

  #sealed(): Stage {
    if (this.#stage) return this.#stage;
    throw defect('The input of a deletion was used before its end.');
  }

  #executed(sent: DeletionCounts, ledger: Ledger): RunResult {
    const { counts } = this.#sealed();
    const { run, head } = counts.unique === 0 ? {} : ledger;
    const report = reportOf({ counts, sent, guard: undefined, run, head, seconds: this.#seconds() });
    return { report, failure: failureOf(report, this.#config.onRejected, sent.stoppedBy?.message) };
  }

  #seconds(): number {
    return (this.#context.clock.now() - this.#began) / 1_000;
  }
}

/** An input without ids leaves no run behind. */
const discardingLedger = ({ key }: LedgerStore, clock: Clock): Ledger =>
  new Ledger('', new Chain(key), { async write() {}, async close() {} }, clock);

const closingCounts = ({ done, rejected, undecided, requests }: DeletionCounts) => ({
  done,
  rejected,
  undecided,
  requests,
});

/** The failure that a work ends with; what is none is thrown on. */
async function failureOfWork(work: () => Promise<void>): Promise<Failure | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

/** Every id is decided, and what follows the last one, such as a purge, did not take place. */
const unclosed = (): Failure =>
  transientFailure(
    'The run was stopped after its last request: what was to follow, such as a purge, was not done. Run again with the ' +
      'same list: nobody is asked for twice.',
  );

/** Where a real run leaves its proof must be known before anything is read. */
export function requireLedger(config: DestinationConfig): void {
  if (config.ledgerDir !== undefined || config.ledgerKey !== undefined) return;
  throw configFailure(
    'A run that deletes needs a ledger: set ledger_dir, or set ledger_key (or DFINERY_LEDGER_KEY) to have its lines in the log.',
  );
}
