import { readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DAY_MS } from '../../base/durations.ts';
import { codeOf } from '../../base/errors.ts';
import { isLeased, leaseOf } from '../../fs/lock.ts';
import { folderOwner, isPrivateFolder } from '../../fs/private-folder.ts';
import { namesIn } from './run-folder.ts';

// The spool folders of all runs under a spool directory, looked for and cleared of what dead runs left.

const FOLDER_NAME = /^dfinery-elt-[0-9a-f]{16}$/;

/** Paths of the spool folders (one for each service with its filters) under a spool directory. */
export const spoolFolders = async (root: string): Promise<string[]> =>
  (await namedFolders(root).catch(() => [])).filter(isPrivateFolder);

/**
 * Paths of spool folders that belong to another user, or that other users may read; `root` itself if it cannot be read.
 */
export async function foreignSpoolFolders(root: string): Promise<string[]> {
  const folders = await namedFolders(root).catch(() => undefined);
  return folders?.filter((path) => folderOwner(path) === 'others').sort() ?? [root];
}

/** Throws the system's error for a directory that is there and cannot be read. */
async function namedFolders(root: string): Promise<string[]> {
  const names = await readdir(root).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  });
  return names.filter((name) => FOLDER_NAME.test(name)).map((name) => join(root, name));
}

const RETENTION_MS = 7 * DAY_MS;
/** Spool files and sidecars of a run, and temporary files of its sidecars. */
const FILE = /^\.?(r[0-9a-f]{16})-\d{6}\.(part|csv|json)(\.[0-9a-f]{12}\.tmp)?$/;

/**
 * Removes the files of dead runs; verified files and malformed bodies kept for inspection only after seven days, or if
 * the clock that dated them was more than that ahead.
 */
export async function sweepAll(folders: readonly string[], now: number): Promise<void> {
  const isRetained = (mtimeMs: number) => Math.abs(now - mtimeMs) <= RETENTION_MS;
  for (const folder of folders) await sweep(folder, await namesIn(folder), isRetained);
}

/**
 * Removes all files of dead runs at once, verified or not: after a deletion no row of a person may stay. The verified
 * files of live runs stay, but lose their sidecars, so that no later run loads them. Returns the files that it could
 * not remove, and the folders that it could not look through: of which a lease, or the folder itself, cannot be read.
 */
export async function purgeSpools(folders: readonly string[]): Promise<string[]> {
  const unremoved: string[] = [];
  for (const folder of folders) {
    try {
      unremoved.push(...(await sweep(folder, await readdir(folder), () => false)));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') unremoved.push(folder);
    }
    const sidecars = (await namesIn(folder)).filter((name) => FILE.test(name) && name.endsWith('.json'));
    for (const name of sidecars) await removeFile(join(folder, name), unremoved);
  }
  return [...new Set(unremoved)];
}

/** Removes a file; adds it to `unremoved` if it is still there. */
async function removeFile(path: string, unremoved: string[]): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') unremoved.push(path);
  });
}

/**
 * As `sweepAll`; verified files stay if they are retained by their time (ms). Returns the files that it could not
 * remove.
 */
async function sweep(
  folder: string,
  listed: readonly string[],
  isRetained: (mtimeMs: number) => boolean,
): Promise<string[]> {
  const names = new Set(listed);
  const alive = new Map<string, boolean>();
  const unremoved: string[] = [];
  for (const name of names) {
    const run = leaseOf(name) ?? FILE.exec(name)?.[1];
    if (run !== undefined && !alive.has(run)) alive.set(run, isLeased(folder, run));
    if (run !== undefined && alive.get(run)) continue;
    const path = join(folder, name);
    const sidecar = sidecarOf(name, names);
    // A sidecar goes with its file, by whose time both are judged.
    if (sidecar === name) continue;
    if (sidecar !== undefined || name.startsWith('malformed-')) {
      const found = await stat(path).catch(() => undefined);
      if (found === undefined || isRetained(found.mtimeMs)) continue;
    } else if (run === undefined) continue;
    if (sidecar !== undefined) await removeFile(join(folder, sidecar), unremoved);
    await removeFile(path, unremoved);
  }
  await rmdir(folder).catch(() => {});
  return unremoved;
}

/** The name of the sidecar of a spool file that has one, also for the sidecar itself. */
function sidecarOf(name: string, names: ReadonlySet<string>): string | undefined {
  const [, stem] = /^(r[0-9a-f]{16}-\d{6})\.(?:csv|json)$/.exec(name) ?? [];
  return stem !== undefined && names.has(`${stem}.csv`) && names.has(`${stem}.json`) ? `${stem}.json` : undefined;
}
