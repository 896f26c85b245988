// This folder: the ledger of deletions: an append-only chain of lines, in which ids stand as keyed hashes, and its
// verification.

import type { Clock } from '../../base/clock.ts';
import { transientError, UserError } from '../../base/errors.ts';
import type { LedgerKey } from './key.ts';
import { type LedgerContent, signLine } from './line.ts';

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
  readonly #key: LedgerKey;
  readonly #output: LedgerOutput;
  readonly #clock: Clock;
  #pending: string[] = [];
  /** Codes of the last line signed, and of the last one written. */
  #signed: string;
  #head: string;
  #added = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  #failure: UserError | undefined;

  /** `prev`: code of the line that its first one follows. */
  constructor(run: string, prev: string, key: LedgerKey, output: LedgerOutput, clock: Clock) {
    this.run = run;
    this.#key = key;
    this.#output = output;
    this.#clock = clock;
    this.#signed = prev;
    this.#head = prev;
  }

  /** Code of the last line written, to be printed and stored elsewhere. */
  get head(): string {
    return this.#head;
  }

  /** Does not wait for the disk: call `sync` before relying on the line. */
  add(content: LedgerContent): void {
    if (this.#failure) throw this.#failure;
    const at = new Date(this.#clock.now()).toISOString();
    const { text, mac } = signLine({ v: 1, run: this.run, at, ...content }, this.#signed, this.#key);
    this.#pending.push(text);
    this.#signed = mac;
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
    const [lines, head] = [this.#pending, this.#signed];
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
