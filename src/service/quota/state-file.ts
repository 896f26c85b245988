import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { codeOf, Failure, messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { replaceSmallFile } from '../../fs/atomic-file.ts';
import { withBriefLock } from '../../fs/lock.ts';
import { makePrivateFolder } from '../../fs/private-folder.ts';
import { livenessOf, OWN_IDENTITY } from '../../fs/process-identity.ts';
import { EMPTY_STATE, parseState, pruned, type QuotaState, type Slot } from './state.ts';

const LEASE_MS = 120_000;
const RENEW_MS = 30_000;
/** A lock is normally held for a millisecond: after this wait the run continues without the shared state. */
const LOCK_WAIT_MS = 4_000;
/** A state of thousands of exports has a tenth of these. */
const MOST_BYTES = 1 << 20;

export interface QuotaStateOptions {
  /** Folder under which the state of all processes of this user is kept; undefined: this process keeps it for itself. */
  readonly root: string | undefined;
  /** The service whose limits are counted. */
  readonly baseUrl: string;
  readonly serviceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The state of the quota, shared by the processes of one user through a file that is replaced as a whole. */
export class QuotaStateFile {
  #folder: string | undefined;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #run = randomUUID();
  readonly #ownSlots = new Set<number>();
  #state: QuotaState = EMPTY_STATE;
  #warned = false;
  #renewing: (() => void) | undefined;

  constructor({ root, baseUrl, serviceId, clock, logger }: QuotaStateOptions) {
    // Users of one machine share its temporary folder, not each other's files.
    this.#folder = root === undefined ? undefined : join(root, `dfinery-elt-quota-${process.getuid?.() ?? 'user'}`);
    const service = createHash('sha256')
      .update(JSON.stringify([baseUrl, serviceId]))
      .digest('hex')
      .slice(0, 16);
    this.#path = join(this.#folder ?? '', `quota-${service}.json`);
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The state as of now, without waiting for a lock: a whole one, perhaps a moment old. */
  peek(): QuotaState {
    return this.#current(this.#read());
  }

  /**
   * One change of the state that no other process's comes between. Throws a configuration failure when the folder is
   * somebody else's; where the disk or a lock fails, this process counts alone from then on.
   */
  async update<T>(
    change: (state: QuotaState) => { readonly state: QuotaState; readonly result: T },
    signal?: AbortSignal,
  ): Promise<T> {
    const apply = () => {
      const { state, result } = change(this.#current(this.#read()));
      this.#state = state;
      return { result };
    };
    if (this.#folder === undefined) return apply().result;
    let done: { readonly result: T } | undefined;
    try {
      makePrivateFolder(this.#folder, 'The folder of the quota', 'set spool_dir to another folder');
      const lock = {
        what: `the state of the quota in ${this.#path}`,
        clock: this.#clock,
        waitMs: LOCK_WAIT_MS,
        signal,
      };
      return await withBriefLock(`${this.#path}.lock`, lock, () => {
        done = apply();
        replaceSmallFile(this.#path, JSON.stringify(this.#state));
        return done.result;
      });
    } catch (error) {
      signal?.throwIfAborted();
      const isOfDisk = error instanceof Failure ? error.kind === 'transient' : codeOf(error) !== undefined;
      if (!isOfDisk) throw error;
      if (done === undefined) this.#state = this.#read();
      this.#countAlone(error);
      return (done ?? apply()).result;
    }
  }

  /** A slot of this process; its lease is renewed until it is released. */
  newSlot(n: number): Slot {
    this.#ownSlots.add(n);
    this.#renewLater();
    return { n, holder: OWN_IDENTITY, run: this.#run, lease: this.#leaseEnd(), answered: false };
  }

  releaseSlot(n: number): void {
    this.#ownSlots.delete(n);
    if (this.#ownSlots.size > 0) return;
    this.#renewing?.();
    this.#renewing = undefined;
  }

  isOwn(slot: Slot): boolean {
    return slot.run === this.#run;
  }

  #read(): QuotaState {
    if (this.#folder === undefined) return this.#state;
    let text: string;
    try {
      text = statSync(this.#path).size > MOST_BYTES ? '' : readFileSync(this.#path, 'utf8');
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

  #current(state: QuotaState): QuotaState {
    const now = this.#clock.now();
    return pruned(state, now, (slot) => this.#isTaken(slot, now));
  }

  #isTaken(slot: Slot, now: number): boolean {
    if (this.isOwn(slot)) return this.#ownSlots.has(slot.n);
    if (livenessOf(slot.holder) === 'dead') return false;
    // No process takes so long a lease: its clock, or ours, was wrong since.
    return slot.lease > now && slot.lease <= now + 2 * LEASE_MS;
  }

  #leaseEnd(): number {
    return this.#clock.now() + LEASE_MS;
  }

  #renewLater(): void {
    this.#renewing ??= this.#clock.after(RENEW_MS, () => {
      this.#renewing = undefined;
      if (this.#ownSlots.size === 0) return;
      this.#renewLater();
      void this.#renew().catch(() => {});
    });
  }

  #renew(): Promise<void> {
    return this.update((state) => {
      const lease = this.#leaseEnd();
      const slots = state.slots.map((slot) => (this.isOwn(slot) ? { ...slot, lease } : slot));
      return { state: { ...state, slots }, result: undefined };
    });
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
    if (this.#warned) return;
    this.#warned = true;
    this.#logger.warn('quota.state', message);
  }
}
