import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { DAY_MS, HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import { PROBE_FOLDER, type Storage, type Stored } from '../../storage/storage.ts';
import { TABLES, type TableName } from '../../table/columns.ts';
import { linkError } from '../failures.ts';
import type { DataFile, NewFile } from './data-file.ts';
import { NO_DATE, PARTITION_COLUMN, PARTITION_FOLDER } from './parquet-file.ts';

// The files of tables whose log lists them: each file has a name of its own, which it keeps as long as it exists.

/** Default time that files which left a table stay for its readers (ms). */
export const DEFAULT_RETENTION_MS = DAY_MS;
/**
 * Minimum age (ms) of a file that is removed because no commit names it. A run may be about to commit a younger file.
 */
const UNCOMMITTED_MS = HOUR_MS;
/** Number of files that are stored, copied or synced at the same time. */
export const FILE_CONCURRENCY = 4;
const OWN_FILE = new RegExp(`^${PARTITION_FOLDER}/part-[0-9a-f-]{36}\\.parquet$`);
const TEMPORARY = /(^|\/)\.[^/]+\.tmp$/;
const PROBE = new RegExp(`^${PROBE_FOLDER}/[0-9a-f-]{36}(/trial)?$`);

/** The path of a data file, from the root of the storage. It needs no encoding. */
export const dataFilePath = (table: TableName, date: string | null, name: string): string =>
  `${table}/${PARTITION_COLUMN}=${date ?? NO_DATE}/${name}.parquet`;

/** A path from the folder of its table, of one from the root of the storage. */
export const pathInTable = (table: string, path: string): string => path.slice(table.length + 1);

/** True for a path, from its table's folder, that only a data file of this program has. */
const isOwnFile = (path: string): boolean => OWN_FILE.test(path);

/** True for a file under a temporary name: its writer is still writing it, or dead. */
export const isTemporary = (path: string): boolean => TEMPORARY.test(path);

/**
 * Throws a configuration failure if the folder of a table that is not there yet has files: a purge of the table would
 * remove them. Files that a dead run left are no reason. Called before the first load.
 */
export async function refuseForeignFiles(
  storage: Storage,
  table: TableName,
  isLogFile: NonNullable<KnownFiles['isLogFile']> = () => false,
): Promise<void> {
  for await (const { path } of storage.list(table)) {
    if (isOwnFile(pathInTable(table, path)) || isTemporary(path) || isLogFile(path)) continue;
    throw configError(
      `${storage.address}/${table} holds files that this program did not write: give another place, or move them away.`,
    );
  }
}

/** Puts files into the storage. Throws the first failure, once all are done. */
export async function storeFiles(storage: Storage, files: readonly NewFile[]): Promise<void> {
  const limit = pLimit(FILE_CONCURRENCY);
  const failures: unknown[] = [];
  const store = async ({ local, path }: NewFile) => {
    if (failures.length > 0) return;
    await storage.putFile(local, path).catch((error) => failures.push(error));
  };
  await Promise.all(files.map((file) => limit(() => store(file))));
  if (failures.length > 0) throw failures[0];
}

/** The facts in a log about paths in the folders of its tables. */
export interface KnownFiles {
  /** True for a file that is part of a table now, or that the latest version of the log names. */
  isLive(path: string): boolean;
  /** When a file left its table (ms); infinite if older versions need it; undefined if it was part of none. */
  leftAt(path: string): number | undefined;
  /**
   * True for a path that only a file of this log has, such as a manifest. Without this, a file of the log whose run
   * died would stay for good. Absent for a log without files beside its versions.
   */
  isLogFile?(path: string): boolean;
}

/** Throws unless these files, and all that are not live, can be erased with every byte. */
export async function tryEraseFiles(storage: Storage, removed: readonly DataFile[], { isLive }: KnownFiles) {
  const leaving = new Set(removed.map(({ path }) => path));
  const erased: string[] = [];
  for (const table of TABLES) {
    for await (const { path } of storage.list(table)) if (leaving.delete(path) || !isLive(path)) erased.push(path);
  }
  for (const path of leaving) throw linkError(`${storage.address}/${path}`);
  await storage.tryErase(erased);
}

/** The time (ms) by the clock of the store: that of a file that is created for this, and removed. */
async function storeTime(storage: Storage): Promise<number> {
  const path = `${PROBE_FOLDER}/${randomUUID()}`;
  try {
    await storage.create(path, 'time');
    for await (const object of storage.list(PROBE_FOLDER)) if (object.path === path) return object.modified;
    return 0;
  } finally {
    await storage.remove([path]);
  }
}

/**
 * Erases the files of a table that are not live. A file that was never part of a table stays if it is younger than the
 * purge, since its writer may still commit it. `purgedAt` is the time of the purge: `Versions.storedAt`, or `storeTime`
 * before the commit. Returns a sentence about each such file whose time is in the future. Only a clock that was wrong
 * gives such a time, so the file may be older than the purge.
 */
export async function eraseFiles(storage: Storage, table: TableName, { isLive, leftAt }: KnownFiles, purgedAt: number) {
  const young = new Map<string, number>();
  const isKept = ({ path, modified }: Pick<Stored, 'path' | 'modified'>) => {
    if (isLive(path)) return true;
    if (modified < purgedAt || leftAt(path) !== undefined) return false;
    young.set(path, modified);
    return true;
  };
  await storage.eraseAllBut(table, isKept, purgedAt);
  const now = young.size === 0 ? 0 : await storeTime(storage);
  const ahead = [...young].filter(([, modified]) => modified > now);
  return ahead.map(
    ([path]) =>
      `${storage.address}/${path} is part of no table, may hold the people, and has a time that is yet to come, as of a ` +
      'clock that was ahead: remove it once no run is at work in that place, and run the purge again.',
  );
}

/**
 * Paths of files whose retention (ms) has ended, and of files that dead runs left. A file of a dead run
 * must be old by the store's clock, too: by the clock of a machine that is ahead, files that a run is about to commit
 * are old already.
 */
export async function expiredFiles(
  storage: Storage,
  { isLive, leftAt, isLogFile }: KnownFiles,
  { now, retentionMs }: { readonly now: number; readonly retentionMs: number },
): Promise<string[]> {
  const expired: string[] = [];
  const uncommitted: Stored[] = [];
  for (const table of TABLES) {
    for await (const stored of storage.list(table)) {
      const { path } = stored;
      if (isTemporary(path)) uncommitted.push(stored);
      else if (!isLive(path)) {
        const left = leftAt(path);
        const isOurs = isOwnFile(pathInTable(table, path)) || isLogFile?.(path) === true;
        if (left === undefined && isOurs) uncommitted.push(stored);
        if (left !== undefined && left < now - retentionMs) expired.push(path);
      }
    }
  }
  for await (const stored of storage.list('_dfinery')) {
    if (PROBE.test(stored.path) || isTemporary(stored.path)) uncommitted.push(stored);
  }
  const oldAt = (time: number) => (stored: Stored) => stored.modified < time - Math.max(retentionMs, UNCOMMITTED_MS);
  const old = uncommitted.filter(oldAt(now));
  if (old.length === 0) return expired;
  return [...expired, ...old.filter(oldAt(await storeTime(storage))).map(({ path }) => path)];
}
