// This folder: the target `parquet`: a folder with one Parquet file a day, which readers find by a glob pattern.
// `_dfinery.json` says what it holds, and is replaced last. Each file carries its own receipt, so no journal is
// needed. `read-folder.ts` finds what a kill left half-way, and `commit-to-folder.ts` mends it.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatDays } from '../../../base/days.ts';
import { plainCount } from '../../../base/quantities.ts';
import { doublingPauses, retry } from '../../../base/retry.ts';
import { type Difference, difference } from '../../../engine/rows/check-rows.ts';
import { makeFolders } from '../../../fs/folders.ts';
import { checkLocalPath } from '../../../fs/local-path.ts';
import { withLockFile } from '../../../fs/lock.ts';
import { DiskStorage } from '../../../storage/disk.ts';
import { hasObjects, listAll, OWN_FOLDER } from '../../../storage/storage.ts';
import { newState, type RunRecord } from '../../../table/place-state.ts';
import { damagedWarning } from '../../../table/place-warnings.ts';
import { EVENTS, TABLES, USER_PROFILES } from '../../../table/tables.ts';
import { parquetColumns } from '../file-layout.ts';
import { type FilesFormat, type FilesOptions, foreignError, type Manifest, type OpenMode } from '../format.ts';
import type { LocalFiles } from '../local-files.ts';
import type { PlaceChange, PlannedCommit } from '../place-version.ts';
import { commitToFolder } from './commit-to-folder.ts';
import { dayOfPath, filePath, LOCK_FILE, PROFILES_FILE } from './folder-state.ts';
import { type FolderVersion, readFolder, readStateText, sizeAndTime } from './read-folder.ts';

/** Pauses between two looks at a lock that a writer holds (ms). */
const LOCK_PAUSES = { firstPauseMs: 20, maxPauseMs: 200 };

export const PARQUET: FilesFormat = {
  hasAllColumns: true,
  columnName: (source) => source,
  columnsOf: parquetColumns,
  newPath: filePath,
  async openStorage({ address }) {
    checkLocalPath(address);
    return new DiskStorage(address);
  },
  isLoaded: async (storage) => (await readStateText(storage)) !== undefined,
  async refuseForeign(storage) {
    if (!(await hasObjects(storage, EVENTS.name))) return;
    // Read last: another process may have made the first commit meanwhile.
    if ((await readStateText(storage)) === undefined) throw foreignError(storage.address);
  },
  manifestOf: (localFiles, options, mode) => new FolderManifest(localFiles, options, mode),
};

/** A folder before its first commit. */
function emptyFolder(timezone: string | null): FolderVersion {
  return { state: newState(timezone), files: [], damagedFiles: new Map(), missingDays: [], stateText: '' };
}

/** A change without files: its commit finishes what a killed run left half-way. */
const mendingChange = (version: FolderVersion | undefined): PlaceChange | undefined =>
  version && { kind: 'load', state: version.state, files: [] };

class FolderManifest implements Manifest {
  version: FolderVersion | undefined;
  readonly #localFiles: LocalFiles;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;

  constructor(localFiles: LocalFiles, options: FilesOptions, mode: OpenMode) {
    this.#localFiles = localFiles;
    this.#options = options;
    this.#mode = mode;
  }

  async read(): Promise<boolean> {
    const { clock, lockWaitMs: waitMs, signal, loadsProfiles } = this.#options;
    const before = this.version;
    // What was read was changed meanwhile: a writer that is at work is awaited, within bounds.
    const isFree = () => !existsSync(this.#path(LOCK_FILE)) || undefined;
    if (before !== undefined)
      await retry({ pauses: doublingPauses({ waitMs, ...LOCK_PAUSES }), clock, signal }, isFree);
    this.version = await readFolder(this.#localFiles);
    if (this.#mode === 'load' && loadsProfiles === true && !this.#hasProfiles) {
      const { storage } = this.#localFiles;
      if (await hasObjects(storage, USER_PROFILES.name)) throw foreignError(storage.address, USER_PROFILES.name);
    }
    return before?.stateText !== this.version?.stateText || this.hasReplacedFiles(before);
  }

  get damageWarnings(): string[] {
    const damagedPaths = new Set(this.version?.damagedFiles.keys());
    const days = [...damagedPaths].flatMap((path) => dayOfPath(path) ?? []);
    const warnings = days.length === 0 ? [] : [damagedWarning(days)];
    if (!damagedPaths.has(PROFILES_FILE)) return warnings;
    const profilesWarning =
      'the file of user_profiles is damaged, or older than its receipt, and stays as it is. Replace it: sync with ' +
      'user_profiles set to true.';
    return [...warnings, profilesWarning];
  }

  hasReplacedFiles(version = this.version): boolean {
    return (version?.files ?? []).some(({ path, bytes, modified }) => {
      const onDisk = sizeAndTime(this.#path(path));
      return onDisk?.bytes !== bytes || onDisk.modified !== modified;
    });
  }

  /** Plans under the lock, on a folder that is read anew. Without a change it stores how the files differ from it. */
  async commit<T>(plan: () => Promise<PlannedCommit<T>>): Promise<T> {
    const { clock, lockWaitMs: waitMs, signal, address } = this.#options;
    await makeFolders(this.#path(OWN_FOLDER));
    const lock = { what: `the folder ${address}`, clock, waitMs, signal };
    return withLockFile(this.#path(LOCK_FILE), lock, async (checkHeld) => {
      this.version = await readFolder(this.#localFiles);
      this.#warnOfMissingDays();
      const { change = mendingChange(this.version), report } = await plan();
      if (change !== undefined) {
        const before = this.version ?? emptyFolder(change.state.events.timezone);
        this.version = await commitToFolder(this.#localFiles, before, change, checkHeld);
      }
      return report;
    });
  }

  recordRun(lastRun: RunRecord): Promise<void> {
    return this.commit(async () => {
      const change = mendingChange(this.version);
      return { change: change && { ...change, state: { ...change.state, lastRun } }, report: undefined };
    });
  }

  async foreignFiles(): Promise<string[]> {
    const isOwn = (path: string) => dayOfPath(path) !== undefined || (path === PROFILES_FILE && this.#hasProfiles);
    const objects = await Promise.all(TABLES.map(({ name }) => listAll(this.#localFiles.storage, name)));
    const paths = objects.flat().map(({ path }) => path);
    return paths.filter((path) => !isOwn(path));
  }

  /** Finds damaged files, and files of others that readers see among those of the tables. */
  async check(): Promise<Difference[]> {
    const isSeen = (path: string) =>
      path.endsWith('.parquet') && (path.startsWith(`${EVENTS.name}/`) || this.#hasProfiles);
    const seenMessages = (await this.foreignFiles())
      .filter(isSeen)
      .map((path) => `${path} is not of this program, and readers see it`);
    return [...this.damageWarnings, ...seenMessages].map((message) => difference('files', message));
  }

  /** True if the file of profiles is one of this program, also if it is damaged. */
  get #hasProfiles(): boolean {
    return this.version?.state.user_profiles !== undefined || this.version?.damagedFiles.has(PROFILES_FILE) === true;
  }

  #path(path: string): string {
    return join(this.#localFiles.storage.address, path);
  }

  #warnOfMissingDays(): void {
    const { address, logger } = this.#options;
    const { missingDays = [] } = this.version ?? {};
    const days = missingDays.length;
    if (days === 0) return;
    const removed = `the files of ${plainCount(days, 'day')} were removed (${formatDays(missingDays)})`;
    logger.warn('days.removed', `${address}: ${removed}: they count as pruned.`, { days });
  }
}
