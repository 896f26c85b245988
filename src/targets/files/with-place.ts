import { transientError } from '../../base/errors.ts';
import { retry } from '../../base/retry.ts';
import { filesError } from '../failures.ts';
import { FilesPlace } from './files-place.ts';
import type { FilesFormat, FilesOptions, OpenMode } from './format.ts';

/** Pauses before a place is read again, since a writer has changed it meanwhile (ms). */
const READ_PAUSES = [0, 0, 0, 0];

/** Opens a place, runs work and closes it. Throws UserError. */
export async function withPlace<T>(
  format: FilesFormat,
  options: FilesOptions,
  mode: OpenMode,
  work: (place: FilesPlace) => Promise<T>,
): Promise<T> {
  try {
    const place = await FilesPlace.open(format, options, mode);
    return await place.use(work);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw filesError(error, options.place);
  }
}

/**
 * Opens a place and reads it. The work runs again if a writer changed the place meanwhile, and what it read may be of
 * two versions: it failed, its result is not `isCertain`, or files were replaced. Throws UserError.
 */
export function readPlace<T>(
  format: FilesFormat,
  options: FilesOptions,
  work: (place: FilesPlace) => Promise<T>,
  isCertain: (result: T) => boolean = () => true,
): Promise<T> {
  const { clock, signal } = options;
  return withPlace(format, options, 'read', async (place) => {
    const read = await retry({ pauses: READ_PAUSES, clock, signal }, async () => {
      const [outcome] = await Promise.allSettled([work(place)]);
      signal?.throwIfAborted();
      const isDone = outcome.status === 'fulfilled' && isCertain(outcome.value);
      const isOfOneVersion = isDone && !place.log.hasReplacedFiles();
      return isOfOneVersion || !(await place.log.read()) ? outcome : undefined;
    });
    if (read?.status === 'fulfilled') return read.value;
    throw (
      read?.reason ?? transientError(`${options.place} is written all the time: try again once its writer is done.`)
    );
  });
}
