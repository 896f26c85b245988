import { readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isLeased, isLockTemporary, leaseOf } from '../../fs/lock.ts';

const RETENTION_MS = 7 * 86_400_000;
/** Spool files and sidecars of a run, and temporary files of its sidecars. */
const FILE = /^\.?(r[0-9a-f]{16})-\d{6}\.(part|csv|json)(\.[0-9a-f]{12}\.tmp)?$/;

/** Removes the files of dead runs; verified files and malformed bodies kept for inspection only after seven days. */
export async function sweepAll(folders: readonly string[], now: number): Promise<void> {
  for (const folder of folders) await sweep(folder, now, RETENTION_MS);
}

/** Removes all files of dead runs at once, verified or not: after a deletion no row of a person may stay. Returns how many. */
export async function purgeSpools(folders: readonly string[], now: number): Promise<number> {
  let removed = 0;
  for (const folder of folders) removed += await sweep(folder, now, Number.NEGATIVE_INFINITY);
  return removed;
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
