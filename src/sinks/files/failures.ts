import { configFailure, type Failure } from '../../base/errors.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { engineFailure } from '../sql/engine/faults.ts';

/** What the file system refused, as a failure that names the folder; anything else unchanged. */
export const folderFailure = (thrown: unknown, folder: string): unknown =>
  diskFailure(thrown, { what: folder, path: folder, consequence: 'nothing half-done was kept' });

/** Any error of the engine or the disk as a failure that names the folder. */
export function failureOf(error: unknown, folder: string): Failure {
  return engineFailure(folderFailure(error, folder), folder);
}

/** A purge would leave the old contents under these other names. `names`: all that the file has. */
export function secondNameFailure(file: string, names: number): Failure {
  return configFailure(
    `${file} has ${names - 1} more name${names === 2 ? '' : 's'} (hard links), which would keep the old contents: remove them first. It was not changed.`,
    { where: { file } },
  );
}

/** A purge would put a new file in place of a link, and leave the old contents where it leads. */
export function linkFailure(file: string): Failure {
  return configFailure(
    `${file} is no file of its own but leads to one elsewhere, which would keep the old contents: put the file itself there. It was not changed.`,
    { where: { file } },
  );
}

/** The failure for a configured time zone that is not that of the target's first load. `what`: `file` or `folder`. */
export function otherTimezone(place: string, what: string, wanted: string | null, stored: string | null): Failure {
  return configFailure(
    `timezone is ${wanted ?? 'not set'}, but ${place} was loaded with ${stored ?? 'none'}: keep it, or load into another ${what}.`,
  );
}
