import { readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isTimeProbe } from '../../fs/holder-file.ts';
import { isLeased, leaseOf } from '../../fs/lease.ts';

const KEPT_MS = 7 * 86_400_000;
/** A run's own files, and the drafts of its sidecars. */
const FILE = /^\.?(r[0-9a-f]{16})-\d{6}\.(part|csv|json)(\.[0-9a-f]{12}\.tmp)?$/;

/** Removes what dead runs left: all but verified files and bodies kept for inspection, and those after seven days. */
export async function sweepAll(folders: readonly string[], now: number): Promise<void> {
  for (const folder of folders) await sweep(folder, now, KEPT_MS);
}

/** Removes everything of dead runs at once, verified or not: after a deletion nothing of a person may stay. */
export async function purgeSpools(folders: readonly string[], now: number): Promise<number> {
  let removed = 0;
  for (const folder of folders) removed += await sweep(folder, now, Number.NEGATIVE_INFINITY);
  return removed;
}

async function sweep(folder: string, now: number, keepMs: number): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const there = new Set(names);
  const alive = new Map<string, boolean>();
  const lives = (run: string) => {
    const known = alive.get(run) ?? isLeased(folder, run);
    alive.set(run, known);
    return known;
  };
  let removed = 0;
  for (const name of names) {
    const path = join(folder, name);
    if (!isLeftover(name, there, lives) && !(await isOld(path, name, now, keepMs, lives))) continue;
    await unlink(path).catch(() => {});
    removed++;
  }
  await rmdir(folder).catch(() => {});
  return removed;
}

type Lives = (run: string) => boolean;

/** Files of dead runs that nobody can use: half written, or one of a pair alone. */
function isLeftover(name: string, there: ReadonlySet<string>, lives: Lives): boolean {
  if (isTimeProbe(name)) return true;
  const run = leaseOf(name) ?? FILE.exec(name)?.[1];
  if (run === undefined || lives(run)) return false;
  const stem = name.replace(/\.[a-z]+$/, '');
  return !(there.has(`${stem}.csv`) && there.has(`${stem}.json`) && /\.(csv|json)$/.test(name));
}

async function isOld(path: string, name: string, now: number, keepMs: number, lives: Lives): Promise<boolean> {
  const run = FILE.exec(name)?.[1];
  if (run === undefined && !name.startsWith('malformed-')) return false;
  if (run !== undefined && lives(run)) return false;
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && now - found.mtimeMs > keepMs;
}
