import { tmpdir } from 'node:os';
import type { StateStats } from '../../airbyte/messages.ts';
import type { Clock } from '../../base/clock.ts';
import { configFailure, type Failure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { Chain } from '../ledger/chain.ts';
import { Ledger } from '../ledger/ledger.ts';
import type { LedgerOutput } from '../ledger/output.ts';
import { type LedgerPlace, openLedgerPlace } from '../ledger/place.ts';
import { guardProblem } from '../stage/guard.ts';
import { refusalOf } from '../stage/refusal.ts';
import { type Stage, StageWriter } from '../stage/stage.ts';
import { Checkpoints, type StateAt } from './checkpoints.ts';
import type { Deleter } from './deleter.ts';
import { execute } from './execute.ts';
import { Feed } from './feed.ts';
import { type DeletionReport, failureOf, reportOf } from './report.ts';
import type { Tally } from './tally.ts';

export interface ErasureIo {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Where the ledger's lines go when there is no folder for them. */
  readonly lines: LedgerOutput | undefined;
}

/** How a state is told: the state's text, and the counts of its rows. */
export type Echo = (text: string, stats: Required<StateStats>) => Promise<void>;

/** What belongs to the run once its list is worked through, before its closing line: purges, say. */
export type Afterwards = (ledger: Pick<Ledger, 'purge'>) => Promise<void>;

export interface Executed {
  readonly report: DeletionReport;
  /** What the run must end with; undefined when all is well. */
  readonly failure: Failure | undefined;
}

/**
 * One deletion from its first row to its report: `add…` rows, `seal`, look at the counts and the guard, then `execute`
 * or leave it. `close` in any case.
 */
export class Erasure {
  readonly #config: DestinationConfig;
  readonly #io: ErasureIo;
  readonly #place: LedgerPlace;
  readonly #writer: StageWriter;
  readonly #began: number;
  #stage: Stage | undefined;

  private constructor(config: DestinationConfig, io: ErasureIo, place: LedgerPlace, writer: StageWriter) {
    this.#config = config;
    this.#io = io;
    this.#place = place;
    this.#writer = writer;
    this.#began = io.clock.now();
  }

  /** Opens (and locks, where it is real) the ledger and the stage. Nothing is sent. */
  static async open(config: DestinationConfig, io: ErasureIo, isReal: boolean): Promise<Erasure> {
    const place = await openLedgerPlace({ config, isReal, clock: io.clock, lines: io.lines });
    const writer = new StageWriter(tmpdir(), place.key.idHash);
    const erasure = new Erasure(config, io, place, writer);
    try {
      await place.eachDone((idHash) => writer.markDone(idHash));
      return erasure;
    } catch (error) {
      erasure.close();
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

  /** Ends the input; from now on the stage can be read. */
  seal(): Stage {
    this.#stage ??= this.#writer.finish();
    return this.#stage;
  }

  /** What a run would do. */
  plan(): DeletionReport {
    const { counts } = this.seal();
    const guard = guardProblem(counts.unique - counts.done, this.#config);
    return reportOf({ counts, tally: undefined, guard, run: undefined, head: undefined, seconds: this.#seconds() });
  }

  /** Deletes. The guard must have let it pass. Rejects only for what makes going on impossible. */
  async execute(deleter: Deleter, echo: Echo, afterwards: Afterwards = async () => {}): Promise<Executed> {
    const stage = this.seal();
    const { counts } = stage;
    const ledger =
      counts.unique === 0
        ? nothingToSay(this.#place, this.#io.clock)
        : await this.#place.start({
            ids: counts.unique - counts.done,
            ...(this.#config.requestedBy !== undefined && { requested_by: this.#config.requestedBy }),
            ...(this.#config.reason !== undefined && { reason: this.#config.reason }),
          });
    try {
      const tally = await this.#run(stage, ledger, deleter, echo);
      const { signal } = this.#io;
      // A run that did not work its list through leaves its ledger open: the next one goes on with it.
      const isWorked = !signal.aborted && counts.unique - counts.done === tally.done + tally.rejected + tally.undecided;
      if (isWorked && tally.stoppedBy === undefined) {
        await afterwards(ledger);
        await ledger.finish(closingCounts(tally));
      }
      await ledger.sync();
      return this.#executed(tally, ledger);
    } finally {
      await ledger.close();
    }
  }

  close(): void {
    if (this.#stage) this.#stage.close();
    else this.#writer.discard();
    this.#place.close();
  }

  async #run(stage: Stage, ledger: Ledger, deleter: Deleter, echo: Echo): Promise<Tally> {
    const { clock, random, logger, signal } = this.#io;
    const checkpoints = new Checkpoints(async ({ at, length }: StateAt, stats) => {
      await ledger.sync();
      await echo((await stage.state(at, length)).toString(), stats);
    });
    const { unique, done, received } = stage.counts;
    if (received === 0 || done > 0) checkpoints.unhold();
    const feed = new Feed(stage, checkpoints);
    try {
      return await execute({
        feed,
        deleter,
        ledger,
        idHash: (id) => this.#place.key.idHash(id),
        pace: {
          requestsPerMinute: this.#config.requestsPerMinute,
          maxConcurrent: this.#config.maxConcurrentRequests,
        },
        total: unique - done,
        clock,
        random,
        logger,
        signal,
        onFirstDone: () => checkpoints.unhold(),
      });
    } finally {
      await feed.close();
      await checkpoints.settled();
    }
  }

  #executed(tally: Tally, ledger: Ledger): Executed {
    const { counts } = this.seal();
    const { run, head } = counts.unique === 0 ? {} : ledger;
    const report = reportOf({ counts, tally, guard: undefined, run, head, seconds: this.#seconds() });
    return { report, failure: failureOf(report, this.#config.onRejected, tally.stoppedBy?.message) };
  }

  #seconds(): number {
    return (this.#io.clock.now() - this.#began) / 1_000;
  }
}

/** An input without ids leaves no run behind. */
const nothingToSay = ({ key }: LedgerPlace, clock: Clock): Ledger =>
  new Ledger('', new Chain(key), { async write() {}, async close() {} }, clock);

const closingCounts = ({ done, rejected, undecided, requests }: Tally) => ({ done, rejected, undecided, requests });

/** Where a real run leaves its proof must be known before anything is read. */
export function requireLedger(config: DestinationConfig): void {
  if (config.ledgerDir !== undefined || config.ledgerKey !== undefined) return;
  throw configFailure(
    'A run that deletes needs a ledger: set ledger_dir, or set ledger_key (or DFINERY_LEDGER_KEY) to have its lines in the log.',
  );
}
