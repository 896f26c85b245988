import { join } from 'node:path';
import { replaceFile } from '../../fs/atomic-file.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { type ColumnChange, MAX_CHANGES, missedIn } from '../../table/changes.ts';
import { begunRun, type RunHistory, type RunOutcome, unended } from '../../table/runs.ts';
import { type History, NO_HISTORY, parseHistory } from '../history.ts';
import { readIfThere } from './dataset/manifest.ts';

/** Runs kept: the latest. */
const MOST_RUNS = 10_000;

/** The path of the history in a folder's own files, beside its manifest. */
export const historyPath = (own: string): string => join(own, 'history.json');

/** The runs and changes of a folder (S49); empty where there is no file. Throws Failure for a damaged one. */
export async function readHistory(path: string): Promise<History> {
  const text = await readIfThere(path);
  return text === undefined ? NO_HISTORY : parseHistory(text, path);
}

/** The runs and changes of a folder whose lock is held, in one file that is replaced whole. */
export class FolderHistory implements RunHistory {
  readonly #path: string;
  #file: History;

  private constructor(path: string, file: History) {
    this.#path = path;
    this.#file = file;
  }

  /**
   * `lastReceipt`: id of the latest committed receipt. Changes are written before the window that makes them: those of
   * a window that was never committed, because the run died in between, are dropped.
   */
  static async open(own: string, lastReceipt: string | undefined): Promise<FolderHistory> {
    const path = historyPath(own);
    const file = await readHistory(path);
    const changes = file.changes.filter(({ window }) => lastReceipt !== undefined && window <= lastReceipt);
    return new FolderHistory(path, { ...file, changes });
  }

  async begin(began: string, version: string): Promise<string[]> {
    const before = unended(this.#file.runs);
    await this.#write({ ...this.#file, runs: [...this.#file.runs, begunRun(began, version)] });
    return before;
  }

  async end(ended: string, outcome: RunOutcome): Promise<void> {
    const run = this.#file.runs.at(-1);
    if (run === undefined) return;
    await this.#write({ ...this.#file, runs: [...this.#file.runs.slice(0, -1), { ...run, ended, ...outcome }] });
  }

  /** Source names that an earlier window lacked. */
  get missed(): ReadonlySet<string> {
    return missedIn(this.#file.changes);
  }

  /** Adds the changes of a window that is about to be committed. */
  async add(changes: readonly ColumnChange[]): Promise<void> {
    if (changes.length > 0) await this.#write({ ...this.#file, changes: [...this.#file.changes, ...changes] });
  }

  async #write({ v, runs, changes }: History): Promise<void> {
    const file = { v, runs: runs.slice(-MOST_RUNS), changes: changes.slice(-MAX_CHANGES) };
    await replaceFile(this.#path, JSON.stringify(file)).catch((error: unknown) => {
      throw diskFailure(error, { what: this.#path, path: this.#path });
    });
    this.#file = file;
  }
}
