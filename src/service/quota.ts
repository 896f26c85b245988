// This folder: the operations of the service, each one request and its answer, and the quota of exports.
//
// This file: the Export group's limits, counted over all processes of this machine: how many exports may still be sent,
// and how many at the same time. First the state of all processes, then the rules, pure functions of it, then the file that
// holds it, and last the quota, which waits and reports.

import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import stateSchema from '../../schemas/quota-state.json' with { type: 'json' };
import type { Clock } from '../base/clock.ts';
import { formatDuration } from '../base/durations.ts';
import { codeOf, messageOf, transientError, UserError } from '../base/errors.ts';
import { sha256 } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { SourceConfig } from '../config/source.ts';
import { compileSchema } from '../config/validate.ts';
import { replaceSmallFile } from '../fs/atomic-file.ts';
import { withLockFile } from '../fs/lock.ts';
import { makePrivateFolder } from '../fs/private-folder.ts';
import { livenessOf, OWN_IDENTITY, type ProcessIdentity } from '../fs/process-identity.ts';
import { abortable, onAbort } from './http/abort.ts';
import type { LimitHeaders } from './http/headers.ts';

/** The service notices the end of an export a little later than this process. */
const SLOT_GRACE_MS = 50;

/** An export sent: its number, in the order of sending over all processes, and when. */
interface Sent {
  readonly n: number;
  readonly at: number;
}

/** A slot taken by an export under way. */
export interface Slot {
  readonly n: number;
  /** The process that holds it, and the object in it. */
  readonly holder: ProcessIdentity;
  readonly run: string;
  /** When the lease ends: a holder that has not renewed it by then counts as dead. */
  readonly lease: number;
  /** The head of its answer has come. */
  readonly answered: boolean;
  /** It is over; its slot is free from then on. */
  readonly freeAt?: number;
}

/** How many exports are left, as the service last reported. */
interface Report {
  readonly remaining: number;
  readonly resetAt?: number;
  /** The service named no reset: what it counts may have begun later than our own hour. */
  readonly isResetAssumed?: boolean;
  /** When it came, and to which export. */
  readonly at: number;
  readonly by: number;
  /** The last export sent by then, and how many had no answer yet: the report may not know of them. */
  readonly upTo: number;
  readonly unanswered: number;
}

/** Fewer at once than configured, after refusals. */
interface Lowered {
  readonly to: number;
  readonly at: number;
  readonly times: number;
}

/** All that is known of the quota; what the state file holds (schemas/quota-state.json). Instants in ms since 1970. */
export interface QuotaState {
  readonly v: 1;
  /** Those of the last hour, oldest first. */
  readonly sent: readonly Sent[];
  readonly next: number;
  readonly slots: readonly Slot[];
  readonly report?: Report;
  /** When an answer that was no refusal last came without saying what is left. */
  readonly unreportedAt?: number;
  /** Nothing is sent before `until`, since a refusal at `at`. */
  readonly blocked?: { readonly at: number; readonly until: number };
  /** Refusals in a row for the hourly limit, and while nothing else of ours ran though some were left. */
  readonly refusals: number;
  readonly exclusiveRefusals: number;
  readonly lowered?: Lowered;
}

export const EMPTY_STATE: QuotaState = { v: 1, sent: [], next: 1, slots: [], refusals: 0, exclusiveRefusals: 0 };

export const HOUR_MS = 3_600_000;

const isState = compileSchema<QuotaState>(stateSchema);

/** A state file's text as state; undefined for anything that this version did not write. */
export function parseState(text: string): QuotaState | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isState(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The limit is one an hour, and a reset is rounded down to seconds: nothing has to be waited for longer. */
const MAX_WAIT_MS = HOUR_MS + 1_000;

/**
 * What still matters at `now`. `isHeld` says whether a slot's process lives. Repairs what a jump of the clock left, and
 * believes no instant further than an hour ahead of the one at which it was written.
 */
export function pruned(state: QuotaState, now: number, isHeld: (slot: Slot) => boolean): QuotaState {
  const { blocked, report, lowered, unreportedAt, ...rest } = state;
  const isFreeing = (at: number) => at > now && at <= now + SLOT_GRACE_MS;
  // Written by a clock that was ahead of today's: as long as then, from now on.
  const blockedAt = Math.min(blocked?.at ?? now, now);
  const until = blocked === undefined ? 0 : blockedAt + Math.min(blocked.until - blocked.at, MAX_WAIT_MS);
  const resetAt = report?.resetAt !== undefined && Math.min(report.resetAt, report.at + HOUR_MS);
  return {
    ...rest,
    sent: state.sent.map(({ n, at }) => ({ n, at: Math.min(at, now) })).filter(({ at }) => at > now - HOUR_MS),
    slots: state.slots.filter((slot) => (slot.freeAt === undefined ? isHeld(slot) : isFreeing(slot.freeAt))),
    ...(until > now && { blocked: { at: blockedAt, until } }),
    ...(report !== undefined && report.at <= now && { report: { ...report, ...(resetAt !== false && { resetAt }) } }),
    ...(lowered !== undefined && {
      lowered: { ...lowered, to: Math.max(1, lowered.to), at: Math.min(lowered.at, now) },
    }),
    ...(unreportedAt !== undefined && unreportedAt <= now && { unreportedAt }),
  };
}

/** The limits as configured. */
export interface ExportLimits {
  readonly maxConcurrentExports: number;
  readonly exportsPerHour: number;
}

/** What the quota takes from the head of an answer. */
export interface AnswerHead {
  readonly status: number;
  /** True when the answer reports that the limit is reached, under whatever status. */
  readonly limited: boolean;
  readonly limits: LimitHeaders;
}

/** Send now; wait until an answer or an end of `slots` changes the state; or wait for an instant. */
export type Decision =
  | { readonly kind: 'go' }
  | { readonly kind: 'change'; readonly slots: readonly Slot[] }
  | { readonly kind: 'until'; readonly at: number };

/** A reset may be given in seconds, rounded down. */
const RESET_MARGIN_MS = 1_000;
const GROWING_MS = [60_000, 120_000, 240_000, 480_000, 900_000] as const;
const SHARED_PAUSE_MS = 1_000;
const EXCLUSIVE_TRIES = 3;
const EXCLUSIVE_PAUSE_MS = 2_000;
const RAISE_AFTER_MS = 900_000;
const MAX_RAISE_DOUBLINGS = 5;

/** Whether an export may be sent at `now`, over a pruned state. */
export function decide(state: QuotaState, limits: ExportLimits, now: number): Decision {
  if (state.blocked !== undefined && now < state.blocked.until) return { kind: 'until', at: state.blocked.until };
  const unanswered = state.slots.filter(({ answered, freeAt }) => !answered && freeAt === undefined);
  const budget = budgetOf(state, limits, now);
  if (budget.left <= 0 && unanswered.length === 0) return { kind: 'until', at: budget.nextAt };
  // Other users may have used the quota: until the service has reported what is left, one export is sent at a time.
  if (unanswered.length > 0 && (budget.left <= 0 || !budget.known)) return { kind: 'change', slots: unanswered };
  if (state.slots.length >= concurrencyOf(state, limits, now)) return { kind: 'change', slots: state.slots };
  return { kind: 'go' };
}

export interface Budget {
  readonly left: number;
  /** When the next may be sent if none is left. */
  readonly nextAt: number;
  /** False while nothing is known that is current. */
  readonly known: boolean;
}

/** What is left of the hour: what the service reported, while that is current; else our own count. */
export function budgetOf(state: QuotaState, { exportsPerHour }: ExportLimits, now: number): Budget {
  const { report, sent } = state;
  if (report !== undefined && isCurrent(report, now)) {
    const since = sent.filter(({ n }) => n > report.upTo).length;
    const nextAt = report.resetAt === undefined ? report.at + HOUR_MS : report.resetAt + RESET_MARGIN_MS;
    return { left: report.remaining - report.unanswered - since, nextAt, known: true };
  }
  const left = exportsPerHour - sent.length;
  // Fewer than the limit lie within an hour then.
  const oldest = sent[Math.max(0, sent.length - exportsPerHour)];
  const nextAt = oldest === undefined ? now + HOUR_MS : oldest.at + HOUR_MS + 1;
  // The service reported when its count starts again, and that is over: whatever we counted, one export may be sent to find out.
  const resetAt = report?.resetAt;
  const renewed = resetAt !== undefined && !report?.isResetAssumed && !sent.some(({ at }) => at >= resetAt);
  if (renewed) return { left: Math.max(left, 1), nextAt, known: false };
  return { left, nextAt, known: state.unreportedAt !== undefined && now < state.unreportedAt + HOUR_MS };
}

const isCurrent = (report: Report, now: number): boolean =>
  report.resetAt === undefined ? now < report.at + HOUR_MS : now < report.resetAt + RESET_MARGIN_MS;

/** How many may run at once: as configured, or fewer for a while after refusals, one more each time it goes well. */
export function concurrencyOf({ lowered }: QuotaState, limits: ExportLimits, now: number): number {
  if (lowered === undefined) return limits.maxConcurrentExports;
  const step = RAISE_AFTER_MS * 2 ** Math.min(lowered.times - 1, MAX_RAISE_DOUBLINGS);
  const raised = Math.floor(Math.max(0, now - lowered.at) / step);
  return Math.min(limits.maxConcurrentExports, lowered.to + raised);
}

/** The state after the head of an answer to export `n` came. */
export function afterHead(
  state: QuotaState,
  n: number,
  { status, limited, limits: reported }: AnswerHead,
  { limits, now, random }: { readonly limits: ExportLimits; readonly now: number; readonly random: Random },
): QuotaState {
  const slots = state.slots.map((slot) => (slot.n === n ? { ...slot, answered: true } : slot));
  const others = slots.filter((slot) => slot.n !== n && slot.freeAt === undefined).length;
  const { remaining } = reported;
  const isSuccess = status === 200 && !limited;
  const answered = { ...state, slots, ...(isSuccess && { refusals: 0, exclusiveRefusals: 0 }) };
  if (isSuccess && remaining === undefined) return { ...answered, unreportedAt: now };
  // A refusal with a Remaining of 0 may be about exports at once and not about the hour: it is believed of an export that ran alone.
  const isBelieved = !limited || others === 0 || remaining !== 0;
  const after = isBelieved ? afterReport(answered, n, reported, now) : answered;
  if (!limited) return after;
  if (others > 0) {
    // Fewer at once, and the next goes when one of the others ends (S9).
    const to = Math.max(1, Math.min(others, concurrencyOf(state, limits, now)));
    return lowered(after, to, Math.max(state.blocked?.until ?? 0, now + SHARED_PAUSE_MS), now);
  }
  const { exclusiveRefusals, refusals } = after;
  if ((remaining ?? 0) > 0 && exclusiveRefusals < EXCLUSIVE_TRIES) {
    const pause = EXCLUSIVE_PAUSE_MS * 2 ** exclusiveRefusals * (1 + random());
    return { ...lowered(after, 1, now + Math.round(pause), now), exclusiveRefusals: exclusiveRefusals + 1 };
  }
  return {
    ...after,
    refusals: refusals + 1,
    blocked: { at: now, until: refusedUntil(reported, refusals, now, random) },
  };
}

/** Refused although some are left: `to` exports at once from now on, and none before `until`. */
const lowered = (state: QuotaState, to: number, until: number, now: number): QuotaState => ({
  ...state,
  lowered: { to, at: now, times: (state.lowered?.times ?? 0) + 1 },
  blocked: { at: now, until },
});

/** Stores what the service reports is left, unless it reported less to an export sent later or under way beside it. */
function afterReport(state: QuotaState, n: number, { remaining, resetAt }: LimitHeaders, now: number): QuotaState {
  if (remaining === undefined) return state;
  const { report } = state;
  if (report !== undefined && n <= report.upTo && isCurrent(report, now) && report.remaining <= remaining) {
    // More was left when the service saw it: that was before, and the current report includes this one after all.
    return { ...state, report: { ...report, unanswered: Math.max(0, report.unanswered - 1) } };
  }
  const unanswered = state.slots.filter((slot) => !slot.answered && slot.freeAt === undefined && slot.n !== n).length;
  const next = { remaining, at: now, by: n, upTo: state.next - 1, unanswered };
  if (resetAt !== undefined) return { ...state, report: { ...next, resetAt } };
  if (remaining > 0) return { ...state, report: next };
  // Nothing left and no reset: whatever is counted, an hour behind our oldest export that one counts no more.
  const assumed = (state.sent[0]?.at ?? now) + HOUR_MS;
  return { ...state, report: { ...next, resetAt: assumed, isResetAssumed: true } };
}

/** Until when a refusal for the hourly limit stops everybody; `before` counts those in a row before it. */
export function refusedUntil({ resetAt, retryAt }: LimitHeaders, before: number, now: number, random: Random): number {
  const reported = Math.max(resetAt ?? 0, retryAt ?? 0);
  if (reported > now) return reported + RESET_MARGIN_MS;
  const wait = GROWING_MS[Math.min(before, GROWING_MS.length - 1)];
  return Math.round(now + wait * (1 + random() / 4));
}

/** When the last of `count` exports may be sent at the earliest, and how many may be at once now. Over a pruned state. */
export function forecastOf(state: QuotaState, limits: ExportLimits, count: number, now: number) {
  const { left, nextAt } = budgetOf(state, limits, now);
  const blocked = state.blocked?.until ?? now;
  const open = blocked > now ? 0 : Math.max(0, left);
  const free = Math.max(0, concurrencyOf(state, limits, now) - state.slots.length);
  const startableNow = Math.min(count, open, free);
  const later = Math.max(0, count - Math.max(0, left));
  if (later === 0) return { startableNow, left: open, earliestEnd: blocked };
  const rounds = Math.ceil(later / Math.max(1, limits.exportsPerHour)) - 1;
  return { startableNow, left: open, earliestEnd: Math.max(blocked, nextAt) + rounds * HOUR_MS };
}

/** A lock is normally held for a millisecond: after this wait the run continues without the shared state. */
const LOCK_WAIT_MS = 4_000;
/** A state of thousands of exports has a tenth of these. */
const MAX_BYTES = 1 << 20;

type QuotaStateOptions = Pick<ExportQuotaOptions, 'stateRoot' | 'baseUrl' | 'serviceId' | 'clock' | 'logger'>;

/** The state that the processes of one user share: a file that is replaced as a whole. */
export class QuotaStateFile {
  /** Undefined: this process counts alone. */
  #folder: string | undefined;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #state: QuotaState = EMPTY_STATE;
  #warned = false;

  constructor({ stateRoot: root, baseUrl, serviceId, clock, logger }: QuotaStateOptions) {
    // Users of one machine share its temporary folder, not each other's files.
    this.#folder = root === undefined ? undefined : join(root, `dfinery-elt-quota-${process.getuid?.() ?? 'user'}`);
    this.#path = join(this.#folder ?? '', `quota-${sha256([baseUrl, serviceId]).slice(0, 16)}.json`);
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The state without waiting for a lock: a whole one, perhaps a moment old. */
  read(): QuotaState {
    if (this.#folder === undefined) return this.#state;
    let text: string;
    try {
      text = statSync(this.#path).size > MAX_BYTES ? '' : readFileSync(this.#path, 'utf8');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return EMPTY_STATE;
      this.#countAlone(error);
      return this.#state;
    }
    const state = parseState(text);
    if (state !== undefined) return state;
    this.#warnOnce(`The state of the quota in ${this.#path} cannot be understood: counting starts again.`);
    return EMPTY_STATE;
  }

  /**
   * One change of the state that no other process's comes between. Throws a configuration failure when the folder is
   * somebody else's; where the disk or a lock fails, this process counts alone from then on.
   */
  async update<T>(change: (state: QuotaState) => readonly [QuotaState, T], signal?: AbortSignal): Promise<T> {
    const done: T[] = [];
    const apply = () => {
      const [state, result] = change(this.read());
      this.#state = state;
      done.push(result);
      return result;
    };
    if (this.#folder === undefined) return apply();
    try {
      makePrivateFolder(this.#folder, 'The folder of the quota', 'set spool_dir to another folder');
      const what = `the state of the quota in ${this.#path}`;
      const lock = { what, clock: this.#clock, waitMs: LOCK_WAIT_MS, signal };
      return await withLockFile(`${this.#path}.lock`, lock, () => {
        const result = apply();
        replaceSmallFile(this.#path, JSON.stringify(this.#state));
        return result;
      });
    } catch (error) {
      signal?.throwIfAborted();
      const isOfDisk = error instanceof UserError ? error.kind === 'transient' : codeOf(error) !== undefined;
      if (!isOfDisk) throw error;
      const isApplied = done.length > 0;
      if (!isApplied) this.#state = this.read();
      this.#countAlone(error);
      return isApplied ? done[0] : apply();
    }
  }

  /** After a failed read or write the shared file is not used again: it lacks what happened since. */
  #countAlone(error: unknown): void {
    this.#warnOnce(
      `The state of the quota cannot be kept in ${this.#path} (${messageOf(error)}): this run counts alone, other ` +
        'processes of this machine do not see its exports.',
    );
    this.#folder = undefined;
  }

  #warnOnce(message: string): void {
    if (!this.#warned) this.#logger.warn('quota.state', message);
    this.#warned = true;
  }
}

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

const LEASE_MS = 120_000;
const RENEW_MS = 30_000;
/** Shorter waits are not reported. */
const REPORTED_WAIT_MS = 5_000;
/** A clock may jump, and another process may get another answer: long waits are looked at again. */
const MAX_SLEEP_MS = 300_000;
/** How often the slots of other processes are looked at. */
const POLL_MS = 200;

export class ExportQuota {
  readonly #options: ExportQuotaOptions;
  readonly #file: QuotaStateFile;
  readonly #run = randomUUID();
  readonly #queue = pLimit(1);
  readonly #listeners = new Set<(until: number | undefined) => void>();
  /** The permits given, by the number of their export. */
  readonly #permits = new Map<number, Permit>();
  #renewing: (() => void) | undefined;
  /** Aborted, and replaced, whenever an answer or an end of an export of this process changed the state. */
  #changed = new AbortController();
  #reported: number | undefined;

  constructor(options: ExportQuotaOptions) {
    this.#options = options;
    this.#file = new QuotaStateFile(options);
  }

  /** Exports that may start now, that are left until the limit, and when (ms) the last of `count` may start. */
  forecast(count: number): { readonly startableNow: number; readonly left: number; readonly earliestEnd: number } {
    return forecastOf(this.#current(this.#file.read()), this.#options, count, this.#options.clock.now());
  }

  /** Called before every reported wait with its end (ms since 1970), and with undefined when it is over. */
  onWait(listener: (until: number | undefined) => void): void {
    this.#listeners.add(listener);
  }

  /** Gives back every permit of this process. */
  async close(): Promise<void> {
    await Promise.all([...this.#permits.values()].map((permit) => permit.release()));
  }

  /**
   * Resolves when an export may be sent: one caller after the other, in the order of the calls. Rejects with the
   * signal's reason, or with a transient UserError that names the wait when it is longer than allowed.
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
  enterNow(): Promise<Permit> {
    return this.#file.update((state) => this.#taken(this.#current(state)));
  }

  async #admit(signal: AbortSignal): Promise<Permit> {
    const { clock } = this.#options;
    try {
      for (;;) {
        signal.throwIfAborted();
        const changed = this.#changed.signal;
        const found = await this.#file.update<Permit | Decision>((stored) => {
          const state = this.#current(stored);
          const decision = decide(state, this.#options, clock.now());
          return decision.kind === 'go' ? this.#taken(state) : [state, decision];
        }, signal);
        if ('release' in found) return found;
        if (found.kind === 'until') await this.#waitUntil(found.at, signal);
        if (found.kind === 'change') await this.#waitForChange(found.slots, AbortSignal.any([changed, signal]));
        // With a test clock that does not really sleep, I/O must still make progress.
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      this.#report(undefined);
    }
  }

  #current(state: QuotaState): QuotaState {
    const now = this.#options.clock.now();
    return pruned(state, now, (slot) => this.#isHeld(slot, now));
  }

  #isHeld(slot: Slot, now: number): boolean {
    if (slot.run === this.#run) return this.#permits.has(slot.n);
    if (livenessOf(slot.holder) === 'dead') return false;
    // No process takes so long a lease: its clock, or ours, was wrong since.
    return slot.lease > now && slot.lease <= now + 2 * LEASE_MS;
  }

  #taken(state: QuotaState): readonly [QuotaState, Permit] {
    const now = this.#options.clock.now();
    const n = state.next;
    const slot = { n, holder: OWN_IDENTITY, run: this.#run, lease: now + LEASE_MS, answered: false };
    const sent = [...state.sent, { n, at: now }];
    return [{ ...state, next: n + 1, sent, slots: [...state.slots, slot] }, this.#permitOf(n)];
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
    return this.#file.update((stored) => {
      const state = this.#current(stored);
      return [{ ...state, slots: state.slots.map(change) }, undefined];
    });
  }

  async #answered(n: number, head: AnswerHead): Promise<void> {
    const { clock, random, logger } = this.#options;
    const lowered = await this.#file.update((stored) => {
      const state = this.#current(stored);
      const after = afterHead(state, n, head, { limits: this.#options, now: clock.now(), random });
      return [after, after.lowered === state.lowered ? undefined : after.lowered?.to];
    });
    if (lowered !== undefined) {
      const message = `The service refuses so many exports at once: ${lowered} at most for now.`;
      logger.warn('quota.concurrency', message, { at_once: lowered });
    }
    this.#wakeWaiting();
  }

  async #release(n: number): Promise<void> {
    const freeAt = this.#options.clock.now() + SLOT_GRACE_MS;
    try {
      await this.#changeSlots((slot) => (slot.n === n ? { ...slot, freeAt } : slot));
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
    const { maxWaitMs, clock } = this.#options;
    const wait = at - clock.now();
    if (maxWaitMs !== undefined && wait > maxWaitMs) throw tooLong(at, wait, maxWaitMs);
    if (wait >= REPORTED_WAIT_MS) this.#report(at);
    await clock.sleep(Math.min(wait, MAX_SLEEP_MS), signal);
  }

  /** Until a change in this process (or an abort), until a slot is free, or until other processes are looked at again. */
  async #waitForChange(slots: readonly Slot[], woken: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const ends = slots.flatMap(({ freeAt }) => (freeAt === undefined ? [] : [freeAt - clock.now()]));
    const isForeign = slots.some(({ run }) => run !== this.#run);
    const pause = Math.min(...ends, isForeign ? POLL_MS : Number.POSITIVE_INFINITY);
    if (!Number.isFinite(pause)) return new Promise((resolve) => void onAbort(woken, resolve));
    await clock.sleep(Math.max(1, pause), woken).catch(() => {});
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
  transientError(
    `The limit of exports is reached and the next may be sent at ${new Date(at).toISOString()}, in ${formatDuration(wait)}: ` +
      `longer than the ${formatDuration(most)} that --max-wait allows. What is done is kept; run again then.`,
    { internal: 'quota: the wait is longer than allowed' },
  );
