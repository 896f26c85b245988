// This folder: the ledger of deletions: an append-only chain of lines, in which ids stand as keyed hashes, and its
// verification.

import type { Clock } from '../../base/clock.ts';
import { transientFailure } from '../../base/errors.ts';
import type { Chain } from './chain.ts';
import type { LedgerLine, Outcome, PurgeLine } from './line.ts';
import type { LedgerOutput } from './output.ts';

type WithoutCommon<L> = L extends LedgerLine ? Omit<L, 'v' | 'run' | 'at'> : never;
type Content = WithoutCommon<LedgerLine>;

/** One answer, as the ledger records it. */
export interface Attempted {
  /** Hex of the id's keyed hash. */
  readonly id: string;
  readonly attempt: number;
}

/**
 * The ledger of one run. Lines are sealed in the order of the calls; those that wait for the disk at the same time share one
 * `fsync`. After a write has failed nothing more is written and every call rejects.
 */
export class Ledger {
  readonly run: string;
  readonly #chain: Chain;
  readonly #output: LedgerOutput;
  readonly #clock: Clock;
  #pending: string[] = [];
  #head: string;
  #sealed = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;

  constructor(run: string, chain: Chain, output: LedgerOutput, clock: Clock) {
    this.run = run;
    this.#chain = chain;
    this.#head = chain.head;
    this.#output = output;
    this.#clock = clock;
  }

  /** Code of the last line written, to be printed and stored elsewhere. */
  get head(): string {
    return this.#head;
  }

  open(content: Omit<Extract<Content, { kind: 'open' }>, 'kind'>): Promise<void> {
    this.#add({ kind: 'open', ...content });
    return this.sync();
  }

  /** Resolves when the line is on disk: only then may the request go out. */
  before(what: Attempted): Promise<void> {
    this.#add({ kind: 'before', ...what });
    return this.sync();
  }

  /** Does not wait for the disk: call `sync` before relying on it. */
  after(what: Attempted, outcome: Outcome, code: string, status: number | undefined): void {
    this.#add({ kind: 'after', ...what, outcome, code, status: status ?? null });
  }

  /** Does not wait for the disk. */
  purgeOnly(id: string): void {
    this.#add({ kind: 'purge_only', id });
  }

  /** Resolves when the line is on disk: only then may the place be changed. */
  purging(target: string, counts: Readonly<Record<string, number>>): Promise<void> {
    this.#add({ kind: 'purging', target, counts });
    return this.sync();
  }

  purge(
    target: string,
    { outcome, counts, unreached }: Required<Pick<PurgeLine, 'outcome' | 'counts' | 'unreached'>>,
  ): Promise<void> {
    this.#add({ kind: 'purge', target, outcome, counts, ...(unreached.length > 0 && { unreached }) });
    return this.sync();
  }

  /** Does not wait for the disk. */
  access(id: string, places: readonly string[]): void {
    this.#add({ kind: 'access', id, places });
  }

  /** Writes the closing line: the run is complete and will not be resumed. */
  finish(counts: Readonly<Record<string, number>>): Promise<void> {
    this.#add({ kind: 'close', counts });
    return this.sync();
  }

  /** Resolves when every line so far is on disk. */
  async sync(): Promise<void> {
    const wanted = this.#sealed;
    while (this.#written < wanted && this.#failure === undefined) {
      this.#writing ??= this.#write();
      await this.#writing;
    }
    if (this.#failure) throw this.#failure;
  }

  /** Closes the file; without `finish` the run can be resumed. */
  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      await this.#output.close();
    }
  }

  async #write(): Promise<void> {
    const lines = this.#pending;
    const { head } = this.#chain;
    this.#pending = [];
    try {
      await this.#output.write(lines);
      this.#written += lines.length;
      this.#head = head;
    } catch (error) {
      this.#failure = transientFailure(
        'The ledger could not be written, so nothing more was sent: see that its disk has room, then run again.',
        { cause: error },
      );
    } finally {
      this.#writing = undefined;
    }
  }

  #add(content: Content): void {
    if (this.#failure) throw this.#failure;
    const common = { v: 1, run: this.run, at: new Date(this.#clock.now()).toISOString() } as const;
    this.#pending.push(this.#chain.seal({ ...common, ...content }));
    this.#sealed++;
  }
}
