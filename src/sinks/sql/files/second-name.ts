import { lstat } from 'node:fs/promises';
import { configFailure, type Failure } from '../../../base/errors.ts';

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

/** Throws Failure for a file of a dataset whose contents would outlive it. */
export async function refuseOtherNames(path: string): Promise<void> {
  const found = await lstat(path);
  if (!found.isFile()) throw linkFailure(path);
  if (found.nlink !== 1) throw secondNameFailure(path, found.nlink);
}
