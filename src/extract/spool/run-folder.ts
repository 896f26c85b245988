import { lstat, mkdtemp, readdir, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { DAY_MS } from '../../base/durations.ts';
import { codeOf } from '../../base/errors.ts';
import { acquireLease, isLeased, isLockTemporary, type Lease, leaseOf } from '../../fs/lock.ts';
import { isPrivateFolder, makeFolders } from '../../fs/private-folder.ts';
import { spoolError } from './spool-writer.ts';

const RUN_FOLDER = /^dfinery-(arrow|files)-[0-9A-Za-z]{6}$/;
/** Age (ms) up to which a folder without a lease is kept: its run may be about to write the lease. */
const GRACE_MS = 60_000;

/** A temporary folder of one run under the spool directory. If the run dies, the next run removes it. */
export class RunFolder {
  readonly path: string;
  readonly #lease: Lease;
  readonly #errorOf: (error: unknown) => unknown;

  private constructor(path: string, lease: Lease, errorOf: (error: unknown) => unknown) {
    this.path = path;
    this.#lease = lease;
    this.#errorOf = errorOf;
  }

  /**
   * Makes a folder under `root`, which is made if missing, and removes those of dead runs. `errorOf` converts the
   * system's error into the failure that is thrown, by default a UserError that calls `root` the spool folder.
   */
  static async open(root: string, clock: Clock, what: 'arrow' | 'files', errorOf = spoolError): Promise<RunFolder> {
    try {
      makeFolders(root);
      await sweepRunFolders(root, clock.now());
      const path = await mkdtemp(join(resolve(root), `dfinery-${what}-`));
      return new RunFolder(path, acquireLease(path, clock), (error) => errorOf(error, root));
    } catch (error) {
      throw errorOf(error, root);
    }
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
      for (const name of await namesIn(this.path)) {
        if (leaseOf(name) === undefined) await rm(join(this.path, name), { recursive: true, force: true });
      }
      this.#lease.release();
      await rm(this.path, { recursive: true, force: true });
    } catch (error) {
      this.#lease.release();
      throw this.#errorOf(error);
    }
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/**
 * Removes the folders that dead runs left under a spool directory; they hold only copies. Returns those that it could
 * not remove.
 */
export async function sweepRunFolders(root: string, now: number): Promise<string[]> {
  const left: string[] = [];
  for (const name of await namesIn(root)) {
    const folder = join(root, name);
    if (!RUN_FOLDER.test(name) || !isPrivateFolder(folder)) continue;
    try {
      const { mtimeMs } = await lstat(folder);
      const isInUse = (await hasLiveRun(folder)) ?? now - mtimeMs < GRACE_MS;
      if (!isInUse) await rm(folder, { recursive: true, force: true });
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') left.push(folder);
    }
  }
  return left;
}

/** True if a run with a lease in the folder is alive; undefined if there is no lease. Throws the system's error. */
async function hasLiveRun(folder: string): Promise<boolean | undefined> {
  const runs = (await readdir(folder)).flatMap((name) => leaseOf(name) ?? []);
  return runs.length === 0 ? undefined : runs.some((run) => isLeased(folder, run));
}

/** The folders among these in which a live run is known to have its downloads. */
export async function liveSpoolFolders(folders: readonly string[]): Promise<string[]> {
  const liveFolders: string[] = [];
  for (const folder of folders) if (await hasLiveRun(folder).catch(() => false)) liveFolders.push(folder);
  return liveFolders;
}

const RETENTION_MS = 7 * DAY_MS;
/** Spool files and sidecars of a run, and temporary files of its sidecars. */
const FILE = /^\.?(r[0-9a-f]{16})-\d{6}\.(part|csv|json)(\.[0-9a-f]{12}\.tmp)?$/;

/** Removes the files of dead runs; verified files and malformed bodies kept for inspection only after seven days. */
export async function sweepAll(folders: readonly string[], now: number): Promise<void> {
  for (const folder of folders) await sweep(folder, await namesIn(folder), now - RETENTION_MS);
}

/**
 * Removes all files of dead runs at once, verified or not: after a deletion no row of a person may stay. The verified
 * files of live runs stay, but lose their sidecars, so that no later run loads them. Returns the files that it could
 * not remove, and the folders that it could not look through: of which a lease, or the folder itself, cannot be read.
 */
export async function purgeSpools(folders: readonly string[]): Promise<string[]> {
  const left: string[] = [];
  for (const folder of folders) {
    try {
      left.push(...(await sweep(folder, await readdir(folder), Number.POSITIVE_INFINITY)));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') left.push(folder);
    }
    const sidecars = (await namesIn(folder)).filter((name) => FILE.test(name) && name.endsWith('.json'));
    for (const name of sidecars) await removeFile(join(folder, name), left);
  }
  return [...new Set(left)];
}

/** Removes a file; adds it to `left` if it is still there. */
async function removeFile(path: string, left: string[]): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') left.push(path);
  });
}

/** As `sweepAll`, for files from before `until` (ms). Returns the files that it could not remove. */
async function sweep(folder: string, listed: readonly string[], until: number): Promise<string[]> {
  const names = new Set(listed);
  const alive = new Map<string, boolean>();
  const left: string[] = [];
  for (const name of names) {
    const run = leaseOf(name) ?? FILE.exec(name)?.[1];
    if (run !== undefined && !alive.has(run)) alive.set(run, isLeased(folder, run));
    if (run !== undefined && alive.get(run)) continue;
    const path = join(folder, name);
    const isMalformed = name.startsWith('malformed-');
    if (isMalformed || isVerified(name, names)) {
      const found = await stat(path).catch(() => undefined);
      if (found === undefined || found.mtimeMs >= until) continue;
    } else if (run === undefined && !isLockTemporary(name)) continue;
    await removeFile(path, left);
  }
  await rmdir(folder).catch(() => {});
  return left;
}

/** True for a spool file that has its sidecar, and for the sidecar. */
function isVerified(name: string, names: ReadonlySet<string>): boolean {
  const [, stem] = /^(r[0-9a-f]{16}-\d{6})\.(?:csv|json)$/.exec(name) ?? [];
  return stem !== undefined && names.has(`${stem}.csv`) && names.has(`${stem}.json`);
}
