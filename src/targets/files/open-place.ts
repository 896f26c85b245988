import { join } from 'node:path';
import { transientError } from '../../base/errors.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import { COMMITTED_IS_KEPT } from '../../fs/disk-failure.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import type { LoadOptions, PlaceOptions } from '../contract.ts';
import { checkColumnTypes, checkTimezone, loadedTables, notLoadedError } from '../refusals.ts';
import type { FilesFormat, OpenPlace } from './format.ts';
import { LocalFiles } from './local-files.ts';
import { damageWarnings, type PlaceVersion } from './place-version.ts';

/** What a place is opened for, and the options of that. */
type Opening =
  /** `read` changes nothing. Purge and prune remove rows of a loaded place; a preview tries if they could. */
  | { readonly purpose: 'read' | 'purge or prune'; readonly options: PlaceOptions }
  /** Adds and replaces rows, and removes expired files. Makes a missing place, and refuses one of another program. */
  | { readonly purpose: 'load'; readonly options: LoadOptions };

type Work<T> = (place: OpenPlace, version: PlaceVersion) => Promise<T>;

/** Opens and reads a place. Throws UserError, also for one that does not fit the purpose, or the signal's reason. */
export async function openPlace(
  format: FilesFormat,
  opening: Opening,
): Promise<{ readonly place: OpenPlace; readonly version: PlaceVersion }> {
  const { purpose, options } = opening;
  const storage = await format.openStorage(options);
  const { workFolder } = storage;
  let runFolder: RunFolder | undefined;
  let engine: Engine | undefined;
  try {
    // On a disk the folder of the run lies in the place. Nothing is made in one of somebody else.
    if (purpose === 'purge or prune' && !(await format.mayBeLoaded(storage))) throw notLoadedError(options.address);
    if (purpose === 'load') await format.refuseForeignFiles(storage, EVENTS.name);
    runFolder =
      purpose === 'read' || workFolder === undefined
        ? await RunFolder.open(options.spoolDir, options.clock)
        : await RunFolder.open(workFolder, options.clock, { path: workFolder, consequence: COMMITTED_IS_KEPT });
    engine = await openEngine(join(runFolder.path, 'engine'), 'write', options);
    // Files are replaced under their names.
    await engine.run('SET enable_external_file_cache = false');
    const place: OpenPlace = {
      format,
      options,
      storage,
      runFolder,
      engine,
      localFiles: new LocalFiles(engine, format.layout, storage, runFolder.path),
      retentionMs: purpose === 'load' ? options.retentionMs : Infinity,
      refusesForeignProfiles: purpose === 'load' && options.loadsProfiles,
    };
    const version = await format.read(place);
    if (purpose === 'purge or prune') requireLoaded(place, version);
    if (purpose === 'load') {
      const { isLoaded, state } = version;
      if (!isLoaded) await format.refuseUnsafeCommits(storage);
      const makesProfiles = options.loadsProfiles && state.user_profiles === undefined;
      if (makesProfiles) await format.refuseForeignFiles(storage, USER_PROFILES.name);
      checkTimezone(loadedTables(state), options);
      checkColumnTypes(state, options);
    }
    return { place, version };
  } catch (error) {
    // A second failure, of the closing, is not told.
    await engine?.close().catch(() => {});
    storage.close();
    await runFolder?.remove().catch(() => {});
    options.signal.throwIfAborted();
    throw engineError(error, options.address, runFolder?.diskContext.subject);
  }
}

export async function closePlace({ engine, storage, runFolder }: OpenPlace): Promise<void> {
  try {
    await engine.close();
  } finally {
    storage.close();
    await runFolder.remove();
  }
}

/** Runs work on a place. Throws UserError, or the reason of the signal. */
export async function withUserErrors<T>({ options, runFolder }: OpenPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    options.signal.throwIfAborted();
    throw engineError(error, options.address, runFolder.diskContext.subject);
  }
}

/** Opens a place, runs work and closes it. Throws as `openPlace`. */
export async function withPlace<T>(
  format: FilesFormat,
  options: PlaceOptions,
  purpose: 'read' | 'purge or prune',
  work: Work<T>,
): Promise<T> {
  const { place, version } = await openPlace(format, { purpose, options });
  let result: T;
  try {
    result = await withUserErrors(place, () => work(place, version));
  } catch (error) {
    await closePlace(place).catch(() => {});
    throw error;
  }
  await closePlace(place);
  return result;
}

/**
 * As `withPlace`, to read a place that was loaded. Throws a transient failure if work may have read two versions, and a
 * writer has changed the place meanwhile. It may have, if
 *
 *   it fails                     a writer may have removed a file that it needs
 *   its result is inconsistent   the files do not match their version, as `verify` finds
 *   `couldMixVersions` is true   a writer may have replaced a file under its name
 */
export function readPlace<T>(
  format: FilesFormat,
  options: PlaceOptions,
  work: Work<T>,
  isConsistent: (result: T) => boolean = () => true,
): Promise<T> {
  return withPlace(format, options, 'read', async (place, version) => {
    requireLoaded(place, version);
    const working = work(place, version);
    const isUsable = await working.then(isConsistent, () => false);
    options.signal.throwIfAborted();
    if (isUsable && !format.couldMixVersions(place, version)) return working;
    // A failure counts only if nobody has written meanwhile.
    if (await format.isLatest(place, version)) return working;
    throw transientError(`${options.address} was changed while it was read: run again.`);
  });
}

export function requireLoaded({ options }: OpenPlace, { isLoaded }: PlaceVersion): void {
  if (!isLoaded) throw notLoadedError(options.address);
}

export function warnOfDamage({ options: { logger, address } }: OpenPlace, version: PlaceVersion): void {
  for (const message of damageWarnings(version)) logger.warn('files.damaged', `${address}: ${message}`);
}
