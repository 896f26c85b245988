import { lstatSync, type Stats } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';
import { codeOf } from '../base/errors.ts';
import { type DiskErrorContext, diskError, withDiskErrors } from './disk-failure.ts';
import { makeFolders } from './folders.ts';
import { acquireLock, type Lock, readOwner } from './lock.ts';
import { GROUP_AND_OTHERS_BITS, isProtected } from './permissions.ts';

const PREFIX = 'dfinery-spool-';
const RUN_FOLDER = new RegExp(`^${PREFIX}[0-9A-Za-z]{6}$`);
/** The lock in the folder of a run, which shows that it is alive. */
const LOCK_FILE = 'run.lock';
/** Age (ms) up to which a folder without a lock is kept: its run may be about to take it. */
const LOCK_GRACE_MS = 60_000;

const spoolContext = (root: string): DiskErrorContext => ({
  subject: `the spool folder ${root}`,
  path: root,
  remedy: 'set spool_dir to a folder on another disk that this user may write to',
  consequence: 'what was stored before is complete, the next run goes on from there',
});

/** A temporary folder of one run. If the run dies, the next run under the same root removes it. */
export class RunFolder {
  readonly path: string;
  /** What the UserError of a failing disk says of its root. */
  readonly diskContext: DiskErrorContext;
  readonly #lock: Lock;

  private constructor(path: string, lock: Lock, diskContext: DiskErrorContext) {
    this.path = path;
    this.diskContext = diskContext;
    this.#lock = lock;
  }

  /**
   * Makes a folder under `root`, which is made if missing, and removes those of dead runs. By default `root` is called
   * the spool folder.
   */
  static async open(root: string, clock: Clock, diskContext = spoolContext(root)): Promise<RunFolder> {
    let path: string | undefined;
    try {
      await makeFolders(root);
      await sweepRunFolders(root);
      path = await mkdtemp(join(resolve(root), PREFIX));
      const lock = await acquireLock(join(path, LOCK_FILE), { subject: `the folder ${path}`, clock, waitMs: 0 });
      return new RunFolder(path, lock, diskContext);
    } catch (error) {
      // Without its lock the folder would count as that of a live run for a minute.
      if (path !== undefined) await rm(path, { recursive: true, force: true }).catch(() => {});
      throw diskError(error, diskContext);
    }
  }

  /** Settles as `promise` does, but throws an error of the disk as `open` does. */
  withDiskErrors<T>(promise: Promise<T>): Promise<T> {
    return withDiskErrors(this.diskContext, promise);
  }

  /** Throws a transient failure if another run took this one for dead, and removed its folder. */
  checkHeld(): void {
    this.#lock.checkHeld();
  }

  /**
   * Removes the folder and everything in it. The lock goes last: without it the next run takes this one for dead.
   * Throws as `open` does, and then leaves the rest to the next run.
   */
  async remove(): Promise<void> {
    try {
      for (const name of await namesIn(this.path)) {
        if (name !== LOCK_FILE) await this.withDiskErrors(rm(join(this.path, name), { recursive: true, force: true }));
      }
    } finally {
      this.#lock.release();
    }
    await this.withDiskErrors(rm(this.path, { recursive: true, force: true }));
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/** Removes the folders that dead runs of this user left under a root; they hold only copies. Returns the others. */
export async function sweepRunFolders(root: string) {
  const liveFolders: string[] = [];
  // Those of dead runs that could not be removed.
  const stuckFolders: string[] = [];
  // Those of other users, or open to them: their links could lead a removal elsewhere.
  const foreignFolders: string[] = [];
  for (const name of await namesIn(root)) {
    const folder = join(root, name);
    const stat = RUN_FOLDER.test(name) ? lstatSync(folder, { throwIfNoEntry: false }) : undefined;
    if (stat?.isDirectory() !== true) continue;
    try {
      if (!isPrivate(stat, root)) foreignFolders.push(folder);
      else if (isInUse(folder, stat)) liveFolders.push(folder);
      else await rm(folder, { recursive: true, force: true });
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') stuckFolders.push(folder);
    }
  }
  return { liveFolders, stuckFolders, foreignFolders };
}

/** True for a folder of this user that is closed to all others, as far as the file system keeps modes. */
function isPrivate(stat: Stats, root: string): boolean {
  const user = process.getuid?.() ?? stat.uid;
  return stat.uid === user && isProtected(stat, GROUP_AND_OTHERS_BITS, root);
}

function isInUse(folder: string, { mtimeMs }: Stats): boolean {
  const owner = readOwner(join(folder, LOCK_FILE));
  return owner === undefined ? Math.abs(systemClock.now() - mtimeMs) < LOCK_GRACE_MS : !owner.isDead;
}
