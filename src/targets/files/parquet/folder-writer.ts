import { rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from '../../../base/errors.ts';
import { newState, type PlaceState } from '../../../table/place-state.ts';
import { receiptsOf } from '../../../table/receipts.ts';
import { EVENTS } from '../../../table/tables.ts';
import { type Change, STATE_FILE, TABLE_NAMES } from '../format.ts';
import type { LocalFiles, NewFile } from '../local-files.ts';
import { type FolderEntry, type FolderVersion, folderVersion, sizeAndTime } from './folder-files.ts';
import { filePath, PROFILES_FILE, type RecordedFile, schemaOf, serializeState } from './folder-state.ts';

/** Codes of a folder that is gone already, or that holds files. */
const FOLDER_STAYS: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST']);

/**
 * Changes a folder while its lock is held. Each step is on the disk before the next, and leaves a folder that
 * `readFolder` understands. A kill between the files of two days can leave a row of both in neither of them. The next
 * sync stores it, since the cursor has not moved. A killed purge can leave people in some days. They are on the
 * suppression list, so the same command removes them.
 */
export class FolderWriter {
  readonly #localFiles: LocalFiles;
  readonly #root: string;
  /** Asked before each step that others see: this process may have been suspended for long. */
  readonly #checkHeld: () => void;

  constructor(localFiles: LocalFiles, root: string, checkHeld: () => void) {
    this.#localFiles = localFiles;
    this.#root = root;
    this.#checkHeld = checkHeld;
  }

  /** Finishes what a killed run left half-way, and stores what differs from the state. */
  async mend(version: FolderVersion): Promise<FolderVersion> {
    return this.store(await this.#conform(version, new Set()));
  }

  /** Makes a change of a version; `before` is undefined for the first commit. */
  async commit(before: FolderVersion | undefined, { state, files }: Change): Promise<FolderVersion> {
    const current = before ?? folderVersion(undefined, newState(state.timezone), new Map());
    const newFiles = new Map<string, NewFile | undefined>();
    for (const table of TABLE_NAMES) {
      for (const [day, file] of files[table] ?? []) newFiles.set(filePath(day, table), file);
    }
    const paths = new Set(newFiles.keys());
    // 1. The state names new columns before a file has them, and the people of a purge before their rows leave.
    const announced = await this.store({ ...current, state: announcedState(current, state, paths) });
    // 2. The other files get the new columns.
    const { text, entries: conformed } = await this.#conform(announced, paths);
    // 3. The files of the change replace the others. Days without rows lose theirs.
    const entries = new Map([...conformed].filter(([path]) => !paths.has(path)));
    for (const [path, file] of newFiles) if (file !== undefined) entries.set(path, await this.#put(file));
    await this.#remove([...paths].filter((path) => !entries.has(path)));
    // 4. The state says what is there now.
    return this.store(folderVersion(text, state, entries));
  }

  /** Stores the state of a version, if `_dfinery.json` has another one. */
  async store({ text: before, state, entries }: FolderVersion): Promise<FolderVersion> {
    const text = stateText(state, entries);
    if (text !== before) {
      this.#checkHeld();
      await this.#localFiles.storage.write(STATE_FILE, text);
    }
    return folderVersion(text, state, entries);
  }

  /** Writes the files anew that have other columns than the state, but for those at `paths`. */
  async #conform({ text, state, entries: before, files }: FolderVersion, paths: ReadonlySet<string>) {
    const entries = new Map(before);
    const otherFiles = [...files.events.values()].filter(({ path }) => !paths.has(path));
    for await (const file of this.#localFiles.conform(otherFiles, state)) entries.set(file.path, await this.#put(file));
    return folderVersion(text, state, entries);
  }

  /** Moves a new file into its place. */
  async #put({ local, statistics: _statistics, ...file }: NewFile): Promise<FolderEntry> {
    this.#checkHeld();
    await this.#localFiles.storage.putFile(local, file.path);
    const onDisk = sizeAndTime(join(this.#root, file.path));
    if (onDisk === undefined) throw new RangeError(`${file.path} is gone`);
    return { isDamaged: false, file: { ...file, ...onDisk, schema: schemaOf(file.columns) } };
  }

  /** Removes files, and their folders unless these hold files of others. */
  async #remove(paths: readonly string[]): Promise<void> {
    this.#checkHeld();
    await this.#localFiles.storage.remove(paths);
    for (const path of paths) {
      await rmdir(dirname(join(this.#root, path))).catch((error) => {
        if (!FOLDER_STAYS.has(codeOf(error))) throw error;
      });
    }
  }
}

/**
 * The state before a change, with what must be known before its files are there: its columns, the receipts of the files
 * that will get these, and the length of the suppression list. `paths`: the files that it replaces.
 */
function announcedState({ state: before, files }: FolderVersion, after: PlaceState, paths: ReadonlySet<string>) {
  const { columns, timezone, suppressionLength } = after;
  const receiptsOfOthers = [...after.receipts.values()].filter(({ day }) => {
    return files.events.has(day) && !paths.has(filePath(day, EVENTS.name));
  });
  return {
    ...before,
    ...{ columns, timezone, suppressionLength },
    receipts: receiptsOf([...before.receipts.values(), ...receiptsOfOthers]),
  };
}

/** The text of a state. Of damaged files it keeps what is known: the right file may come back from a copy. */
function stateText(state: PlaceState, entries: FolderVersion['entries']): string {
  const files = new Map<string, RecordedFile>();
  for (const [path, { file }] of entries) if (file !== undefined) files.set(path, file);
  const entry = entries.get(PROFILES_FILE);
  const damagedProfiles = entry?.isDamaged ? entry.profiles : undefined;
  return serializeState({ state: { ...state, profiles: state.profiles ?? damagedProfiles }, files });
}
