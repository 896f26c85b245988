// This folder: the Export group's limits, counted over all processes of this machine: how many exports may still be
// sent, and how many at the same time. `state.ts` is what is known, `rules.ts` what may be sent now and what an answer
// changes, `state-file.ts` where the processes share it, `wait-limits.ts` how long a caller waits; this file waits,
// gives permits and shows waits.

import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { abortable, onAbort } from '../../base/abort.ts';
import { nextTurn } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { transientError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { livenessOf, OWN_IDENTITY } from '../../fs/process-identity.ts';
import {
  type AnswerHead,
  afterAnswer,
  afterSending,
  decide,
  type ExportLimits,
  forecastOf,
  type QuotaDecision,
} from './rules.ts';
import { pruned, type QuotaState, SLOT_GRACE_MS, type Slot } from './state.ts';
import { QuotaStateFile, type QuotaStateOptions } from './state-file.ts';
import { type WaitLimits, waitProblem } from './wait-limits.ts';

/** The permission to send one export; it counts against both limits until it is released. */
export interface Permit {
  /** Records the head of the answer; called before `release`. A second call changes nothing. */
  answered(head: AnswerHead): Promise<void>;
  /** Records that the connection is closed; may be called again. */
  release(): Promise<void>;
}

export interface ExportQuotaOptions extends QuotaStateOptions, ExportLimits, WaitLimits {
  readonly random: Random;
  /** Called once for every wait that is shown with its end (ms since 1970), and with undefined when it is over. */
  readonly onWait?: ((until: number | undefined) => void) | undefined;
}

const LEASE_MS = 120_000;
const RENEW_MS = 30_000;
/** Minimum length of a wait that is shown to the user. */
export const SHOWN_WAIT_MS = 5_000;
/** Maximum sleep within a wait: a clock may jump, and another process may get another answer. */
const MAX_SLEEP_MS = 300_000;
/** Interval at which the slots of other processes are looked at. */
const POLL_MS = 200;

export class ExportQuota {
  readonly #options: ExportQuotaOptions;
  readonly #file: QuotaStateFile;
  readonly #run = randomUUID();
  readonly #queue = pLimit(1);
  /** The permits of this process, by the number of their export. */
  readonly #permits = new Map<number, Permit>();
  #renewing: (() => void) | undefined;
  /** Aborted, and replaced, whenever an answer or the end of an export of this process changed the state. */
  #changed = new AbortController();
  #shownWait: number | undefined;

  constructor(options: ExportQuotaOptions) {
    this.#options = options;
    this.#file = new QuotaStateFile(options);
  }

  /** How many exports may start now, how many are left until the limit, and when (ms) the last of `count` may start. */
  forecast(count: number): { readonly startableNow: number; readonly left: number; readonly earliestEnd: number } {
    return forecastOf(this.#current(this.#file.read()), this.#options, count, this.#options.clock.now());
  }

  async close(): Promise<void> {
    await Promise.all([...this.#permits.values()].map((permit) => permit.release()));
  }

  /**
   * Resolves when an export may be sent, in the order of the calls. Rejects with the signal's reason, or with a
   * transient UserError that names the wait if it is longer than allowed.
   */
  async enter(signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted();
    const admitted = this.#queue(() => this.#admit(signal));
    try {
      return await abortable(admitted, signal);
    } catch (error) {
      // The export was admitted when the signal aborted: nobody will use the permit.
      void admitted.then((permit) => permit.release()).catch(() => {});
      throw error;
    }
  }

  /** Grants a permit without waiting, which still counts: for the single small export of an interactive check. */
  enterNow(): Promise<Permit> {
    return this.#update((state) => this.#grant(state));
  }

  #update<T>(change: (state: QuotaState) => readonly [QuotaState, T], signal?: AbortSignal): Promise<T> {
    return this.#file.update((stored) => change(this.#current(stored)), signal);
  }

  async #admit(signal: AbortSignal): Promise<Permit> {
    try {
      for (;;) {
        signal.throwIfAborted();
        const changed = this.#changed.signal;
        const { decision, permit } = await this.#update((state) => this.#decide(state), signal);
        if (permit !== undefined) return permit;
        if (decision.kind === 'until') await this.#waitUntil(decision.at, signal);
        if (decision.kind === 'change') await this.#waitForChange(decision.slots, AbortSignal.any([changed, signal]));
        // I/O must make progress even if a test clock does not really sleep.
        await nextTurn();
      }
    } finally {
      this.#showWait(undefined);
    }
  }

  /** Decides whether an export may be sent now, and if so grants its permit. */
  #decide(state: QuotaState): readonly [QuotaState, { readonly decision: QuotaDecision; readonly permit?: Permit }] {
    const decision = decide(state, this.#options, this.#options.clock.now());
    if (decision.kind !== 'go') return [state, { decision }];
    const [after, permit] = this.#grant(state);
    return [after, { decision, permit }];
  }

  #current(state: QuotaState): QuotaState {
    const now = this.#options.clock.now();
    return pruned(state, now, (slot) => this.#isOwned(slot, now));
  }

  #isOwned(slot: Slot, now: number): boolean {
    if (slot.run === this.#run) return this.#permits.has(slot.n);
    if (livenessOf(slot.owner) === 'dead') return false;
    // No process takes so long a lease: its clock, or that of this machine, was wrong when it did.
    return slot.lease > now && slot.lease <= now + 2 * LEASE_MS;
  }

  #grant(state: QuotaState): readonly [QuotaState, Permit] {
    const now = this.#options.clock.now();
    const slot = { owner: OWN_IDENTITY, run: this.#run, lease: now + LEASE_MS };
    return [afterSending(state, slot, now), this.#permitOf(state.next)];
  }

  #permitOf(n: number): Permit {
    let isReleased = false;
    const permit: Permit = {
      answered: (head) => this.#answered(n, head),
      release: async () => {
        if (isReleased) return;
        isReleased = true;
        await this.#release(n);
      },
    };
    this.#permits.set(n, permit);
    this.#renewing ??= this.#renewLater();
    return permit;
  }

  /** Renews the leases of this process for as long as it has permits. */
  #renewLater(): () => void {
    const { clock } = this.#options;
    return clock.after(RENEW_MS, () => {
      this.#renewing = this.#renewLater();
      const renewed = (slot: Slot) => (slot.run === this.#run ? { ...slot, lease: clock.now() + LEASE_MS } : slot);
      void this.#changeSlots(renewed).catch(() => {});
    });
  }

  #changeSlots(change: (slot: Slot) => Slot): Promise<void> {
    return this.#update((state) => [{ ...state, slots: state.slots.map(change) }, undefined]);
  }

  async #answered(n: number, head: AnswerHead): Promise<void> {
    const { clock, random, logger } = this.#options;
    const limit = await this.#update((state) => {
      const after = afterAnswer(state, n, head, { limits: this.#options, now: clock.now(), random });
      return [after, after.reduced === state.reduced ? undefined : after.reduced?.limit];
    });
    if (limit !== undefined) {
      const message = `The service refuses so many exports at once: ${limit} at most for now.`;
      logger.warn('quota.concurrency', message, { at_once: limit });
    }
    this.#wakeWaiting();
  }

  async #release(n: number): Promise<void> {
    const freeAt = this.#options.clock.now() + SLOT_GRACE_MS;
    try {
      await this.#changeSlots((slot) => (slot.n === n ? { ...slot, answered: true, freeAt } : slot));
    } finally {
      this.#permits.delete(n);
      if (this.#permits.size === 0) {
        this.#renewing?.();
        this.#renewing = undefined;
      }
    }
    this.#wakeWaiting();
  }

  #wakeWaiting(): void {
    const changed = this.#changed;
    this.#changed = new AbortController();
    changed.abort();
  }

  async #waitUntil(at: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const now = clock.now();
    const wait = at - now;
    const problem = waitProblem(at, now, this.#options);
    if (problem !== undefined) throw tooLong(at, wait, problem);
    if (wait >= SHOWN_WAIT_MS) this.#showWait(at);
    await clock.sleep(Math.min(wait, MAX_SLEEP_MS), signal);
  }

  /** Waits for a change in this process (or an abort), for a free slot, or for the next look at other processes. */
  async #waitForChange(slots: readonly Slot[], woken: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const ends = slots.flatMap(({ freeAt }) => (freeAt === undefined ? [] : [freeAt - clock.now()]));
    const isForeign = slots.some(({ run }) => run !== this.#run);
    const pause = Math.min(...ends, isForeign ? POLL_MS : Number.POSITIVE_INFINITY);
    if (!Number.isFinite(pause)) return new Promise((resolve) => void onAbort(woken, resolve));
    await clock.sleep(Math.max(1, pause), woken).catch(() => {});
  }

  #showWait(until: number | undefined): void {
    if (until === this.#shownWait) return;
    this.#shownWait = until;
    const { logger, clock, onWait } = this.#options;
    if (until !== undefined) {
      const [at, wait] = [new Date(until).toISOString(), formatDuration(until - clock.now())];
      logger.info('quota.wait', `The limit of exports is reached: the next is sent at ${at}, in ${wait}.`, {
        until: at,
      });
    }
    onWait?.(until);
  }
}

const tooLong = (at: number, wait: number, problem: string) =>
  transientError(
    `The limit of exports is reached and the next may be sent at ${new Date(at).toISOString()}, in ${formatDuration(wait)}: ` +
      problem,
    { internal: 'quota: the wait is longer than allowed' },
  );
