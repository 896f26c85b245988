import { join } from 'node:path';
import schema from '../../../schemas/history.json' with { type: 'json' };
import { configFailure } from '../../base/errors.ts';
import { compileSchema, proved } from '../../config/validate.ts';
import { replaceFile } from '../../fs/atomic-file.ts';
import type { ColumnChange, RunRecord } from '../report.ts';
import { type RunHistory, type RunOutcome, unended } from '../runs.ts';
import { parseJson, readIfThere } from './dataset/manifest.ts';

/** Records kept of each kind: the latest. */
const MOST_RECORDS = 10_000;

interface HistoryFile {
  readonly v: 1;
  readonly runs: readonly RunRecord[];
  readonly changes: readonly ColumnChange[];
}

const EMPTY: HistoryFile = { v: 1, runs: [], changes: [] };
const valid = compileSchema(schema);

/** The path of the history in a folder's own files, beside its manifest. */
export const historyPath = (own: string): string => join(own, 'history.json');

/** The runs and changes of a folder (S49); empty where there is no file. Throws Failure for a damaged one. */
export async function readHistory(path: string): Promise<HistoryFile> {
  const text = await readIfThere(path);
  if (text === undefined) return EMPTY;
  const found = parseJson(text, path);
  if (valid(found)) return proved<HistoryFile>(found);
  throw configFailure(
    `${path} is no history of this program: restore it from a copy, or remove it to begin a new one.`,
  );
}

/** The runs and changes of a folder whose lock is held, in one file that is replaced whole. */
export class FolderHistory implements RunHistory {
  readonly #path: string;
  #file: HistoryFile;

  private constructor(path: string, file: HistoryFile) {
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
    const run = { began, ended: null, exitCode: null, cause: null, version, rows: 0, windows: 0, exports: 0, bytes: 0 };
    await this.#write({ ...this.#file, runs: [...this.#file.runs, run] });
    return before;
  }

  async end(ended: string, outcome: RunOutcome): Promise<void> {
    const run = this.#file.runs.at(-1);
    if (run === undefined) return;
    await this.#write({ ...this.#file, runs: [...this.#file.runs.slice(0, -1), { ...run, ended, ...outcome }] });
  }

  /** Source names that an earlier window lacked. */
  get missed(): ReadonlySet<string> {
    return new Set(this.#file.changes.filter(({ change }) => change === 'missing').map(({ sourceName }) => sourceName));
  }

  /** Adds the changes of a window that is about to be committed. */
  async add(changes: readonly ColumnChange[]): Promise<void> {
    if (changes.length > 0) await this.#write({ ...this.#file, changes: [...this.#file.changes, ...changes] });
  }

  async #write({ v, runs, changes }: HistoryFile): Promise<void> {
    const file = { v, runs: runs.slice(-MOST_RECORDS), changes: changes.slice(-MOST_RECORDS) };
    await replaceFile(this.#path, JSON.stringify(file));
    this.#file = file;
  }
}
