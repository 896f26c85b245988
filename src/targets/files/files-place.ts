import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Day } from '../../base/days.ts';
import { transientError } from '../../base/errors.ts';
import { retry } from '../../base/retry.ts';
import { identifier, literal } from '../../base/sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import { COMMITTED_IS_KEPT } from '../../fs/disk-failure.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type Table } from '../../table/tables.ts';
import { noTableError } from '../failures.ts';
import { PARTITION_COLUMN } from './file-layout.ts';
import type { FilesFormat, FilesOptions, Manifest, OpenMode } from './format.ts';
import { LocalFiles } from './local-files.ts';
import type { PlaceVersion, PlannedCommit } from './place-version.ts';
import { countRowsOfFile, readParquetSql } from './read-parquet.ts';

/** Number of files that are copied at the same time. */
const COPY_CONCURRENCY = 4;
/** Pauses (ms) between attempts at reading one version of a place that is written: what was read is new by now. */
const READ_PAUSES = [0, 0, 0, 0];

/** The column with the path of a row's file. */
const FILE_COLUMN = '_dfinery_file';

/** An open place: its manifest, its files, and what can be read from these. */
export class FilesPlace {
  readonly localFiles: LocalFiles;
  readonly manifest: Manifest;
  readonly #options: FilesOptions;
  readonly #run: RunFolder;

  private constructor(options: FilesOptions, localFiles: LocalFiles, manifest: Manifest, run: RunFolder) {
    this.localFiles = localFiles;
    this.manifest = manifest;
    this.#options = options;
    this.#run = run;
  }

  /** Opens a place, and reads its latest version. Throws UserError. */
  static async open(format: FilesFormat, options: FilesOptions, mode: OpenMode): Promise<FilesPlace> {
    const storage = await format.openStorage(options);
    const { workFolder } = storage;
    let run: RunFolder | undefined;
    let engine: Engine | undefined;
    try {
      // On a disk the folder of the run lies in the place. Nothing is made in one of somebody else.
      if (mode === 'rewrite' && !(await format.isLoaded(storage))) throw noTableError(options.address);
      if (mode === 'load') await format.refuseForeign(storage);
      run =
        mode === 'read' || workFolder === undefined
          ? await RunFolder.open(options.spoolDir, options.clock)
          : await RunFolder.open(workFolder, options.clock, { path: workFolder, consequence: COMMITTED_IS_KEPT });
      engine = await openEngine(join(run.path, 'engine'), 'write', options);
      // Files are replaced under their names.
      await engine.run('SET enable_external_file_cache = false');
      const localFiles = new LocalFiles(format, storage, engine, run.path);
      const manifest = format.manifestOf(localFiles, options, mode);
      await manifest.read();
      return new FilesPlace(options, localFiles, manifest, run);
    } catch (error) {
      await engine?.close();
      storage.close();
      await run?.remove();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.engine.close();
    this.localFiles.storage.close();
    await this.#run.remove();
  }

  get engine(): Engine {
    return this.localFiles.engine;
  }

  get address(): string {
    return this.#options.address;
  }

  /** The latest version. Throws UserError if nothing was loaded yet. */
  get version(): PlaceVersion {
    const { version } = this.manifest;
    if (version === undefined) throw noTableError(this.address);
    return version;
  }

  /** Names the damaged files of the version. */
  warnOfDamage(): void {
    for (const message of this.manifest.damageWarnings) {
      this.#options.logger.warn('files.damaged', `${this.address}: ${message}`);
    }
  }

  /**
   * A relation of all rows of a table, or of some files of it: all columns of its state, and `event_date` of events.
   */
  async relationOf(
    table: Table['name'],
    state: TableState,
    files = this.version.files.filter((file) => file.table === table),
  ): Promise<string> {
    const paths = await pLimit(COPY_CONCURRENCY).map(files, (file) => this.localFiles.fetch(file));
    const names = new Set(files.flatMap(({ columns }) => [...columns.keys()]));
    const values = [...this.localFiles.layout.columnsOf(state)].map(([name, type]) => {
      const value = names.has(name) ? identifier(name) : 'NULL';
      return `CAST(${value} AS ${type}) AS ${identifier(name)}`;
    });
    // Not as a Hive partition: a folder above may be named like one, too.
    const day = `CAST(regexp_extract(${FILE_COLUMN}, '${PARTITION_COLUMN}=([0-9-]{10})[^=]*$', 1) AS DATE) AS ${PARTITION_COLUMN}`;
    const from =
      paths.length === 0
        ? `(SELECT '' AS ${FILE_COLUMN} WHERE false)`
        : readParquetSql(paths, `hive_partitioning = false, filename = ${literal(FILE_COLUMN)}`);
    return `(SELECT ${[...(table === 'events' ? [day] : []), ...values].join(', ')} FROM ${from})`;
  }

  /** The rows of days by the footers of their files; a day without a file is left out. */
  async countRows(days: readonly Day[]): Promise<Map<Day, number>> {
    const counted = new Map<Day, number>();
    for (const file of this.version.files) {
      if (file.table !== EVENTS.name || !days.includes(file.day)) continue;
      counted.set(file.day, await countRowsOfFile(this.engine, await this.localFiles.fetchColumns(file, [])));
    }
    return counted;
  }

  /** As `commit` of the manifest; it fails once another run took this one for dead. */
  commit<T>(plan: () => Promise<PlannedCommit<T>>): Promise<T> {
    return this.manifest.commit(async () => {
      const planned = await plan();
      this.#run.checkHeld();
      return planned;
    });
  }
}

/** Runs work on a place. Throws UserError, or the reason of the signal. */
export async function withUserErrors<T>({ signal, address }: FilesOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    throw engineError(error, address);
  }
}

/** Opens a place, runs work and closes it. Throws as `withUserErrors`. */
export function withPlace<T>(
  format: FilesFormat,
  options: FilesOptions,
  mode: OpenMode,
  work: (place: FilesPlace) => Promise<T>,
): Promise<T> {
  return withUserErrors(options, async () => {
    const place = await FilesPlace.open(format, options, mode);
    try {
      if (mode === 'rewrite') place.warnOfDamage();
      return await work(place);
    } finally {
      await place.close();
    }
  });
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
      signal.throwIfAborted();
      const isDone = outcome.status === 'fulfilled' && isConsistent(outcome.value);
      if (isDone && !place.manifest.hasReplacedFiles?.()) return outcome;
      const isChanged = await place.manifest.read();
      return isChanged ? undefined : outcome;
    });
    if (read?.status === 'fulfilled') return read.value;
    throw (
      read?.reason ?? transientError(`${options.address} is written all the time: try again once its writer is done.`)
    );
  });
}
