import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { transientFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { ExportGate, Head, Place } from './gate.ts';
import { Bell, Queue } from './queue.ts';
import { afterHead, type Decision, decide, type ExportLimits, forecastOf } from './rules.ts';
import { Ledger } from './shared-state.ts';
import { type QuotaState, SLOT_GRACE_MS, type Slot } from './state.ts';

export interface ExportQuotaOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId'>, ExportLimits {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Folder of the ledger that processes of one machine share; undefined: none is shared. */
  readonly ledgerDir?: string | undefined;
  /** A longer wait than this is refused. */
  readonly maxWaitMs?: number | undefined;
}

export function createExportQuota(options: ExportQuotaOptions): ExportGate {
  return new Gate(options);
}

/** Shorter waits are no news to anybody. */
const WORTH_TELLING_MS = 5_000;
/** A clock may jump, and another process may learn better: long waits are looked at again. */
const LONGEST_SLEEP_MS = 300_000;
/** How often the places of other processes are looked at. */
const POLL_MS = 200;

class Gate implements ExportGate {
  readonly #options: ExportQuotaOptions;
  readonly #ledger: Ledger;
  readonly #queue = new Queue();
  readonly #bell = new Bell();
  readonly #listeners = new Set<(until: number | undefined) => void>();
  readonly #places = new Set<Place>();
  #told: number | undefined;

  constructor(options: ExportQuotaOptions) {
    this.#options = options;
    this.#ledger = new Ledger({ path: ledgerPath(options), clock: options.clock, logger: options.logger });
  }

  forecast(count: number) {
    return forecastOf(this.#ledger.peek(), this.#options, count, this.#options.clock.now());
  }

  onWait(listener: (until: number | undefined) => void): void {
    this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#places].map((place) => place.leave()));
  }

  /** One at a time, in the order in which they came: whoever waits for the quota holds the others back. */
  async enter(signal: AbortSignal): Promise<Place> {
    const next = await this.#queue.turn(signal);
    try {
      for (;;) {
        signal.throwIfAborted();
        const rung = this.#bell.next();
        const decision = await this.#tryEnter();
        if ('place' in decision) return decision.place;
        await this.#wait(decision, rung, signal);
      }
    } finally {
      this.#tell(undefined);
      next();
    }
  }

  async #tryEnter(): Promise<{ readonly place: Place } | Decision> {
    const { clock } = this.#options;
    const decision = await this.#ledger.update<Decision | { readonly n: number }>((state) => {
      const now = clock.now();
      const made = decide(state, this.#options, now);
      return made.kind === 'go' ? this.#taken(state, now) : { state, result: made };
    });
    return 'n' in decision ? { place: this.#placeOf(decision.n) } : decision;
  }

  async enterNow(): Promise<Place> {
    const { n } = await this.#ledger.update((state) => this.#taken(state, this.#options.clock.now()));
    return this.#placeOf(n);
  }

  #taken(state: QuotaState, now: number) {
    const n = state.next;
    const slots = [...state.slots, this.#ledger.hold(n)];
    return { state: { ...state, next: n + 1, sent: [...state.sent, { n, at: now }], slots }, result: { n } };
  }

  #placeOf(n: number): Place {
    let left = false;
    const place: Place = {
      answered: (head) => this.#answered(n, head),
      leave: async () => {
        if (left) return;
        left = true;
        this.#places.delete(place);
        await this.#left(n);
      },
    };
    this.#places.add(place);
    return place;
  }

  async #answered(n: number, head: Head): Promise<void> {
    const { clock, random, logger } = this.#options;
    const lowered = await this.#ledger.update((state) => {
      const after = afterHead(state, n, head, { limits: this.#options, now: clock.now(), random });
      return { state: after, result: after.lowered === state.lowered ? undefined : after.lowered?.to };
    });
    if (lowered !== undefined) {
      const message = `The service refuses so many exports at once: ${lowered} at most for now.`;
      logger.warn('quota.crowded', message, { at_once: lowered });
    }
    this.#bell.ring();
  }

  async #left(n: number): Promise<void> {
    const freeAt = this.#options.clock.now() + SLOT_GRACE_MS;
    const mark = (slot: Slot): Slot => (slot.n === n ? { ...slot, freeAt } : slot);
    await this.#ledger.update((state) => ({ state: { ...state, slots: state.slots.map(mark) }, result: undefined }));
    this.#ledger.giveUp(n);
    this.#bell.ring();
  }

  async #wait(decision: Decision, rung: Promise<void>, signal: AbortSignal): Promise<void> {
    const now = this.#options.clock.now();
    if (decision.kind === 'until') await this.#waitUntil(decision.at, now, signal);
    if (decision.kind === 'news') await this.#waitForNews(decision.slots, now, rung, signal);
    // A clock that never really sleeps must not starve the sockets that the news come from.
    await new Promise((resolve) => setImmediate(resolve));
  }

  async #waitUntil(at: number, now: number, signal: AbortSignal): Promise<void> {
    const { maxWaitMs, clock } = this.#options;
    const wait = at - now;
    if (maxWaitMs !== undefined && wait > maxWaitMs) throw tooLong(at, wait, maxWaitMs);
    if (wait >= WORTH_TELLING_MS) this.#tell(at);
    await clock.sleep(Math.min(wait, LONGEST_SLEEP_MS), signal);
  }

  async #waitForNews(slots: readonly Slot[], now: number, rung: Promise<void>, signal: AbortSignal): Promise<void> {
    const ends = slots.flatMap(({ freeAt }) => freeAt ?? []);
    const isForeign = slots.some((slot) => !this.#ledger.isOwn(slot));
    const pause = Math.min(...ends.map((end) => end - now), isForeign ? POLL_MS : Number.POSITIVE_INFINITY);
    await this.#bell.wait(rung, Number.isFinite(pause) ? Math.max(1, pause) : undefined, this.#options.clock, signal);
  }

  /** Tells every listener once of a wait, and once of its end. */
  #tell(until: number | undefined): void {
    if (until === this.#told) return;
    this.#told = until;
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

/** One file a service; users of one machine do not share it. */
function ledgerPath({ ledgerDir, baseUrl, serviceId }: ExportQuotaOptions): string | undefined {
  if (ledgerDir === undefined) return undefined;
  const text = JSON.stringify([baseUrl, serviceId, process.getuid?.()]);
  const key = createHash('sha256').update(text).digest('hex').slice(0, 16);
  return join(ledgerDir, `dfinery-elt-quota-${key}.json`);
}

const tooLong = (at: number, wait: number, most: number) =>
  transientFailure(
    `The limit of exports is reached and the next may be sent at ${new Date(at).toISOString()}, in ${formatDuration(wait)}: ` +
      `longer than the ${formatDuration(most)} that --max-wait allows. What is done is kept; run again then.`,
    { internal: 'quota: the wait is longer than allowed' },
  );
