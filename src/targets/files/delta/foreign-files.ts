import { configError } from '../../../base/errors.ts';
import { hasObjects, listAll, type Storage } from '../../../storage/storage.ts';
import type { RunRecord } from '../../../table/place-state.ts';
import { EVENTS, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import { foreignFilesError } from '../format.ts';
import { isDataFile, logFileOf, logFolder, mayBeOwnFile } from './protocol/paths.ts';

// Whose the files in the folders of the tables are: this program's, or somebody else's.

/** Throws a configuration failure if others' files lie where those of a table without a log would. */
export async function refuseForeignFiles(storage: Storage, tableName: TableName): Promise<void> {
  if (await hasObjects(storage, logFolder(tableName))) return;
  const paths = await pathsBesideLog(storage, tableName);
  if (!paths.every(mayBeOwnFile)) throw foreignFilesError(storage.address, tableName);
}

/**
 * Throws a configuration failure if data files of events are there without the log that they had. Those of a first load
 * that was killed or failed never had one. A run is recorded once a table has a log; without days it is the profiles'.
 */
export async function refuseLostLog(storage: Storage, lastRun: RunRecord | undefined): Promise<void> {
  if (lastRun === undefined) return;
  const profilesHaveLog = await hasObjects(storage, logFolder(USER_PROFILES.name));
  if (lastRun.days === 0 && profilesHaveLog) return;
  // Listed last: another process may have made the first commit meanwhile.
  const paths = (await listAll(storage, EVENTS.name)).map(({ path }) => path);
  if (!paths.some(isDataFile) || paths.some((path) => logFileOf(path) !== undefined)) return;
  throw configError(
    `${storage.address}/${EVENTS.name} holds data files of this program, but its _delta_log is gone: restore the log ` +
      'from a copy, or move the files away.',
  );
}

/** The paths of all files in the folder of a table but for its log. */
export async function pathsBesideLog(storage: Storage, tableName: TableName): Promise<string[]> {
  const paths = (await listAll(storage, tableName)).map(({ path }) => path);
  return paths.filter((path) => !path.startsWith(`${logFolder(tableName)}/`));
}
