import pLimit from 'p-limit';
import { hasDuplicateOrMissingIds, type Window } from '../../extract/window.ts';
import { typedColumns } from '../../table/columns.ts';
import type { Engine } from '../session/engine.ts';
import type { WindowLoad } from './file-query.ts';

/** Number of statements that write rows at the same time; each works in one thread. */
export const WRITE_CONCURRENCY = 2;

interface Begun<T> {
  /** The number of the window, and the names and types of the columns, as text. */
  readonly planText: string;
  readonly result: Promise<T | undefined>;
}

/**
 * Writes the typed rows of windows while others are still downloaded. The result serves a later plan that gives the
 * same types to the same columns: then the values are the same, too.
 */
export class Prewriter<T> {
  readonly #engine: Engine;
  readonly #write: (load: WindowLoad) => Promise<T>;
  readonly #limit = pLimit(WRITE_CONCURRENCY);
  readonly #begun = new Map<Window, Begun<T>>();
  #isClosed = false;

  /** `write` works beside other statements. */
  constructor(engine: Engine, write: (load: WindowLoad) => Promise<T>) {
    this.#engine = engine;
    this.#write = write;
  }

  /** Begins to write the rows of a window, unless repeated ids must be numbered. A failure is left to the next try. */
  begin(load: WindowLoad): void {
    if (load.window.receipt.rows === 0 || hasDuplicateOrMissingIds(load.window)) return;
    const write = async () => (this.#isClosed || this.#engine.isLowOnMemory ? undefined : this.#write(load));
    const result = this.#limit(write).catch(() => undefined);
    this.#begun.set(load.window, { planText: planTextOf(load), result });
  }

  /** Waits for what was written of a window; undefined if that was not begun, failed, or had another plan. */
  async resultFor(load: WindowLoad): Promise<T | undefined> {
    const begun = this.#begun.get(load.window);
    return begun?.planText === planTextOf(load) ? begun.result : undefined;
  }

  /** Waits until nothing is being written. */
  async waitForAll(): Promise<void> {
    await Promise.all([...this.#begun.values()].map(({ result }) => result));
  }

  /** Forgets all results. */
  clear(): void {
    this.#begun.clear();
  }

  /** Interrupts what is being written, and waits for its end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#begun.size > 0) this.#engine.interrupt();
    await this.waitForAll();
  }
}

/** A text that is equal for two loads of a window only if their rows are the same. */
const planTextOf = ({ windowNumber, planned }: WindowLoad): string =>
  JSON.stringify([windowNumber, ...typedColumns([...planned.values()]).map(({ name, type }) => [name, type])]);
