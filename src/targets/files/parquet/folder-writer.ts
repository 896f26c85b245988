import { rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Day } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import { newState, type PlaceState, profilesAsTable, type RunRecord } from '../../../table/place-state.ts';
import { receiptsOf } from '../../../table/receipts.ts';
import { type Change, type LogParts, type NewFile, newFileOf, STATE_FILE } from '../format.ts';
import { parquetColumns, rewriteParquet } from '../parquet-file.ts';
import { type FolderVersion, outdatedFiles, sizeAndTime } from './folder-files.ts';
import { columnsInFile, dayPath, type FolderFile, PROFILES_FILE, schemaOf, serializeState } from './folder-state.ts';

/** Codes of a folder that is gone already, or that holds files. */
const FOLDER_STAYS: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST']);

/**
 * Changes a folder while its lock is held. Each step is on the disk before the next, and leaves a folder that
 * `readFolder` understands. A kill between the files of two days can leave a row of both in neither of them. The next
 * sync stores it, since the cursor has not moved. A killed purge can leave people in some days. They are on the
 * suppression list, so the same command removes them.
 */
export class FolderWriter {
  readonly #parts: LogParts;
  readonly #root: string;
  /** Asked before each step that others see: this process may have been suspended for long. */
  readonly #checkHeld: () => void;

  constructor(parts: LogParts, root: string, checkHeld: () => void) {
    this.#parts = parts;
    this.#root = root;
    this.#checkHeld = checkHeld;
  }

  /** Finishes what a killed run left half-way, and stores what differs from the state. */
  async mend(before: FolderVersion): Promise<FolderVersion> {
    const version = await this.#rewriteOutdated(before);
    return stateTextOf(version) === version.text ? version : this.#store(version);
  }

  /** Makes a change of a version; `before` is undefined for the first commit. */
  async commit(before: FolderVersion | undefined, { kind, state, events, profiles }: Change): Promise<FolderVersion> {
    const current = before ?? emptyVersion(state.timezone);
    const { removed, added } = events ?? { removed: [], added: [] };
    const days = new Set([...removed, ...added.map(({ day }) => day)]);
    // 1. The state names new columns before a file has them, and the people of a purge before their rows leave.
    const columns = parquetColumns(state);
    const isOtherSchema = schemaOf(columns) !== schemaOf(parquetColumns(current.state));
    const isAnnounced = current.text === undefined || kind === 'purge' || isOtherSchema;
    const announced = isAnnounced ? await this.#announce(current, state, days) : current;
    // 2. The files of other days get the new columns.
    const conformed = await this.#rewriteOutdated(announced, days);
    // 3. The files of the change replace the others. Days without rows lose theirs.
    const ofOtherDays = <V>(files: ReadonlyMap<Day, V>) => new Map([...files].filter(([day]) => !days.has(day)));
    const [files, damagedDays] = [ofOtherDays(conformed.files), ofOtherDays(conformed.damagedDays)];
    for (const file of added) files.set(file.day, await this.#put(file, columns));
    await this.#removeDays([...days].filter((day) => !files.has(day)));
    const withProfiles = profiles && {
      profiles: await this.#putProfiles(state, profiles.added[0]),
      damagedProfiles: undefined,
    };
    // 4. The state says what is there now.
    return this.#store({ ...conformed, state, files, damagedDays, ...withProfiles });
  }

  recordRun(version: FolderVersion, lastRun: RunRecord): Promise<FolderVersion> {
    return this.#store({ ...version, state: { ...version.state, lastRun } });
  }

  /** Stores the new columns, the receipts of the files that will get them, and the length of the suppression list. */
  #announce(version: FolderVersion, state: PlaceState, days: ReadonlySet<Day>): Promise<FolderVersion> {
    const { columns, timezone, suppressionLength } = state;
    const ofOtherDays = [...state.receipts.values()].filter(({ day }) => version.files.has(day) && !days.has(day));
    const receipts = receiptsOf([...version.state.receipts.values(), ...ofOtherDays]);
    return this.#store({ ...version, state: { ...version.state, columns, timezone, suppressionLength, receipts } });
  }

  async #store(version: FolderVersion): Promise<FolderVersion> {
    const text = stateTextOf(version);
    this.#checkHeld();
    await this.#parts.storage.write(STATE_FILE, text);
    return { ...version, text };
  }

  /** Replaces the files that lack a column, or have one of another type. A change replaces those of `days` anyway. */
  async #rewriteOutdated(version: FolderVersion, days: ReadonlySet<Day> = new Set()): Promise<FolderVersion> {
    const files = new Map(version.files);
    const columns = parquetColumns(version.state);
    for (const file of outdatedFiles(version)) {
      if (!days.has(file.day)) files.set(file.day, await this.#put(await this.#rewrite(file, version.state), columns));
    }
    return { ...version, files, unfinishedDays: new Set() };
  }

  /** Writes a file anew, with the columns of the state. */
  async #rewrite(file: FolderFile, state: PlaceState): Promise<NewFile> {
    const { engine, runFolder } = this.#parts;
    const { day, path, rows } = file;
    const receipt = state.receipts.get(day);
    if (receipt === undefined) throw new RangeError(`${day} has no receipt`);
    const source = { local: this.#path(path), table: state, isUniform: true, rows, receipt };
    const written = await rewriteParquet(engine, source, join(runFolder, `${day}.part`));
    return newFileOf(written, day, path);
  }

  #path(path: string): string {
    return join(this.#root, path);
  }

  /** Moves a new file into its place. */
  async #put(
    { local, day, path, rows, sha256, writtenAt }: NewFile,
    columns: readonly DescribedColumn[],
  ): Promise<FolderFile> {
    this.#checkHeld();
    await this.#parts.storage.putFile(local, path);
    const onDisk = sizeAndTime(this.#path(path));
    if (onDisk === undefined) throw new RangeError(`${path} is gone`);
    return { ...{ day, path, rows, sha256, writtenAt }, ...onDisk, ...columnsInFile(columns) };
  }

  async #remove(paths: readonly string[]): Promise<void> {
    this.#checkHeld();
    await this.#parts.storage.remove(paths);
  }

  /** Removes the files of days, and their folders unless they hold files of others. */
  async #removeDays(days: readonly Day[]): Promise<void> {
    await this.#remove(days.map(dayPath));
    for (const day of days) {
      await rmdir(dirname(this.#path(dayPath(day)))).catch((error) => {
        if (!FOLDER_STAYS.has(codeOf(error))) throw error;
      });
    }
  }

  /** Replaces the file of profiles, or removes it if none is left. */
  async #putProfiles(state: PlaceState, file: NewFile | undefined): Promise<FolderFile | undefined> {
    const table = profilesAsTable(state);
    if (table !== undefined && file !== undefined) return this.#put(file, parquetColumns(table));
    await this.#remove([PROFILES_FILE]);
    return undefined;
  }
}

const emptyVersion = (timezone: string | null): FolderVersion => ({
  text: undefined,
  state: newState(timezone),
  files: new Map(),
  damagedDays: new Map(),
  unfinishedDays: new Set(),
});

/** The text of a version's state. Of damaged files it keeps the entries: the right file may come back from a copy. */
function stateTextOf({ state, files, damagedDays, profiles, damagedProfiles }: FolderVersion): string {
  const damaged = [...damagedDays].flatMap(([day, file]): [Day, FolderFile][] =>
    file === undefined ? [] : [[day, file]],
  );
  return serializeState({
    state: { ...state, profiles: state.profiles ?? damagedProfiles?.stored },
    files: new Map([...files, ...damaged]),
    profiles: profiles ?? damagedProfiles?.file,
  });
}
