import { transientError } from '../../base/errors.ts';
import { retry } from '../../base/retry.ts';
import { engineError } from '../../engine/session/faults.ts';
import { FilesPlace } from './files-place.ts';
import type { FilesFormat, FilesOptions, OpenMode } from './format.ts';

/** Attempts at reading one version of a place that a writer changes meanwhile. */
const READ_ATTEMPTS = 5;
/** Without a pause (ms): what was read before is new by now. */
const READ_PAUSES = new Array<number>(READ_ATTEMPTS - 1).fill(0);

/** Opens a place, runs work and closes it. Throws UserError. */
export async function withPlace<T>(
  format: FilesFormat,
  options: FilesOptions,
  mode: OpenMode,
  work: (place: FilesPlace) => Promise<T>,
): Promise<T> {
  try {
    const place = await FilesPlace.open(format, options, mode);
    if (mode === 'rewrite') place.warnOfDamage();
    return await place.use(work);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw engineError(error, options.address);
  }
}

/**
 * Opens a place and reads it. Throws UserError. The work may have read two versions if it fails, its result
 * is not `isConsistent`, or files were replaced. It then runs again if a writer has committed meanwhile.
 */
export function readPlace<T>(
  format: FilesFormat,
  options: FilesOptions,
  work: (place: FilesPlace) => Promise<T>,
  isConsistent: (result: T) => boolean = () => true,
): Promise<T> {
  const { clock, signal } = options;
  return withPlace(format, options, 'read', async (place) => {
    const read = await retry({ pauses: READ_PAUSES, clock, signal }, async () => {
      const [outcome] = await Promise.allSettled([work(place)]);
      signal?.throwIfAborted();
      const isDone = outcome.status === 'fulfilled' && isConsistent(outcome.value);
      if (isDone && !place.log.hasReplacedFiles()) return outcome;
      const isChanged = await place.log.read();
      return isChanged ? undefined : outcome;
    });
    if (read?.status === 'fulfilled') return read.value;
    throw (
      read?.reason ?? transientError(`${options.address} is written all the time: try again once its writer is done.`)
    );
  });
}
