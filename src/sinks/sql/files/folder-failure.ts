import type { Failure } from '../../../base/errors.ts';
import { diskFailure } from '../../../fs/disk-failure.ts';
import { engineFailure } from '../engine/faults.ts';

/** What the file system refused, as a sentence; anything else is thrown on as it is. */
export const folderFailure = (thrown: unknown, folder: string): unknown =>
  diskFailure(thrown, { what: folder, path: folder, consequence: 'nothing half-done was kept' });

/** Any failure of the engine or the disk, in one sentence that names the folder. */
export function failureOf(error: unknown, folder: string): Failure {
  return engineFailure(folderFailure(error, folder), folder);
}
