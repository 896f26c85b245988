// This folder: the target `parquet`: a folder with one Parquet file a day, which readers find by a glob pattern.
// `_dfinery.json` says what it holds, and is replaced last. Each file carries its own receipt, so that no journal is
// needed: `folder-files.ts` finds what a kill left half-way, and the next run mends it.

import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { type Day, nameDays } from '../../../base/days.ts';
import { plainCount } from '../../../base/quantities.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import { checkLocalPath } from '../../../fs/local-path.ts';
import { withLockFile } from '../../../fs/lock.ts';
import { makeFolders } from '../../../fs/permissions.ts';
import { DiskStorage } from '../../../storage/disk.ts';
import { type Difference, damagedWarning, difference } from '../../../table/differences.ts';
import { newState, type RunRecord, type TableState } from '../../../table/place-state.ts';
import { nextChange, receiptsOf, withPruned, withRows } from '../../../table/receipts.ts';
import { type Table, USER_PROFILES } from '../../../table/tables.ts';
import {
  type Change,
  type CommitChange,
  type DayFile,
  type FilesFormat,
  type FilesLog,
  type FilesOptions,
  foreignError,
  type LogParts,
  type OpenMode,
} from '../format.ts';
import { readParquet, writeParquet } from '../parquet-file.ts';
import { keysOf } from '../place.ts';
import { columnsOfFiles, describeFile, selectConformed } from '../rows.ts';
import { compareFiles, DAY_FOLDER, FILE, type FolderFiles, factsOf, readProfiles, sizeOf } from './folder-files.ts';
import {
  type FolderFile,
  type FolderState,
  filePath,
  folderFrom,
  folderText,
  PROFILES_PATH,
  type ProfilesFile,
  profilesFile,
  schemaOf,
} from './state-file.ts';

const STATE = '_dfinery.json';
const LOCK = '_dfinery/lock';
/** The keys that a purge removes, while it is not finished: JSON lines of `day` and `key`. */
const NOTE = '_dfinery/purge.jsonl';
const TEMPORARY = /^\.[^/]+\.tmp$/;
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

/** A folder as it is on the disk: its state, completed by what its files say. */
interface FolderVersion extends FolderState, Pick<FolderFiles, 'damaged'> {
  /** The text of `_dfinery.json`; undefined before the first commit. */
  readonly text: string | undefined;
  /** True if the file of profiles is there, and cannot be read. */
  readonly hasDamagedProfiles?: boolean;
}

class FolderLog implements FilesLog {
  readonly isUniform = true;
  readonly notesKeys = true;
  /** False: whoever may write stores such days at once. */
  readonly isAhead = false;
  readonly #parts: LogParts;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  readonly #root: string;
  /** The version that was read or stored last; undefined before the first commit. */
  #version: FolderVersion | undefined;
  readonly #warned = new Set<Day>();

  constructor(parts: LogParts, options: FilesOptions, mode: OpenMode) {
    this.#parts = parts;
    this.#options = options;
    this.#mode = mode;
    this.#root = resolve(options.place);
  }

  get snapshot(): FolderState | undefined {
    return this.#version;
  }

  get damaged(): readonly Day[] {
    return [...(this.#version?.damaged.keys() ?? [])];
  }

  get unfinished(): ReadonlySet<Day> {
    return new Set(this.#version === undefined ? [] : outdatedFiles(this.#version).map(({ day }) => day));
  }

  columnsOf(state: Pick<TableState, 'columns' | 'timezone'>): DescribedColumn[] {
    return columnsOfFiles(state);
  }

  pathOf(day: Day, table: Table['name']): string {
    return table === USER_PROFILES.name ? PROFILES_PATH : filePath(day);
  }

  async refuseForeignProfiles(): Promise<void> {
    if (this.#version?.state.profiles !== undefined) return;
    const { storage } = this.#parts;
    // A file of ours that is damaged is replaced.
    const text = (await storage.read(STATE))?.toString('utf8');
    if (text !== undefined && folderFrom(text, this.#path(STATE)).state.profiles !== undefined) return;
    for await (const _ of storage.list(USER_PROFILES.name)) throw foreignError(storage.address, USER_PROFILES.name);
  }

  /** Always empty: a commit writes all older files anew that lack a column. */
  outdated(): readonly DayFile[] {
    return [];
  }

  async read(): Promise<void> {
    if (this.#mode !== 'read' || existsSync(this.#path(NOTE))) await this.exclusively(async () => {});
    else this.#version = await this.#read();
  }

  exclusively<T>(work: (commit: CommitChange) => Promise<T>): Promise<T> {
    return this.#locked((checkHeld) =>
      work(async (change) => {
        this.#version = await this.#commit(this.#version, change, checkHeld);
      }),
    );
  }

  /** Work asks `checkHeld` before each step that others see: this process may have been suspended for long. */
  #locked<T>(work: (checkHeld: () => void) => Promise<T>): Promise<T> {
    const { clock, lockWaitMs: waitMs, signal, place } = this.#options;
    makeFolders(this.#path('_dfinery'));
    return withLockFile(this.#path(LOCK), { what: `the folder ${place}`, clock, waitMs, signal }, async (checkHeld) => {
      this.#version = await this.#read();
      if (this.#version !== undefined) this.#version = await this.#mend(this.#version, checkHeld);
      return work(checkHeld);
    });
  }

  tryErase(removed: Change['removed']): Promise<void> {
    return this.#parts.storage.tryErase(removed.map(({ path }) => path));
  }

  /** A commit replaces files under their names: nothing of the old ones is left. */
  async erase(): Promise<void> {}

  async tidy(): Promise<void> {}

  async recordRun(run: RunRecord): Promise<void> {
    await this.#locked(async (checkHeld) => {
      const before = this.#version ?? emptyVersion(newState(this.#options.timezone ?? null));
      this.#version = await this.#store({ ...before, state: { ...before.state, lastRun: run } }, checkHeld);
    });
  }

  /** Finds files that readers see although they are of no day. */
  async check(): Promise<Difference[]> {
    const seen = (await this.foreign()).filter((name) => name.endsWith('.parquet'));
    const damaged = difference('files', `${PROFILES_PATH} is not a file that was written: the next sync replaces it`);
    return [
      ...seen.map((name) => difference('files', `${name} is of no day, and readers see it`)),
      ...(this.#version?.hasDamagedProfiles === true ? [damaged] : []),
    ];
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
    const before = this.#version;
    this.#version = await this.#read();
    return before?.text === this.#version?.text && filesIn(before) === filesIn(this.#version);
  }

  #path(path: string): string {
    return join(this.#root, path);
  }

  /** Reads the state, and takes in what the files say where they differ from it. */
  async #read(): Promise<FolderVersion | undefined> {
    const text = (await this.#parts.storage.read(STATE))?.toString('utf8');
    if (text === undefined) return undefined;
    const stored = folderFrom(text, this.#path(STATE));
    const { files, receipts: left, damaged } = await compareFiles(this.#parts.engine, this.#root, stored);
    const receipts = receiptsOf([...stored.state.receipts.values(), ...left]);
    const removed = [...receipts.values()].filter(
      ({ day, rows_stored: rows }) => rows > 0 && !files.has(day) && !damaged.has(day),
    );
    const days = removed.map(({ day }) => day);
    const changedAt = nextChange(receipts, this.#options.clock.now());
    this.#warn(days, [...damaged.keys()]);
    const profiles = await readProfiles(this.#parts.engine, this.#root, stored);
    const state = { ...stored.state, receipts: withPruned(receipts, days, changedAt), profiles: profiles?.profiles };
    const hasDamagedProfiles =
      stored.state.profiles !== undefined && profiles === undefined && existsSync(this.#path(PROFILES_PATH));
    return { text, state, files, damaged, profiles: profiles?.file, hasDamagedProfiles };
  }

  /** Warns once in a run of each day that is removed or damaged. */
  #warn(removed: readonly Day[], damaged: readonly Day[]): void {
    if (this.#mode === 'read') return;
    const { place, logger } = this.#options;
    const fresh = (days: readonly Day[]) => days.filter((day) => !this.#warned.has(day));
    const [newlyRemoved, newlyDamaged] = [fresh(removed), fresh(damaged)];
    for (const day of [...newlyRemoved, ...newlyDamaged]) this.#warned.add(day);
    if (newlyRemoved.length > 0) {
      const days = plainCount(newlyRemoved.length, 'day');
      const message = `${place}: the files of ${days} were removed (${nameDays(newlyRemoved)}): they count as pruned.`;
      logger.warn('days.removed', message, { days: newlyRemoved.length });
    }
    if (newlyDamaged.length > 0) {
      const message = `${place}: ${damagedWarning(newlyDamaged)}`;
      logger.warn('days.damaged', message, { days: newlyDamaged.length });
    }
  }

  /** Finishes what a killed run left half-way, and stores what differs from the state. */
  async #mend(found: FolderVersion, checkHeld: () => void): Promise<FolderVersion> {
    let version = found;
    if (existsSync(this.#path(NOTE))) {
      version = await this.#finishPurge(version, this.#path(NOTE), checkHeld);
      await this.#parts.storage.remove([NOTE]);
    }
    version = await this.#conform(version, checkHeld);
    return textOf(version) === version.text ? version : await this.#store(version, checkHeld);
  }

  async #commit(found: FolderVersion | undefined, change: Change, checkHeld: () => void): Promise<FolderVersion> {
    const { kind, state, added, removed, keys } = change;
    const { storage } = this.#parts;
    let version = found ?? emptyVersion(newState(state.timezone));
    const leaving = new Set([...removed, ...added].map(({ day }) => day));
    const isOtherSchema = schemaOf(columnsOfFiles(state)) !== schemaOf(columnsOfFiles(version.state));
    if (version.text === undefined || kind === 'purge' || isOtherSchema) {
      // The state names new columns before a file has them, and the people of a purge before their rows leave.
      const { columns, timezone, suppressionLength } = state;
      const staying = [...state.receipts.values()].filter(({ day }) => version.files.has(day) && !leaving.has(day));
      const receipts = receiptsOf([...version.state.receipts.values(), ...staying]);
      version = await this.#store(
        {
          ...version,
          state: { ...version.state, columns, timezone, suppressionLength, receipts },
        },
        checkHeld,
      );
    }
    if (keys !== undefined) await storage.putFile(keys, NOTE);
    version = await this.#conform(version, checkHeld, leaving);
    const files = new Map(version.files);
    const damaged = new Map(version.damaged);
    for (const day of leaving) {
      files.delete(day);
      damaged.delete(day);
    }
    const columns = columnsOfFiles(state);
    for (const { local, facts: _facts, ...file } of added) {
      checkHeld();
      await storage.putFile(local, file.path);
      files.set(file.day, this.#stored(file, columns));
    }
    checkHeld();
    const gone = [...leaving].filter((day) => !files.has(day)).map(filePath);
    await storage.remove(gone);
    for (const path of gone) await rm(dirname(this.#path(path)), { recursive: true, force: true });
    const profiles = await this.#putProfiles(version, change, checkHeld);
    version = await this.#store({ text: version.text, state, files, damaged, profiles }, checkHeld);
    if (kind === 'purge') await storage.remove([NOTE]);
    return version;
  }

  /** Puts a new file of profiles in its place, or removes the file; gives the one that is there then. */
  async #putProfiles(
    { profiles: file }: FolderVersion,
    { state, profiles: change }: Change,
    checkHeld: () => void,
  ): Promise<ProfilesFile | undefined> {
    if (change === undefined || state.profiles === undefined) return file;
    const { storage } = this.#parts;
    checkHeld();
    if (change.added === undefined) {
      await storage.remove([PROFILES_PATH]);
      return undefined;
    }
    const { local, rows, sha256 } = change.added;
    await storage.putFile(local, PROFILES_PATH);
    const facts = sizeOf(this.#path(PROFILES_PATH));
    if (facts === undefined) throw new RangeError(`${PROFILES_PATH} is gone`);
    return profilesFile(state.profiles, state.timezone, { ...facts, rows, sha256 });
  }

  async #store(next: FolderVersion, checkHeld: () => void): Promise<FolderVersion> {
    const text = textOf(next);
    checkHeld();
    await this.#parts.storage.write(STATE, text);
    return { ...next, text };
  }

  /** Writes the files anew that lack a column, or have one of another type; not those of days that leave anyway. */
  async #conform(version: FolderVersion, checkHeld: () => void, leaving?: ReadonlySet<Day>): Promise<FolderVersion> {
    const files = new Map(version.files);
    for (const file of outdatedFiles(version)) {
      if (leaving?.has(file.day) === true) continue;
      files.set(file.day, await this.#rewrite(file, version.state, checkHeld));
    }
    return { ...version, files };
  }

  /** Removes the rows that a killed purge has noted. */
  async #finishPurge(version: FolderVersion, note: string, checkHeld: () => void): Promise<FolderVersion> {
    const { engine, storage } = this.#parts;
    const left = new Map<Day, number>();
    for (const file of version.files.values()) {
      const isGone = noted(note, file.day);
      const lost = await engine.count(`${readParquet([this.#path(file.path)])} WHERE ${isGone}`);
      if (lost > 0) left.set(file.day, file.rows - lost);
    }
    const { receipts: before } = version.state;
    const receipts = withRows(before, left, nextChange(before, this.#options.clock.now()));
    const state = { ...version.state, receipts };
    const files = new Map(version.files);
    for (const [day, rows] of left) {
      const file = files.get(day);
      if (file === undefined) continue;
      files.delete(day);
      if (rows === 0) await storage.remove([file.path]);
      else files.set(day, await this.#rewrite({ ...file, rows }, state, checkHeld, `NOT ${noted(note, day)}`));
    }
    this.#options.logger.warn('parquet.purged', `${this.#options.place}: a purge that was killed is finished now.`);
    return this.#store({ ...version, state, files }, checkHeld);
  }

  /** Replaces a file by its rows that meet a condition, with the columns of the state. `file.rows`: the rows it then has. */
  async #rewrite(file: FolderFile, state: TableState, checkHeld: () => void, condition = 'true'): Promise<FolderFile> {
    const { engine, folder, storage } = this.#parts;
    const { day, path, rows } = file;
    const receipt = state.receipts.get(day);
    if (receipt === undefined) throw new RangeError(`${day} has no receipt`);
    const stored = this.#path(path);
    const conformed = selectConformed(stored, await describeFile(engine, stored), state);
    const query = `SELECT * FROM (${conformed}) WHERE ${condition}`;
    const written = await writeParquet(engine, { query, rows, receipt }, join(folder, `${day}.part`));
    if (written.rows !== rows) throw new RangeError(`${path} came to ${written.rows} rows instead of ${rows}`);
    checkHeld();
    await storage.putFile(written.local, path);
    const { sha256, writtenAt } = written;
    return this.#stored({ ...file, sha256, writtenAt }, columnsOfFiles(state));
  }

  /** The facts of a file that was just put in its place. */
  #stored(file: Omit<FolderFile, 'modified' | 'schema'>, columns: readonly DescribedColumn[]): FolderFile {
    const facts = factsOf(this.#root, file.day);
    if (facts === undefined) throw new RangeError(`${file.path} is gone`);
    return { ...file, ...facts, schema: schemaOf(columns), columns: new Set(columns.map(({ name }) => name)) };
  }
}

const emptyVersion = (state: TableState): FolderVersion => ({
  ...{ text: undefined, state },
  ...{ files: new Map(), damaged: new Map() },
});

/** The text of a version's state. Of a damaged file it keeps what was known: the right one may come back from a copy. */
function textOf({ state, files, damaged, profiles }: FolderVersion): string {
  const lost = [...damaged].flatMap(([day, file]): [Day, FolderFile][] => (file === undefined ? [] : [[day, file]]));
  return folderText({ state, files: new Map([...files, ...lost]), profiles });
}

/** The files that have other columns, or columns of other types, than the state. */
function outdatedFiles({ state, files }: FolderState): FolderFile[] {
  const schema = schemaOf(columnsOfFiles(state));
  return [...files.values()].filter((file) => file.schema !== schema);
}

/** SQL that is TRUE for a row of a day whose key is in the note of a purge. */
const noted = (note: string, day: Day): string => `coalesce(_key IN (${keysOf(note, day)}), false)`;

const filesIn = (version: FolderVersion | undefined): string =>
  JSON.stringify([...(version?.files.values() ?? [])].map(({ day, bytes, modified }) => [day, bytes, modified]));
