import pLimit from 'p-limit';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { plainCount } from '../../base/quantities.ts';
import { TABLES, type TableName } from '../../table/columns.ts';
import type { Storage } from '../storage/storage.ts';
import { linkError, secondNameError } from './failures.ts';
import type { DataFile, NewFile } from './log.ts';
import { NO_DATE } from './parquet-file.ts';
import { removeExpiredRuns } from './runs.ts';

// The files of tables whose log names them: each has a name of its own, which it keeps as long as it is there.

/** The column by which tables are partitioned. */
export const PARTITION = 'event_date';
/** How long files that left a table stay for its readers, if nobody says so; ms. */
export const DEFAULT_RETENTION_MS = 86_400_000;
/** A younger file that no commit names may belong to another run that is about to commit it; ms. */
export const UNCOMMITTED_MS = 3_600_000;
/** Files stored at the same time. */
const CONCURRENCY = 4;
const OWN_FILE = /^event_date=(\d{4,}-\d{2}-\d{2}|__HIVE_DEFAULT_PARTITION__)\/part-[0-9a-f-]{36}\.parquet$/;
const DRAFT = /(^|\/)\.[^/]+\.tmp$/;

/** The path of a new data file, from the root of the storage. It needs no encoding. */
export const newFilePath = (table: TableName, date: string | null, id: string): string =>
  `${table}/${PARTITION}=${date ?? NO_DATE}/part-${id}.parquet`;

/** True for a path, from its table's folder, that only a data file of this program has. */
export const isOwnFile = (path: string): boolean => OWN_FILE.test(path);

/** True for a file that has no lasting name yet: its writer is at work, or dead. */
export const isDraft = (path: string): boolean => DRAFT.test(path);

/** Puts files into the storage; none of them is part of a table before a commit says so. Throws the first failure, once all are done. */
export async function storeFiles(storage: Storage, files: readonly NewFile[]): Promise<void> {
  const limit = pLimit(CONCURRENCY);
  const failures: unknown[] = [];
  const store = async ({ local, path }: NewFile) => {
    if (failures.length > 0) return;
    await storage.putFile(local, path).catch((error) => failures.push(error));
  };
  await Promise.all(files.map((file) => limit(() => store(file))));
  if (failures.length > 0) throw failures[0];
}

/**
 * Throws unless these files can be erased: each must be the only name of its bytes, and the store must let earlier versions be
 * removed. `isKept`: false for a path that a purge removes as well.
 */
export async function checkErasable(
  storage: Storage,
  removed: readonly DataFile[],
  isKept: (path: string) => boolean,
): Promise<void> {
  const leaving = new Set(removed.map(({ path }) => path));
  for (const table of TABLES) {
    for await (const { path, names } of storage.list(table)) {
      const goes = leaving.delete(path) || !isKept(path);
      if (goes && names > 1) throw secondNameError(`${storage.address}/${path}`, names);
    }
  }
  for (const path of leaving) throw linkError(`${storage.address}/${path}`);
  await storage.tryErase(removed.map(({ path }) => path));
}

/** A place that is cleaned. */
export interface CleanedPlace {
  /** Of the target, for the log. */
  readonly name: 'parquet' | 'delta' | 'ducklake';
  /** For messages. */
  readonly place: string;
  readonly storage: Storage;
  readonly logger: Logger;
}

/** Removes old records of runs, and the files that `find` names: no reader needs them. A failure is only logged. */
export async function cleanFiles(
  { name, place, storage, logger }: CleanedPlace,
  find: () => Promise<readonly string[]>,
): Promise<void> {
  try {
    await removeExpiredRuns(storage);
    const paths = await find();
    if (paths.length === 0) return;
    await storage.remove(paths);
    const message = `Removed ${plainCount(paths.length, 'file')} that no reader needs any more.`;
    logger.info(`${name}.removed`, message, { files: paths.length });
  } catch (error) {
    const message = `${place}: files that are no longer needed could not be removed; the next run tries again.`;
    logger.warn(`${name}.rubbish`, message, { error: messageOf(error) });
  }
}
