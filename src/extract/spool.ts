import { lstat, mkdtemp, open, readdir, rm, unlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { codeOf } from '../base/errors.ts';
import { diskError } from '../fs/disk-failure.ts';
import { isPrivateFolder, makeFolders } from '../fs/folders.ts';
import { LockFile, ownerState } from '../fs/lock.ts';
import { OWNER_FILE_MODE } from '../fs/permissions.ts';
import type { CheckedOutput } from '../service/export/checked-body.ts';

const RUN_FOLDER = /^dfinery-(arrow|files|spool)-[0-9A-Za-z]{6}$/;
/** A lock in the folder of a run, which shows that it is alive. */
const LEASE = 'run.lease';
/** Age (ms) up to which a folder without a lease is kept: its run may be about to write the lease. */
const LEASE_GRACE_MS = 60_000;

/** A temporary folder of one run under the spool directory. If the run dies, the next run removes it. */
export class RunFolder {
  readonly path: string;
  readonly #lease: LockFile;
  readonly #toFailure: (error: unknown) => unknown;
  #files = 0;

  private constructor(path: string, lease: LockFile, toFailure: (error: unknown) => unknown) {
    this.path = path;
    this.#lease = lease;
    this.#toFailure = toFailure;
  }

  /**
   * Makes a folder under `root`, which is made if missing, and removes those of dead runs. `toFailure` converts an
   * error of the system, by default into a UserError that calls `root` the spool folder.
   */
  static async open(
    root: string,
    clock: Clock,
    what: 'arrow' | 'files' | 'spool',
    toFailure = spoolError,
  ): Promise<RunFolder> {
    try {
      makeFolders(root);
      await sweepRunFolders(root, clock.now());
      const path = await mkdtemp(join(resolve(root), `dfinery-${what}-`));
      const lock = { what: `the folder ${path}`, clock, waitMs: 0 };
      return new RunFolder(path, await LockFile.acquire(join(path, LEASE), lock), (error) => toFailure(error, root));
    } catch (error) {
      throw toFailure(error, root);
    }
  }

  /** Begins a file. */
  async newFile(): Promise<FileOutput> {
    const path = join(this.path, `${++this.#files}.csv`);
    const onDisk = <T>(work: Promise<T>) =>
      work.catch((error: unknown) => {
        throw this.#toFailure(error);
      });
    const file = await onDisk(open(path, 'wx', OWNER_FILE_MODE));
    return {
      path,
      write: (bytes) => onDisk(writeFile(file, bytes)),
      // A network disk may tell only now that it is full.
      close: () => onDisk(file.close()),
      async discard() {
        await file.close().catch(() => {});
        await removeFiles([{ path }]);
      },
    };
  }

  /** Throws a transient failure if another run took this one for dead, and removed its folder. */
  checkHeld(): void {
    this.#lease.checkHeld();
  }

  /**
   * Removes the folder and everything in it. The lease goes last: without it the next run takes this one for dead.
   * Throws as `open` does, and then leaves the rest to the next run.
   */
  async remove(): Promise<void> {
    try {
      for (const name of await entriesIn(this.path)) {
        if (name !== LEASE) await rm(join(this.path, name), { recursive: true, force: true });
      }
      this.#lease.release();
      await rm(this.path, { recursive: true, force: true });
    } catch (error) {
      this.#lease.release();
      throw this.#toFailure(error);
    }
  }
}

const entriesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/**
 * Removes the folders that dead runs of this user left under a spool directory; they hold only copies. Returns those
 * that it could not remove, and those of runs that are alive.
 */
export async function sweepRunFolders(
  root: string,
  now: number,
): Promise<{ readonly left: readonly string[]; readonly inUse: readonly string[] }> {
  const left: string[] = [];
  const inUse: string[] = [];
  for (const name of await entriesIn(root)) {
    const folder = join(root, name);
    if (!RUN_FOLDER.test(name) || !isPrivateFolder(folder)) continue;
    try {
      const { mtimeMs } = await lstat(folder);
      const owner = ownerState(join(folder, LEASE));
      const isInUse = owner === 'none' ? Math.abs(now - mtimeMs) < LEASE_GRACE_MS : owner === 'alive';
      if (isInUse) inUse.push(folder);
      else await rm(folder, { recursive: true, force: true });
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') left.push(folder);
    }
  }
  return { left, inUse };
}

/** A system error of the spool folder as a UserError that names the folder; any other error unchanged. */
const spoolError = (error: unknown, folder: string): unknown =>
  diskError(error, {
    what: `the spool folder ${folder}`,
    path: folder,
    remedy: 'set spool_dir to a folder on another disk that this user may write to',
    consequence: 'what was stored before is complete, the next run goes on from there',
  });

/** A file in the folder of a run, while it is written. */
export interface FileOutput extends Required<CheckedOutput> {
  readonly path: string;
}

/** Removes files that nobody needs any more. Their folder is removed with the run in any case. */
export async function removeFiles(files: readonly { readonly path: string }[]): Promise<void> {
  for (const { path } of files) await unlink(path).catch(() => {});
}
