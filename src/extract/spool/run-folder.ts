import { lstat, mkdtemp, readdir, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { isLeased, isLockTemporary, Lease, leaseOf } from '../../fs/lock.ts';
import { isPrivateFolder, makeFolders } from '../../fs/private-folder.ts';
import { spoolError } from './spool-writer.ts';

const RUN_FOLDER = /^dfinery-(arrow|files)-[0-9A-Za-z]{6}$/;
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

  /**
   * Makes one under `root`, which is made if missing, and removes those of dead runs. Throws what `errorOf` makes of the
   * system's error, by default a UserError that calls `root` the spool folder.
   */
  static async open(root: string, clock: Clock, what: 'arrow' | 'files', errorOf = spoolError): Promise<RunFolder> {
    try {
      makeFolders(root, 0o700);
      await sweepRunFolders(root, clock.now());
      const path = await mkdtemp(join(root, `dfinery-${what}-`));
      return new RunFolder(path, Lease.take(path, clock));
    } catch (error) {
      throw errorOf(error, root);
    }
  }

  /** Removes the folder and everything in it; the lease last, by which the next run knows that this one is dead. */
  async remove(): Promise<void> {
    const names = await readdir(this.path).catch(() => []);
    for (const name of names.filter((one) => leaseOf(one) === undefined)) {
      await rm(join(this.path, name), { recursive: true, force: true });
    }
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

const RETENTION_MS = 7 * 86_400_000;
/** Spool files and sidecars of a run, and temporary files of its sidecars. */
const FILE = /^\.?(r[0-9a-f]{16})-\d{6}\.(part|csv|json)(\.[0-9a-f]{12}\.tmp)?$/;

/** Removes the files of dead runs; verified files and malformed bodies kept for inspection only after seven days. */
export async function sweepAll(folders: readonly string[], now: number): Promise<void> {
  for (const folder of folders) await sweep(folder, now, RETENTION_MS);
}

/**
 * Removes all files of dead runs at once, verified or not: after a deletion no row of a person may stay. What runs that are under way
 * have verified so far stays for them alone: without its sidecar no later run loads it. Returns how many files of dead runs went.
 */
export async function purgeSpools(folders: readonly string[], now: number): Promise<number> {
  let removed = 0;
  for (const folder of folders) {
    removed += await sweep(folder, now, Number.NEGATIVE_INFINITY);
    const names = await readdir(folder).catch(() => []);
    const sidecars = names.filter((name) => FILE.test(name) && name.endsWith('.json'));
    for (const name of sidecars) await unlink(join(folder, name)).catch(() => {});
  }
  return removed;
}

/** Of these folders those where a run that is under way has its downloads. */
export async function liveSpoolFolders(folders: readonly string[]): Promise<string[]> {
  const live: string[] = [];
  for (const folder of folders) {
    const runs = (await readdir(folder).catch(() => [])).flatMap((name) => leaseOf(name) ?? []);
    if (runs.some((run) => isLeased(folder, run))) live.push(folder);
  }
  return live;
}

async function sweep(folder: string, now: number, retentionMs: number): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const existing = new Set(names);
  const alive = new Map<string, boolean>();
  const isRunAlive = (run: string) => {
    const known = alive.get(run) ?? isLeased(folder, run);
    alive.set(run, known);
    return known;
  };
  let removed = 0;
  for (const name of names) {
    const path = join(folder, name);
    if (!isUnusable(name, existing, isRunAlive) && !(await isExpired(path, name, now, retentionMs, isRunAlive)))
      continue;
    await unlink(path).catch(() => {});
    removed++;
  }
  await rmdir(folder).catch(() => {});
  return removed;
}

type IsRunAlive = (run: string) => boolean;

/** True for a file of a dead run that cannot be reused: partly written, or a spool file or sidecar without the other. */
function isUnusable(name: string, existing: ReadonlySet<string>, isRunAlive: IsRunAlive): boolean {
  if (isLockTemporary(name)) return true;
  const run = leaseOf(name) ?? FILE.exec(name)?.[1];
  if (run === undefined || isRunAlive(run)) return false;
  const stem = name.replace(/\.[a-z]+$/, '');
  return !(existing.has(`${stem}.csv`) && existing.has(`${stem}.json`) && /\.(csv|json)$/.test(name));
}

async function isExpired(
  path: string,
  name: string,
  now: number,
  retentionMs: number,
  isRunAlive: IsRunAlive,
): Promise<boolean> {
  const run = FILE.exec(name)?.[1];
  if (run === undefined && !name.startsWith('malformed-')) return false;
  if (run !== undefined && isRunAlive(run)) return false;
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && now - found.mtimeMs > retentionMs;
}
