// This folder: the ledger of deletions: an append-only chain of lines, in which ids stand as keyed hashes, and its
// verification.

import type { Clock } from '../../base/clock.ts';
import { transientError, UserError } from '../../base/errors.ts';
import type { Chain, LedgerLine } from './line.ts';

type WithoutCommon<L> = L extends LedgerLine ? Omit<L, 'v' | 'run' | 'at'> : never;

/** What a line says, without what all lines of a run have. */
export type LedgerContent = WithoutCommon<LedgerLine>;

/** Writes signed lines. `write` resolves when they are as durable as this output can make them. */
export interface LedgerOutput {
  write(lines: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/**
 * The ledger of one run. Lines are signed in the order of the calls; those that wait for the disk at the same time share one
 * `fsync`. After a write has failed nothing more is written and every call fails.
 */
export class Ledger {
  readonly run: string;
  readonly #chain: Chain;
  readonly #output: LedgerOutput;
  readonly #clock: Clock;
  #pending: string[] = [];
  #head: string;
  #added = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  #failure: UserError | undefined;

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

  /** Does not wait for the disk: call `sync` before relying on the line. */
  add(content: LedgerContent): void {
    if (this.#failure) throw this.#failure;
    const common = { v: 1, run: this.run, at: new Date(this.#clock.now()).toISOString() } as const;
    this.#pending.push(this.#chain.sign({ ...common, ...content }));
    this.#added++;
  }

  /** Resolves when the line is on disk: only then may a request go out, or a place be changed. */
  async write(content: LedgerContent): Promise<void> {
    this.add(content);
    await this.sync();
  }

  /** Resolves when every line so far is on disk. */
  async sync(): Promise<void> {
    const wanted = this.#added;
    while (this.#written < wanted && this.#failure === undefined) {
      this.#writing ??= this.#writePending();
      await this.#writing;
    }
    if (this.#failure) throw this.#failure;
  }

  /** Closes the file; without a closing line the run can be resumed. */
  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      await this.#output.close();
    }
  }

  async #writePending(): Promise<void> {
    const lines = this.#pending;
    const { head } = this.#chain;
    this.#pending = [];
    try {
      await this.#output.write(lines);
      this.#written += lines.length;
      this.#head = head;
    } catch (error) {
      const message =
        'The ledger could not be written, so nothing more was done: see that its disk has room, then run again.';
      this.#failure = error instanceof UserError ? error : transientError(message, { cause: error });
    } finally {
      this.#writing = undefined;
    }
  }
}
