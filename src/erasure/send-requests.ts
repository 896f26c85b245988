import { setMaxListeners } from 'node:events';
import { transientError } from '../base/errors.ts';
import { pauseAfter, type RetryPolicy } from '../base/retry.ts';
import type { Runtime } from '../base/runtime.ts';
import type { DeletionAnswer, DeletionClient } from '../service/delete/client.ts';
import type { Decision, DeletionList } from './input/deletion-list.ts';
import type { Ledger } from './ledger/ledger.ts';
import { RateLimiter, type RateLimits } from './rate-limiter.ts';

/** How often one id is requested, and when the run gives up. A repeated deletion is harmless. */
const DELETION_RETRY = {
  attempts: 6,
  /** Attempts after an answer of unknown meaning, which is unlikely to change. */
  unclearAttempts: 2,
  baseMs: 500,
  capMs: 30_000,
  /**
   * Consecutive ids without an answer, after all their attempts, after which the service counts as down and the run
   * stops.
   */
  maxUnansweredInARow: 10,
  /** Consecutive waits for the limit after which the run stops: two hours where it does not say how long. */
  maxWaitsInARow: 120,
} as const satisfies RetryPolicy & Record<string, number>;

/** Time that requests in progress have to finish after the run is stopped (ms). */
const CLOSING_MS = 3_000;
const REPORT_MS = 60_000;

/** Counts of the requests of a run and their outcomes; with the names of a report. */
export const newCounts = () => ({
  /** Requests sent, repeated ones included. */
  requests: 0,
  done: 0,
  rejected: 0,
  /** Ids whose deletion was requested with an unknown outcome. */
  undecided: 0,
  /** Ids, by the service's code. */
  rejected_codes: {} as Record<string, number>,
  /** Undecided ids that had an answer, by the code of the last one. */
  undecided_codes: {} as Record<string, number>,
  stoppedBy: undefined as DeletionAnswer | undefined,
});

export type RequestCounts = ReturnType<typeof newCounts>;

/** Sends one deletion, without any retry or pacing of its own; never throws for what the service or the network did. */
export type ProfileDeleter = Pick<DeletionClient, 'deleteProfile'>;

interface SendOptions extends Omit<Runtime, 'env'> {
  /** Gets the decision on each of its ids, and starts to emit its states with the first that is done. */
  readonly list: DeletionList;
  readonly counts: RequestCounts;
  readonly ledger: Ledger;
  readonly limits: RateLimits;
  readonly deleter: ProfileDeleter;
}

/**
 * Requests every id of the list that is not decided: one at a time until one succeeds, then at the configured rate,
 * each with a line in the ledger before and after it. Returns early when the service refuses token or service, or is
 * down, and when the signal aborts; rejects when the ledger cannot be written.
 */
export const sendRequests = (options: SendOptions): Promise<void> => new Sender(options).run();

class Sender {
  readonly #counts: RequestCounts;
  readonly #options: SendOptions;
  readonly #total: number;
  readonly #ids: Iterator<string>;
  readonly #limiter: RateLimiter;
  readonly #stop = new AbortController();
  readonly #abortRequests = new AbortController();
  readonly #signal: AbortSignal;
  #unansweredInARow = 0;
  /** Waits of the limiter when an id was last decided. */
  #waitsBefore = 0;

  constructor(options: SendOptions) {
    this.#options = options;
    this.#counts = options.counts;
    const ids = options.list.idsWith(undefined);
    this.#total = ids.length;
    this.#ids = ids.values();
    this.#limiter = new RateLimiter(options.clock, options.limits);
    this.#signal = AbortSignal.any([options.signal, this.#stop.signal]);
    // Every worker adds a listener; Node would otherwise warn of a leak.
    setMaxListeners(0, this.#signal, this.#abortRequests.signal);
  }

  async run(): Promise<void> {
    const { signal, clock, limits } = this.#options;
    const abortLater = () => clock.after(CLOSING_MS, () => this.#abortRequests.abort(signal.reason));
    signal.addEventListener('abort', abortLater);
    const stopReporting = this.#report();
    try {
      while (this.#counts.done === 0) if (!(await this.#next())) return;
      // While half of them write their lines of the ledger, the others have their requests under way.
      const workers = Array.from({ length: 2 * limits.maxConcurrentRequests }, () => this.#work());
      const ends = await Promise.allSettled(workers);
      for (const end of ends) if (end.status === 'rejected') throw end.reason;
    } finally {
      stopReporting();
      signal.removeEventListener('abort', abortLater);
    }
  }

  /** One LOG a minute keeps a long deletion, and every wait, visible. */
  #report(): () => void {
    const { clock, logger } = this.#options;
    const total = this.#total;
    const report = () => {
      const { done, rejected, undecided } = this.#counts;
      const left = this.#limiter.pausedMs;
      const waiting = left > 0 ? `; waiting ${Math.ceil(left / 1_000)} s for the service's limit to reset` : '';
      const text = `Deleting: ${done + rejected + undecided} of ${total} decided (${done} done)${waiting}.`;
      logger.info('erase.progress', text, { done, rejected, undecided, total });
      cancel = clock.after(REPORT_MS, report);
    };
    let cancel = clock.after(REPORT_MS, report);
    return () => cancel();
  }

  async #work(): Promise<void> {
    try {
      while (await this.#next());
    } catch (error) {
      this.#stop.abort(error);
      throw error;
    }
  }

  /** Requests the next id until it is decided; false if there is none left, or no more may be sent. */
  async #next(): Promise<boolean> {
    if (this.#signal.aborted) return false;
    const { value: id, done } = this.#ids.next();
    if (done === true) return false;
    const decision = await this.#decide(id);
    this.#counts[decision]++;
    this.#options.list.decide(id, decision);
    if (decision === 'done') this.#options.list.start();
    return !this.#signal.aborted;
  }

  async #decide(externalId: string): Promise<Decision> {
    const { clock, random, ledger } = this.#options;
    const id = ledger.key.idHash(externalId);
    for (let attempt = 1; ; ) {
      const answer = await this.#request(externalId, { id, attempt });
      if (answer === undefined) return 'undecided';
      switch (answer.kind) {
        case 'done':
        case 'rejected':
          return this.#decided(answer.kind, answer);
        case 'stop':
          this.#counts.stoppedBy ??= answer;
          return this.#stopAll(answer);
        case 'wait':
          // A wait for the limit does not count as an attempt.
          if (this.#limiter.waits - this.#waitsBefore >= DELETION_RETRY.maxWaitsInARow) return this.#giveUp(answer);
          continue;
        case 'undecided':
          if (attempt >= DELETION_RETRY.unclearAttempts) return this.#decided('undecided', answer);
          break;
        case 'retry':
          if (attempt < DELETION_RETRY.attempts) break;
          this.#countUndecided(answer);
          return ++this.#unansweredInARow < DELETION_RETRY.maxUnansweredInARow ? 'undecided' : this.#giveUp(answer);
      }
      const pause = () => clock.sleep(pauseAfter(attempt, DELETION_RETRY, random), this.#signal);
      if (!(await this.#unlessStopped(pause))) return 'undecided';
      attempt++;
    }
  }

  /** Sends one request, with a ledger line before and after it; undefined if the run was stopped before its answer. */
  async #request(externalId: string, what: { id: string; attempt: number }): Promise<DeletionAnswer | undefined> {
    const { ledger, deleter } = this.#options;
    if (!(await this.#unlessStopped(() => this.#limiter.waitForTurn(this.#signal)))) return undefined;
    await ledger.write({ kind: 'before', ...what });
    if (!(await this.#unlessStopped(() => this.#limiter.acquire(this.#signal)))) {
      ledger.add({ kind: 'after', ...what, outcome: 'not_sent', code: 'stopped', status: null });
      return undefined;
    }
    let answer: DeletionAnswer | undefined;
    try {
      this.#counts.requests++;
      answer = await deleter.deleteProfile(externalId, this.#abortRequests.signal);
      const { kind: outcome, code, status = null } = answer;
      ledger.add({ kind: 'after', ...what, outcome, code, status });
    } catch (error) {
      ledger.add({ kind: 'after', ...what, outcome: 'undecided', code: 'failed', status: null });
      if (!this.#signal.aborted) throw error;
    } finally {
      this.#limiter.release(answer);
    }
    // During a pause no other line makes the ledger write this one, and a pause may be long.
    if (this.#limiter.pausedMs > 0) await ledger.sync();
    return answer;
  }

  async #unlessStopped(wait: () => Promise<void>): Promise<boolean> {
    try {
      await wait();
      return true;
    } catch (error) {
      if (this.#signal.aborted) return false;
      throw error;
    }
  }

  /** Counts an outcome; an answer shows that the service is not down. */
  #decided(decision: Decision, answer: DeletionAnswer): Decision {
    this.#unansweredInARow = 0;
    this.#waitsBefore = this.#limiter.waits;
    if (decision === 'rejected') countCode(this.#counts.rejected_codes, answer);
    if (decision === 'undecided') this.#countUndecided(answer);
    return decision;
  }

  /** Says once for each code what the answer was: the report has the codes alone. */
  #countUndecided(answer: DeletionAnswer): void {
    const { code, message } = answer;
    if (countCode(this.#counts.undecided_codes, answer) > 1) return;
    this.#options.logger.warn('erase.undecided', `The deletion of an id is undecided: ${message}`, { code });
  }

  #giveUp(answer: DeletionAnswer): Decision {
    const { logger } = this.#options;
    const { code, message } = answer;
    if (!this.#signal.aborted) logger.error('erase.given_up', `Nothing more is sent: ${message}`, { code });
    return this.#stopAll(answer);
  }

  #stopAll(answer: DeletionAnswer): Decision {
    this.#stop.abort(transientError(answer.message));
    return 'undecided';
  }
}

/** Returns the number of its code so far. */
function countCode(codes: Record<string, number>, { code }: DeletionAnswer): number {
  const total = (codes[code] ?? 0) + 1;
  codes[code] = total;
  return total;
}
