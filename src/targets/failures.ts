import { lstat } from 'node:fs/promises';
import { configError, type UserError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import { COMMITTED_IS_KEPT, engineError } from '../engine/session/faults.ts';
import { diskError } from '../fs/disk-failure.ts';

/** Converts a failure of the file system into one that names the folder; any other error unchanged. */
export const folderError = (thrown: unknown, folder: string): unknown =>
  diskError(thrown, { what: folder, path: folder, consequence: COMMITTED_IS_KEPT });

/** Any error of the engine or the disk as a failure that names the folder. */
export function filesError(error: unknown, folder: string): UserError {
  return engineError(folderError(error, folder), folder);
}

/** The failure for a place that a command needs and that was never loaded. */
export const noTableError = (place: string): UserError =>
  configError(`${place} does not exist, or holds no table of this program: give another place.`, {
    where: { file: place },
  });

/** Throws for a link, and for a file that has another name: what leaves it would stay there. */
export async function checkOnlyName(file: string): Promise<void> {
  const found = await lstat(file);
  if (!found.isFile()) throw linkError(file);
  if (found.nlink === 1) return;
  throw configError(
    `${file} has ${plainCount(found.nlink - 1, 'more name')} (hard links), which would keep the old contents: ` +
      'remove them first. It was not changed.',
    { where: { file } },
  );
}

/** A purge would put a new file in place of a link, and leave the old contents where it leads. */
export function linkError(file: string): UserError {
  return configError(
    `${file} is no file of its own but leads to one elsewhere, which would keep the old contents: ` +
      'put the file itself there. It was not changed.',
    { where: { file } },
  );
}

/** The failure for a configured time zone that is not that of the target's first load. `what`: `file` or `folder`. */
export function otherTimezone(place: string, what: string, wanted: string | null, stored: string | null): UserError {
  return configError(
    `timezone is ${wanted ?? 'not set'}, but ${place} was loaded with ${stored ?? 'none'}: keep it, or load into another ${what}.`,
  );
}
