import {
  codeOf,
  configFailure,
  Failure,
  type FailureDetails,
  NO_ROOM,
  transientFailure,
} from '../../../base/errors.ts';
import { engineFailure } from '../engine/faults.ts';

const FORBIDDEN = new Set(['EACCES', 'EPERM', 'EROFS']);

/** What the file system refused, as a sentence; anything else is thrown on as it is. */
export function folderFailure(thrown: unknown, folder: string): unknown {
  if (thrown instanceof Failure) return thrown;
  const code = codeOf(thrown) ?? '';
  const details: FailureDetails = { cause: thrown, where: { file: folder } };
  if (NO_ROOM.has(code)) {
    const text = `the disk of ${folder} is full (${code}): nothing of this window was kept. Free space and run again.`;
    return transientFailure(text, details);
  }
  if (FORBIDDEN.has(code)) {
    return configFailure(
      `${folder} cannot be written (${code}): give this user the right to, or another folder.`,
      details,
    );
  }
  if (code === 'ENOTDIR' || code === 'EEXIST')
    return configFailure(`${folder} is not a folder: give another.`, details);
  return thrown;
}

/** Any failure of the engine or the disk, in one sentence that names the folder. */
export function failureOf(error: unknown, folder: string): Failure {
  return engineFailure(folderFailure(error, folder), folder);
}
