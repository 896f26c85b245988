// This folder: the target `parquet`: a folder with one Parquet file a day, which readers find by a glob pattern.
// `_dfinery.json` says what it holds, and is replaced last. Each file carries its own receipt, so that no journal is
// needed: what a kill leaves half-way is found by comparing files with that state, and mended by the next run.

import { existsSync, lstatSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type Day, isDay } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { plainCount } from '../../../base/quantities.ts';
import { pathLiteral } from '../../../engine/session/quote.ts';
import { nameDays } from '../../../extract/plan/calendar.ts';
import { checkLocalPath } from '../../../fs/local-path.ts';
import { withLockFile } from '../../../fs/lock.ts';
import { makeFolders } from '../../../fs/permissions.ts';
import { DiskStorage } from '../../../storage/disk.ts';
import { type Difference, difference } from '../../../table/differences.ts';
import { newState, type TableState } from '../../../table/place-state.ts';
import { nextChange, receiptsOf, type StoredReceipt, withPruned, withRows } from '../../../table/receipts.ts';
import type { RunRecord } from '../../../table/runs.ts';
import {
  type Change,
  type DayFile,
  type FilesFormat,
  type FilesLog,
  type FilesOptions,
  foreignError,
  type LogParts,
  type OpenMode,
} from '../format.ts';
import { writeParquet } from '../parquet-file.ts';
import { keysOf } from '../place.ts';
import { columnsOfFiles, describeFile, PARTITION_COLUMN, selectConformed } from '../rows.ts';
import { readDayFile } from './day-file.ts';
import { type FolderFile, type FolderState, filePath, folderFrom, folderText, schemaOf } from './state-file.ts';

const STATE = '_dfinery.json';
const LOCK = '_dfinery/lock';
/** The keys that a purge removes, while it is not finished: JSON lines of `day` and `key`. */
const NOTE = '_dfinery/purge.jsonl';
const FILE = 'data.parquet';
const TEMPORARY = /^\.[^/]+\.tmp$/;
const DAY_FOLDER = new RegExp(`^${PARTITION_COLUMN}=(\\d{4}-\\d{2}-\\d{2})$`);
/** Time between two looks at a lock that somebody else holds (ms). */
const PAUSE_MS = 100;

export const PARQUET: FilesFormat = {
  async storageOf({ place }) {
    checkLocalPath(place);
    return new DiskStorage(place);
  },
  async refuseForeign(storage) {
    if ((await storage.read(STATE)) !== undefined) return;
    for await (const _ of storage.list('events')) {
      // Another process may have made the first commit since.
      if ((await storage.read(STATE)) !== undefined) return;
      throw foreignError(storage.address);
    }
  },
  logOf: (parts, options, mode) => new FolderLog(parts, options, mode),
};

/** What a folder has, beside what its state says. */
interface Found extends FolderState {
  /** True if the state on the disk is another one. */
  readonly isAhead: boolean;
}

class FolderLog implements FilesLog {
  readonly isUniform = true;
  readonly notesKeys = true;
  damaged: ReadonlySet<Day> = new Set();
  readonly #parts: LogParts;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  readonly #root: string;
  #text: string | undefined;
  #parsed: (FolderState & { readonly text: string }) | undefined;
  #found: Found | undefined;
  #checkHeld: () => void = () => {};
  readonly #warned = new Set<Day>();

  constructor(parts: LogParts, options: FilesOptions, mode: OpenMode) {
    this.#parts = parts;
    this.#options = options;
    this.#mode = mode;
    this.#root = resolve(options.place);
  }

  get snapshot(): FolderState | undefined {
    return this.#found;
  }

  get unfinished(): ReadonlySet<Day> {
    if (this.#found === undefined) return new Set();
    const { files, state } = this.#found;
    const schema = schemaOf(columnsOfFiles(state));
    return new Set([...files.values()].filter((file) => file.schema !== schema).map(({ day }) => day));
  }

  pathOf(day: Day): string {
    return filePath(day);
  }

  /** Always empty: a commit writes all older files anew that lack a column. */
  outdated(): readonly DayFile[] {
    return [];
  }

  async read(): Promise<void> {
    if (this.#mode !== 'read' || existsSync(this.#path(NOTE))) await this.exclusively(async () => {});
    else await this.#read();
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const { clock, lockWaitMs: waitMs, signal, place } = this.#options;
    makeFolders(this.#path('_dfinery'));
    return withLockFile(this.#path(LOCK), { what: `the folder ${place}`, clock, waitMs, signal }, async (checkHeld) => {
      this.#checkHeld = checkHeld;
      await this.#read();
      await this.#mend();
      return work();
    });
  }

  async commit({ kind, state, added, removed, keys }: Change): Promise<void> {
    const { storage } = this.#parts;
    const before = this.#found ?? { state: newState(state.timezone), files: new Map<Day, FolderFile>(), isAhead: true };
    const schema = schemaOf(columnsOfFiles(state));
    if (this.#text === undefined || kind === 'purge' || schema !== schemaOf(columnsOfFiles(before.state))) {
      // The state names new columns before a file has them, and the people of a purge before their rows leave.
      const { columns, timezone, suppressionLength } = state;
      await this.#store({ ...before, state: { ...before.state, columns, timezone, suppressionLength } });
    }
    if (keys !== undefined) await storage.putFile(keys, NOTE);
    const files = new Map(before.files);
    const leaving = new Set([...removed, ...added].map(({ day }) => day));
    await this.#conform(files, state, leaving);
    for (const { local, facts: _facts, columns: _columns, ...file } of added) {
      this.#checkHeld();
      await storage.putFile(local, file.path);
      files.set(file.day, { ...file, ...this.#facts(file.day), columns: namesOf(state), schema });
    }
    const gone = removed.map(({ day }) => day).filter((day) => !added.some((file) => file.day === day));
    this.#checkHeld();
    await storage.remove(gone.map(filePath));
    for (const day of gone) {
      files.delete(day);
      await rm(join(this.#root, filePath(day), '..'), { recursive: true, force: true });
    }
    await this.#store({ state, files });
    const again = new Set([...added, ...removed].map(({ day }) => day));
    this.damaged = new Set([...this.damaged].filter((day) => !again.has(day)));
    if (kind === 'purge') await storage.remove([NOTE]);
  }

  tryErase(removed: readonly DayFile[]): Promise<void> {
    return this.#parts.storage.tryErase(removed.map(({ path }) => path));
  }

  /** A commit replaces files under their names: nothing of the old ones is left. */
  async erase(): Promise<void> {}

  async tidy(): Promise<void> {}

  recordRun(run: RunRecord): Promise<void> {
    return this.exclusively(async () => {
      const { state, files } = this.#found ?? { state: newState(this.#options.timezone ?? null), files: new Map() };
      await this.#store({ state: { ...state, lastRun: run }, files });
    });
  }

  /** Finds files that readers see although they are of no day. */
  async check(): Promise<Difference[]> {
    const seen = (await this.foreign()).filter((name) => name.endsWith('.parquet'));
    return seen.map((name) => difference('files', `${name} is of no day, and readers see it`));
  }

  async foreign(): Promise<string[]> {
    const entries = await readdir(this.#path('events'), { recursive: true, withFileTypes: true }).catch(() => []);
    const names = entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => relative(this.#path('events'), join(entry.parentPath, entry.name)));
    const foreign = names.filter((name) => {
      const [folder = '', file = '', ...rest] = name.split(/[\\/]/);
      return !DAY_FOLDER.test(folder) || rest.length > 0 || (file !== FILE && !TEMPORARY.test(file));
    });
    return foreign.sort().map((name) => `events/${name}`);
  }

  /** Waits, within bounds, for a writer that is at work. */
  async isUnchanged(): Promise<boolean> {
    const { clock, lockWaitMs, signal } = this.#options;
    for (let waited = 0; existsSync(this.#path(LOCK)) && waited < lockWaitMs; waited += PAUSE_MS) {
      await clock.sleep(PAUSE_MS, signal);
    }
    const [text, found] = [this.#text, this.#found];
    await this.#read();
    return text === this.#text && JSON.stringify(filesIn(found)) === JSON.stringify(filesIn(this.#found));
  }

  #path(path: string): string {
    return join(this.#root, path);
  }

  async #store(next: FolderState): Promise<void> {
    this.#checkHeld();
    const text = folderText(next);
    await this.#parts.storage.write(STATE, text);
    this.#text = text;
    this.#parsed = { text, ...next };
    this.#found = { ...next, isAhead: false };
  }

  /** Reads the state, and takes in what the files say where they differ from it. */
  async #read(): Promise<void> {
    this.#text = (await this.#parts.storage.read(STATE))?.toString('utf8');
    const there = await this.#list();
    if (this.#text === undefined) {
      this.#found = undefined;
      return;
    }
    if (this.#text !== this.#parsed?.text) {
      this.#parsed = { text: this.#text, ...folderFrom(this.#text, this.#path(STATE)) };
    }
    const { state, files: stored } = this.#parsed;
    const files = new Map<Day, FolderFile>();
    const receipts = new Map(state.receipts);
    const damaged = new Set<Day>();
    for (const [day, facts] of there) {
      const known = stored.get(day);
      if (known?.bytes === facts.bytes && known.modified === facts.modified) files.set(day, known);
      else {
        const own = await readDayFile(this.#parts.engine, { day, path: this.#path(filePath(day)) });
        if (own === undefined) damaged.add(day);
        else {
          files.set(day, { ...own.file, ...facts });
          receipts.set(day, own.receipt);
        }
      }
    }
    for (const day of damaged) receipts.delete(day);
    const pruned = [...receipts.values()].filter(({ day, rows_stored: rows }) => rows > 0 && !files.has(day));
    const isAhead = damaged.size > 0 || pruned.length > 0 || [...files].some(([day, file]) => stored.get(day) !== file);
    this.#warn(pruned);
    const all = withPruned(
      receiptsOf(receipts.values()),
      pruned.map(({ day }) => day),
      nextChange(receipts, this.#options.clock.now()),
    );
    this.damaged = damaged;
    this.#found = { state: withDamaged({ ...state, receipts: all }, damaged), files, isAhead };
  }

  #warn(pruned: readonly StoredReceipt[]): void {
    const days = pruned.map(({ day }) => day).filter((day) => !this.#warned.has(day));
    if (days.length === 0 || this.#mode === 'read') return;
    for (const day of days) this.#warned.add(day);
    const message = `${this.#options.place}: the files of ${plainCount(days.length, 'day')} were removed (${nameDays(days)}): they count as pruned.`;
    this.#options.logger.warn('days.removed', message, { days: days.length });
  }

  /** The files of days, by day. */
  async #list(): Promise<Map<Day, Pick<FolderFile, 'bytes' | 'modified'>>> {
    const found = new Map<Day, Pick<FolderFile, 'bytes' | 'modified'>>();
    const names = await readdir(this.#path('events')).catch((error) => {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    });
    for (const name of names.sort()) {
      const day = DAY_FOLDER.exec(name)?.[1];
      if (day === undefined || !isDay(day)) continue;
      if (existsSync(this.#path(filePath(day)))) found.set(day, this.#facts(day));
    }
    return found;
  }

  /** Sizes and times of 1,000 files take 5 ms at once, and 100 one after the other. */
  #facts(day: Day): Pick<FolderFile, 'bytes' | 'modified'> {
    const { size, mtimeMs } = lstatSync(this.#path(filePath(day)));
    return { bytes: size, modified: mtimeMs };
  }

  /** Finishes what a killed run left half-way. Called under the lock. */
  async #mend(): Promise<void> {
    if (this.#found === undefined) return;
    const note = this.#path(NOTE);
    if (existsSync(note)) {
      await this.#finishPurge(note);
      await this.#parts.storage.remove([NOTE]);
    }
    const { state, isAhead } = this.#found;
    const files = new Map(this.#found.files);
    const hasChanged = await this.#conform(files, state, new Set());
    if (isAhead || hasChanged) await this.#store({ state, files });
  }

  /** Writes the files anew that lack a column, or have one of another type. */
  async #conform(files: Map<Day, FolderFile>, state: TableState, others: ReadonlySet<Day>): Promise<boolean> {
    const schema = schemaOf(columnsOfFiles(state));
    const outdated = [...files.values()].filter((file) => file.schema !== schema && !others.has(file.day));
    for (const file of outdated) files.set(file.day, await this.#replace(file, state, file.rows));
    return outdated.length > 0;
  }

  /** Replaces a file by its rows that meet a condition, with the columns of the state. */
  async #replace(file: FolderFile, state: TableState, rows: number, condition = 'true'): Promise<FolderFile> {
    const { engine, folder, storage } = this.#parts;
    const path = this.#path(file.path);
    const receipt = state.receipts.get(file.day);
    if (receipt === undefined) throw new RangeError(`${file.day} has no receipt`);
    const all = selectConformed(path, await describeFile(engine, path), state);
    const query = `SELECT * FROM (${all}) WHERE ${condition}`;
    const to = { query, rows, receipt: { ...receipt, rows_stored: rows } };
    const written = await writeParquet(engine, to, join(folder, `${file.day}.part`));
    if (written.rows !== rows) throw new RangeError(`${file.path} came to ${written.rows} rows instead of ${rows}`);
    this.#checkHeld();
    await storage.putFile(written.local, file.path);
    const { sha256 } = written;
    const schema = schemaOf(columnsOfFiles(state));
    return { ...file, ...this.#facts(file.day), rows, sha256, schema, columns: namesOf(state) };
  }

  /** Removes the rows that a killed purge has noted. */
  async #finishPurge(note: string): Promise<void> {
    const { engine, storage } = this.#parts;
    const found = this.#found;
    if (found === undefined) return;
    const files = new Map(found.files);
    const left = new Map<Day, number>();
    for (const file of found.files.values()) {
      const path = this.#path(file.path);
      const isGone = `coalesce(_key IN (${keysOf(note, file.day)}), false)`;
      const lost = await engine.count(`read_parquet(${pathLiteral(path)}) WHERE ${isGone}`);
      if (lost === 0) continue;
      const rows = file.rows - lost;
      if (rows > 0) files.set(file.day, await this.#replace(file, found.state, rows, `NOT ${isGone}`));
      else {
        await storage.remove([file.path]);
        files.delete(file.day);
      }
      left.set(file.day, rows);
    }
    const changedAt = nextChange(found.state.receipts, this.#options.clock.now());
    const receipts = withRows(found.state.receipts, left, changedAt);
    await this.#store({ state: { ...found.state, receipts }, files });
    this.#options.logger.warn('parquet.purged', `${this.#options.place}: a purge that was killed is finished now.`);
  }
}

const namesOf = (state: TableState): ReadonlySet<string> => new Set(columnsOfFiles(state).map(({ name }) => name));

const filesIn = (found: FolderState | undefined) =>
  [...(found?.files.values() ?? [])].map(({ day, bytes, modified }) => [day, bytes, modified]);

/** The days whose file cannot be read are read again by the next run. */
function withDamaged(state: TableState, damaged: ReadonlySet<Day>): TableState {
  const { exportState } = state;
  if (exportState === undefined || damaged.size === 0) return state;
  const again = new Set([...(exportState.read_again ?? []), ...damaged]);
  return { ...state, exportState: { ...exportState, read_again: [...again].sort() } };
}
