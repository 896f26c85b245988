import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { isLeased, Lease, leaseOf } from '../../fs/lock.ts';
import { isPrivateFolder, makeFolders } from '../../fs/private-folder.ts';
import { spoolFailure } from './spool-failure.ts';

const RUN_FOLDER = /^dfinery-(arrow|verify|delta)-[0-9A-Za-z]{6}$/;
/** Age up to which a folder without a lease is left alone: its run may be about to write the lease. */
const GRACE_MS = 60_000;

/** A temporary folder of one run under the spool directory. If the run dies, the next one removes it. */
export class RunFolder {
  readonly path: string;
  readonly #lease: Lease;

  private constructor(path: string, lease: Lease) {
    this.path = path;
    this.#lease = lease;
  }

  /** Makes one under `root`, which is made if missing, and removes those of dead runs. Throws a Failure that names `root`. */
  static async open(root: string, clock: Clock, what: 'arrow' | 'verify' | 'delta'): Promise<RunFolder> {
    try {
      makeFolders(root, 0o700);
      await sweepRunFolders(root, clock.now());
      const path = await mkdtemp(join(root, `dfinery-${what}-`));
      return new RunFolder(path, Lease.take(path, clock));
    } catch (error) {
      throw spoolFailure(error, root);
    }
  }

  /** Removes the folder and everything in it. */
  async remove(): Promise<void> {
    this.#lease.release();
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Removes the folders that dead runs left under a spool directory; they hold only copies. */
export async function sweepRunFolders(root: string, now: number): Promise<void> {
  const names = await readdir(root).catch(() => []);
  for (const name of names.filter((text) => RUN_FOLDER.test(text))) {
    const folder = join(root, name);
    if (!isPrivateFolder(folder) || (await isInUse(folder, now))) continue;
    await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}

async function isInUse(folder: string, now: number): Promise<boolean> {
  const runs = (await readdir(folder).catch(() => [])).flatMap((name) => leaseOf(name) ?? []);
  if (runs.length > 0) return runs.some((run) => isLeased(folder, run));
  const found = await lstat(folder).catch(() => undefined);
  return found !== undefined && now - found.mtimeMs < GRACE_MS;
}
