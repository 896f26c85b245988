import { join } from 'node:path';
import { formatDays } from '../../base/days.ts';
import { transientError } from '../../base/errors.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import { COMMITTED_IS_KEPT } from '../../fs/disk-failure.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import { syncAdvice } from '../../table/place-warnings.ts';
import { EVENTS } from '../../table/tables.ts';
import type { PlaceOptions } from '../contract.ts';
import { noTableError } from '../failures.ts';
import type { FilesFormat, OpenPlace, Purpose } from './format.ts';
import { STATE_FILE } from './parquet/folder-state.ts';
import type { PlaceVersion } from './place-version.ts';

/** Number of attempts at reading one version of a place that is written. */
const READ_ATTEMPTS = 5;

/** Opens a place. Throws UserError, or the reason of the signal. */
export async function openPlace(format: FilesFormat, options: PlaceOptions, purpose: Purpose): Promise<OpenPlace> {
  const storage = await format.openStorage(options);
  const { workFolder } = storage;
  let runFolder: RunFolder | undefined;
  let engine: Engine | undefined;
  try {
    // On a disk the folder of the run lies in the place. Nothing is made in one of somebody else.
    if (purpose.kind === 'change' && !(await format.mayBeLoaded(storage))) throw noTableError(options.address);
    if (purpose.kind === 'load') await format.refuseForeignFiles(storage);
    runFolder =
      purpose.kind === 'read' || workFolder === undefined
        ? await RunFolder.open(options.spoolDir, options.clock)
        : await RunFolder.open(workFolder, options.clock, { path: workFolder, consequence: COMMITTED_IS_KEPT });
    engine = await openEngine(join(runFolder.path, 'engine'), 'write', options);
    // Files are replaced under their names.
    await engine.run('SET enable_external_file_cache = false');
    return { format, options, purpose, storage, engine, runFolder, localPaths: new Map() };
  } catch (error) {
    await engine?.close();
    storage.close();
    await runFolder?.remove().catch(() => {});
    options.signal.throwIfAborted();
    throw engineError(error, options.address);
  }
}

/**
 * Runs work on a place, and closes that if the work fails. A second failure, of the closing, is not told. Throws as
 * `withUserErrors`.
 */
export async function closedOnFailure<T>(place: OpenPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await withUserErrors(place, work);
  } catch (error) {
    await closePlace(place).catch(() => {});
    throw error;
  }
}

export async function closePlace({ engine, storage, runFolder }: OpenPlace): Promise<void> {
  await engine.close();
  storage.close();
  await runFolder.remove();
}

/** Runs work on a place. Throws UserError, or the reason of the signal. */
export async function withUserErrors<T>({ options, runFolder }: OpenPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    options.signal.throwIfAborted();
    throw engineError(error, options.address, runFolder.rootName);
  }
}

/** Opens a place, runs work and closes it. Throws as `withUserErrors`. */
export async function withPlace<T>(
  format: FilesFormat,
  options: PlaceOptions,
  purpose: Purpose,
  work: (place: OpenPlace) => Promise<T>,
): Promise<T> {
  const place = await openPlace(format, options, purpose);
  const result = await closedOnFailure(place, () => work(place));
  await closePlace(place);
  return result;
}

export function requireLoaded({ options }: OpenPlace, { isLoaded }: PlaceVersion): void {
  if (!isLoaded) throw noTableError(options.address);
}

/** Opens a place that was loaded, for work that may change it. Throws as `withUserErrors`. */
export function withLoadedPlace<T>(
  format: FilesFormat,
  options: PlaceOptions,
  work: (place: OpenPlace, version: PlaceVersion) => Promise<T>,
): Promise<T> {
  return withPlace(format, options, { kind: 'change' }, async (place) => {
    const version = await format.read(place);
    requireLoaded(place, version);
    return work(place, version);
  });
}

/**
 * Opens a place that was loaded, and reads it. Throws UserError. The work may have read two versions if it fails, its
 * result is not `isConsistent`, or files were replaced. It then runs again if a writer has committed meanwhile.
 */
export function readPlace<T>(
  format: FilesFormat,
  options: PlaceOptions,
  work: (place: OpenPlace, version: PlaceVersion) => Promise<T>,
  isConsistent: (result: T) => boolean = () => true,
): Promise<T> {
  return withPlace(format, options, { kind: 'read' }, async (place) => {
    let version = await format.read(place);
    for (let attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
      requireLoaded(place, version);
      const result = work(place, version);
      const isUsable = await result.then(isConsistent, () => false);
      options.signal.throwIfAborted();
      if (isUsable && !format.hasReplacedFiles(place, version)) return result;
      const latestVersion = await format.read(place, version);
      if (latestVersion === version) return result;
      version = latestVersion;
    }
    throw transientError(`${options.address} is written all the time: try again once its writer is done.`);
  });
}

/** A sentence about each table with damaged files. */
export function damageWarnings({ damagedFiles }: PlaceVersion): string[] {
  const days = damagedFiles.filter(({ table }) => table === EVENTS.name).map(({ day }) => day);
  const warnings: string[] = [];
  if (days.length > 0)
    warnings.push(
      `the files of ${formatDays(days)} are damaged, or do not match ${STATE_FILE}, and stay as they are. ` +
        `Put the right copy back, or replace them: ${syncAdvice(days)}, or load each day from a file.`,
    );
  if (damagedFiles.length > days.length)
    warnings.push(
      'the file of user_profiles is damaged, or older than its receipt, and stays as it is. Replace it: sync with ' +
        'user_profiles set to true.',
    );
  return warnings;
}

export function warnOfDamage({ options: { logger, address } }: OpenPlace, version: PlaceVersion): void {
  for (const message of damageWarnings(version)) logger.warn('files.damaged', `${address}: ${message}`);
}
