// This folder: the service's limits, counted over all processes of this machine. `rules.ts` is pure, the others share
// the state.

import pLimit from 'p-limit';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { transientFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { SourceConfig } from '../../config/source.ts';
import { abortable, onAbort } from '../http/on-abort.ts';
import { type AnswerHead, afterHead, type Decision, decide, type ExportLimits, forecastOf } from './rules.ts';
import { type QuotaState, SLOT_GRACE_MS, type Slot } from './state.ts';
import { QuotaStateFile } from './state-file.ts';

/*
 * The Export group's limits, counted over all processes of this machine: how many exports may still be sent, and how
 * many at the same time. `rules.ts` decides, purely, over the state of `state.ts`; this file waits and reports.
 */

/** The permission to send one export; it counts against both limits until it is released. */
export interface Permit {
  /** To be called when the head of the answer came, before `release`; a second call changes nothing. */
  answered(head: AnswerHead): Promise<void>;
  /** To be called when the connection is closed; harmless when repeated. */
  release(): Promise<void>;
}

/** What a client that sends exports needs of the quota. */
export type ExportAdmission = Pick<ExportQuota, 'enter' | 'close'>;

export interface ExportQuotaOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId'>, ExportLimits {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Folder under which the processes of one user share their state; undefined: none is shared. */
  readonly stateRoot?: string | undefined;
  /** A longer wait than this is refused. */
  readonly maxWaitMs?: number | undefined;
}

export const createExportQuota = (options: ExportQuotaOptions): ExportQuota => new ExportQuota(options);

/** Shorter waits are not reported. */
const REPORTED_WAIT_MS = 5_000;
/** A clock may jump, and another process may learn better: long waits are looked at again. */
const LONGEST_SLEEP_MS = 300_000;
/** How often the slots of other processes are looked at. */
const POLL_MS = 200;

export class ExportQuota {
  readonly #options: ExportQuotaOptions;
  readonly #state: QuotaStateFile;
  readonly #queue = pLimit(1);
  readonly #listeners = new Set<(until: number | undefined) => void>();
  readonly #permits = new Set<Permit>();
  /** Aborted, and replaced, whenever an answer or an end of an export of this process changed the state. */
  #changed = new AbortController();
  #reported: number | undefined;

  constructor(options: ExportQuotaOptions) {
    this.#options = options;
    this.#state = new QuotaStateFile({ ...options, root: options.stateRoot });
  }

  /** Exports that may start now, that are left until the limit, and when (ms) the last of `count` may start. */
  forecast(count: number): { readonly startableNow: number; readonly left: number; readonly earliestEnd: number } {
    return forecastOf(this.#state.peek(), this.#options, count, this.#options.clock.now());
  }

  /** Called before every reported wait with its end (ms since 1970), and with undefined when it is over. */
  onWait(listener: (until: number | undefined) => void): void {
    this.#listeners.add(listener);
  }

  /** Gives back every permit of this process. */
  async close(): Promise<void> {
    await Promise.all([...this.#permits].map((permit) => permit.release()));
  }

  /**
   * Resolves when an export may be sent: one caller after the other, in the order of the calls. Rejects with the
   * signal's reason, or with a transient Failure that names the wait when it is longer than allowed.
   */
  async enter(signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted();
    const admitted = this.#queue(() => this.#admit(signal));
    try {
      return await abortable(admitted, signal);
    } catch (error) {
      // Admitted at the moment of the abort: nobody will use the permit.
      void admitted.then((permit) => permit.release()).catch(() => {});
      throw error;
    }
  }

  /** A permit without waiting, which is still counted: for the single small export of an interactive check. */
  async enterNow(): Promise<Permit> {
    const { n } = await this.#state.update((state) => this.#taken(state, this.#options.clock.now()));
    return this.#permitOf(n);
  }

  async #admit(signal: AbortSignal): Promise<Permit> {
    try {
      for (;;) {
        signal.throwIfAborted();
        const changed = this.#changed.signal;
        const decision = await this.#tryEnter(signal);
        if ('permit' in decision) return decision.permit;
        await this.#wait(decision, changed, signal);
      }
    } finally {
      this.#report(undefined);
    }
  }

  async #tryEnter(signal: AbortSignal): Promise<{ readonly permit: Permit } | Decision> {
    const { clock } = this.#options;
    const decision = await this.#state.update<Decision | { readonly n: number }>((state) => {
      const now = clock.now();
      const made = decide(state, this.#options, now);
      return made.kind === 'go' ? this.#taken(state, now) : { state, result: made };
    }, signal);
    return 'n' in decision ? { permit: this.#permitOf(decision.n) } : decision;
  }

  #taken(state: QuotaState, now: number) {
    const n = state.next;
    const slots = [...state.slots, this.#state.newSlot(n)];
    return { state: { ...state, next: n + 1, sent: [...state.sent, { n, at: now }], slots }, result: { n } };
  }

  #permitOf(n: number): Permit {
    let released = false;
    const permit: Permit = {
      answered: (head) => this.#answered(n, head),
      release: async () => {
        if (released) return;
        released = true;
        this.#permits.delete(permit);
        await this.#released(n);
      },
    };
    this.#permits.add(permit);
    return permit;
  }

  async #answered(n: number, head: AnswerHead): Promise<void> {
    const { clock, random, logger } = this.#options;
    const lowered = await this.#state.update((state) => {
      const after = afterHead(state, n, head, { limits: this.#options, now: clock.now(), random });
      return { state: after, result: after.lowered === state.lowered ? undefined : after.lowered?.to };
    });
    if (lowered !== undefined) {
      const message = `The service refuses so many exports at once: ${lowered} at most for now.`;
      logger.warn('quota.crowded', message, { at_once: lowered });
    }
    this.#wakeWaiting();
  }

  async #released(n: number): Promise<void> {
    const freeAt = this.#options.clock.now() + SLOT_GRACE_MS;
    const mark = (slot: Slot): Slot => (slot.n === n ? { ...slot, freeAt } : slot);
    await this.#state.update((state) => ({ state: { ...state, slots: state.slots.map(mark) }, result: undefined }));
    this.#state.releaseSlot(n);
    this.#wakeWaiting();
  }

  #wakeWaiting(): void {
    const changed = this.#changed;
    this.#changed = new AbortController();
    changed.abort();
  }

  async #wait(decision: Decision, changed: AbortSignal, signal: AbortSignal): Promise<void> {
    const now = this.#options.clock.now();
    if (decision.kind === 'until') await this.#waitUntil(decision.at, now, signal);
    if (decision.kind === 'change') await this.#waitForChange(decision.slots, now, AbortSignal.any([changed, signal]));
    // With a test clock that does not really sleep, I/O must still make progress.
    await new Promise((resolve) => setImmediate(resolve));
  }

  async #waitUntil(at: number, now: number, signal: AbortSignal): Promise<void> {
    const { maxWaitMs, clock } = this.#options;
    const wait = at - now;
    if (maxWaitMs !== undefined && wait > maxWaitMs) throw tooLong(at, wait, maxWaitMs);
    if (wait >= REPORTED_WAIT_MS) this.#report(at);
    await clock.sleep(Math.min(wait, LONGEST_SLEEP_MS), signal);
  }

  /** Until a change in this process (or an abort), until a slot is free, or until other processes are looked at again. */
  async #waitForChange(slots: readonly Slot[], now: number, woken: AbortSignal): Promise<void> {
    const ends = slots.flatMap(({ freeAt }) => freeAt ?? []);
    const isForeign = slots.some((slot) => !this.#state.isOwn(slot));
    const pause = Math.min(...ends.map((end) => end - now), isForeign ? POLL_MS : Number.POSITIVE_INFINITY);
    if (!Number.isFinite(pause)) return new Promise((resolve) => void onAbort(woken, resolve));
    await this.#options.clock.sleep(Math.max(1, pause), woken).catch(() => {});
  }

  /** Calls every listener once for a wait, and once for its end. */
  #report(until: number | undefined): void {
    if (until === this.#reported) return;
    this.#reported = until;
    const { logger, clock } = this.#options;
    if (until !== undefined) {
      const [at, wait] = [new Date(until).toISOString(), formatDuration(until - clock.now())];
      logger.info('quota.wait', `The limit of exports is reached: the next is sent at ${at}, in ${wait}.`, {
        until: at,
      });
    }
    for (const listener of this.#listeners) listener(until);
  }
}

const tooLong = (at: number, wait: number, most: number) =>
  transientFailure(
    `The limit of exports is reached and the next may be sent at ${new Date(at).toISOString()}, in ${formatDuration(wait)}: ` +
      `longer than the ${formatDuration(most)} that --max-wait allows. What is done is kept; run again then.`,
    { internal: 'quota: the wait is longer than allowed' },
  );
