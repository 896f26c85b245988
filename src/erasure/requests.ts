import { setMaxListeners } from 'node:events';
import { onAbort } from '../base/abort.ts';
import { type Backoff, jitteredPauses, retry } from '../base/retry.ts';
import type { Runtime } from '../base/runtime.ts';
import type { DestinationConfig } from '../config/destination.ts';
import type { DeletionAnswer, DeletionClient } from '../service/deletion-client.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Decision } from './ledger/lines.ts';
import type { ListedId } from './list/id-list.ts';
import { RateLimiter } from './rate-limiter.ts';

/** How often one id is requested. A repeated deletion is harmless. */
const RETRY = { attempts: 6, firstPauseMs: 500, maxPauseMs: 30_000 } as const satisfies Backoff;
/** Attempts after an answer of unknown meaning, which is unlikely to change. */
const UNCLEAR_ATTEMPTS = 2;
/** The service counts as down after so many ids in a row with a passing failure, such as no answer. */
const MAX_FAILURES_IN_ROW = 10;
/** How often one id waits for the limit before the run gives up: for two hours if no reset is named. */
const MAX_WAITS = 120;
/** Time that requests in progress have to finish after the run is stopped (ms). */
const GRACE_MS = 3_000;
/** How often progress is told. On a platform this also meets a stdout that was closed, and ends the run. */
const PROGRESS_MS = 5_000;

/** Counts of the requests of a run and their outcomes, with the names of a report. */
export class RequestCounts {
  /** Requests sent, repeated ones included. */
  requests = 0;
  done = 0;
  rejected = 0;
  /** Ids by the service's code. */
  readonly rejected_codes: Record<string, number> = {};
  /** Undecided ids whose last answer ended the attempts, by its code; none of those that a stop cut off. */
  readonly undecided_codes: Record<string, number> = {};
}

export function countCode(counts: Record<string, number>, code: string): void {
  counts[code] = (counts[code] ?? 0) + 1;
}

/** How an erasure asks the service. */
export interface RequestSettings extends Pick<DestinationConfig, 'requestsPerMinute' | 'maxConcurrentRequests'> {
  readonly deleter: Pick<DeletionClient, 'deleteProfile'>;
  /** True to request also those whom the ledger knows as deleted, or perhaps deleted. */
  readonly again: boolean;
}

/** The ledger has the answer by then. */
export type OnDecided = (id: string, decision: Decision) => void;

interface RequestOptions extends Omit<Runtime, 'env'> {
  readonly ledger: Ledger;
  readonly settings: RequestSettings;
  /** Called once for each id that the service decided. */
  readonly onDecided: OnDecided | undefined;
}

export interface RequestResult {
  readonly counts: Readonly<RequestCounts>;
  /** The answer that ended everything: wrong token, service or address. */
  readonly stoppedBy: DeletionAnswer | undefined;
}

/**
 * Requests each id until it is decided. Until one is decided, only one request is under way. Then they go at the
 * configured rate. Each request has a line in the ledger before and after it. Ends early when the service refuses token
 * or service, when it is down, and when the signal aborts. Rejects when the ledger cannot be written.
 */
export const sendRequests = (listedIds: readonly ListedId[], options: RequestOptions): Promise<RequestResult> =>
  new Sender(options).run(listedIds);

class Sender {
  readonly #counts = new RequestCounts();
  readonly #options: RequestOptions;
  readonly #limiter: RateLimiter;
  /** Aborted when this run is to send no further request. */
  readonly #stop = new AbortController();
  /** Follows `#stop`, and the signal of the caller. */
  readonly #signal: AbortSignal;
  /** Aborted when the requests in progress have had their time to finish. */
  readonly #graceOver = new AbortController();
  #stoppedBy: DeletionAnswer | undefined;
  /** Number of ids in a row whose last attempt met a passing failure. */
  #failuresInRow = 0;

  constructor(options: RequestOptions) {
    this.#options = options;
    this.#limiter = new RateLimiter(options.clock, options.settings.requestsPerMinute);
    this.#signal = AbortSignal.any([options.signal, this.#stop.signal]);
    // Every worker adds a listener; Node would otherwise warn of a leak.
    setMaxListeners(0, this.#signal, this.#graceOver.signal);
  }

  async run(listedIds: readonly ListedId[]): Promise<RequestResult> {
    const { signal, clock, settings } = this.#options;
    // This iterator is not closed by a loop that is left: the next loop goes on with it.
    const queue = listedIds.values();
    const stopListening = onAbort(signal, () => clock.after(GRACE_MS, () => this.#graceOver.abort(signal.reason)));
    const stopProgress = this.#startProgress(listedIds.length);
    try {
      await this.#work(queue, 'first_decision');
      const workers = Array.from({ length: settings.maxConcurrentRequests }, () => this.#work(queue));
      for (const settled of await Promise.allSettled(workers)) if (settled.status === 'rejected') throw settled.reason;
      return { counts: this.#counts, stoppedBy: this.#stoppedBy };
    } finally {
      stopProgress();
      stopListening();
    }
  }

  /** Requests one id after the other, until none is left, no more may be sent, or the first request is decided. */
  async #work(queue: Iterable<ListedId>, until?: 'first_decision'): Promise<void> {
    const { onDecided } = this.#options;
    try {
      for (const listedId of queue) {
        if (this.#signal.aborted) return;
        const decision = this.#noteAnswer(await this.#requestUntilDecided(listedId));
        if (decision === undefined) continue;
        onDecided?.(listedId.id, decision);
        if (until === 'first_decision') return;
      }
    } catch (error) {
      // A stop ends a wait. Any other error, such as a ledger that cannot be written, ends the run.
      if (this.#signal.aborted && error === this.#signal.reason) return;
      this.#stop.abort();
      throw error;
    }
  }

  /** Requests an id until an answer decides it, or the last attempt is made. Throws the signal's reason. */
  async #requestUntilDecided(listedId: ListedId): Promise<DeletionAnswer> {
    const { clock, random } = this.#options;
    const policy = { pauses: jitteredPauses(RETRY, random), clock, signal: this.#signal };
    let waits = 0;
    const attempt = async () => {
      let answer = await this.#request(listedId);
      // A wait for the limit of requests is no attempt.
      while (answer.kind === 'wait' && ++waits < MAX_WAITS) answer = await this.#request(listedId);
      return answer;
    };
    return await retry(policy, attempt, (answer, attempts) => {
      return answer.kind === 'retry' || (answer.kind === 'undecided' && attempts < UNCLEAR_ATTEMPTS);
    });
  }

  /** Sends one request, with a ledger line before and after it. Throws the signal's reason if the run is stopped. */
  async #request({ id: externalId, requestedAt }: ListedId): Promise<DeletionAnswer> {
    const { ledger, settings } = this.#options;
    const id = ledger.keys.idKey.hashOf(externalId);
    await this.#limiter.waitForTurn(this.#signal);
    await ledger.write({ kind: 'before', id });
    // A stop from here on leaves it its time to finish.
    this.#counts.requests++;
    let answer: DeletionAnswer;
    try {
      answer = await settings.deleter.deleteProfile(externalId, this.#graceOver.signal, ledger.history.hasConfirmed);
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      await ledger.write({ kind: 'after', id, outcome: 'undecided', code: 'stopped', status: null });
      throw this.#signal.reason;
    }
    this.#limiter.noteLimits(answer);
    const { kind: outcome, code, status = null } = answer;
    const requested_at = requestedAt === undefined ? undefined : new Date(requestedAt).toISOString();
    await ledger.write({ kind: 'after', id, outcome, code, status, requested_at });
    return answer;
  }

  /** Counts the last answer for an id. Ends the run if every other id would get the same answer. */
  #noteAnswer(answer: DeletionAnswer): Decision | undefined {
    const { kind, code, message } = answer;
    const { rejected_codes, undecided_codes } = this.#counts;
    this.#failuresInRow = kind === 'retry' ? this.#failuresInRow + 1 : 0;
    switch (kind) {
      case 'done':
        this.#counts.done++;
        return 'done';
      case 'rejected':
        this.#counts.rejected++;
        countCode(rejected_codes, code);
        return 'rejected';
      case 'stop':
        this.#stoppedBy ??= answer;
        this.#stop.abort();
        break;
      case 'wait':
        this.#giveUp(answer);
        break;
      default:
        // The report has codes alone: the log has the message of each, once.
        if (undecided_codes[code] === undefined)
          this.#options.logger.warn('erase.undecided', `The deletion of an ID is undecided: ${message}`, { code });
        if (this.#failuresInRow >= MAX_FAILURES_IN_ROW) this.#giveUp(answer);
    }
    countCode(undecided_codes, code);
    return undefined;
  }

  #giveUp({ code, message }: DeletionAnswer): void {
    if (!this.#signal.aborted)
      this.#options.logger.error('erase.given_up', `No further request is sent: ${message}`, { code });
    this.#stop.abort();
  }

  /** Logs a line from time to time, so that a long deletion and every wait are visible. Returns how to stop that. */
  #startProgress(total: number): () => void {
    const { clock, logger } = this.#options;
    const report = () => {
      const { done, rejected } = this.#counts;
      const pausedMs = this.#limiter.pausedMs;
      const waiting = pausedMs > 0 ? `; waiting ${Math.ceil(pausedMs / 1_000)} s for the limit` : '';
      const text = `Requests: ${done + rejected} of ${total} decided, ${done} deleted${waiting}.`;
      logger.info('erase.progress', text, { done, rejected, total });
      cancel = clock.after(PROGRESS_MS, report);
    };
    let cancel = clock.after(PROGRESS_MS, report);
    return () => cancel();
  }
}
