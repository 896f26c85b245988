// This folder: files and folders of this machine.
//
//   what survives a crash        `atomic-file.ts` replaces files, `folders.ts` makes folders
//   what others do meanwhile     `lock.ts` admits one process, by its `process-identity.ts`; `run-folder.ts`
//   who may read and write       `permissions.ts`
//   what a user has named        `local-path.ts`, `named-file.ts`, `json-file.ts`, `output-stream.ts`
//   what a failure is called     `disk-failure.ts`

import { randomBytes } from 'node:crypto';
import { link, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, hasCode, undefinedIfAbsent } from '../base/errors.ts';
import { syncFolder } from './folders.ts';
import { giveToFolderOwner, PRIVATE_FILE_MODE, setMode } from './permissions.ts';

/** A unique path beside a file for its next version, which is written there until it is complete. */
export const temporaryPathOf = (path: string): string =>
  join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);

/** True for a path with the form of a temporary file, also of another program. */
export const looksTemporary = (path: string): boolean => /(^|\/)\.[^/]+\.tmp$/.test(path);

/** The name of a temporary file of this program; its group is the name of the file. */
const OWN_TEMPORARY = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;

/** Removes the temporary files of a file that were last changed before an instant (ms). Throws the system's error. */
export async function removeTemporaries(path: string, before = Number.POSITIVE_INFINITY): Promise<void> {
  const folder = dirname(path);
  for (const name of (await readdir(folder).catch(undefinedIfAbsent)) ?? []) {
    if (OWN_TEMPORARY.exec(name)?.[1] !== basename(path)) continue;
    const stat = await lstat(join(folder, name)).catch(undefinedIfAbsent);
    if (stat !== undefined && stat.mtimeMs < before) await rm(join(folder, name), { force: true });
  }
}

/**
 * What a file gets: a text, with a mode for this user alone by default, or a finished file beside it. That is renamed, so
 * that it is gone afterwards.
 */
export type FileContent = { readonly text: string; readonly mode?: number } | { readonly finishedPath: string };

/** Replaces a file, synced to disk: the old content or the new one is there, whole. Throws the system's error. */
export const replaceFile = (path: string, content: FileContent): Promise<void> =>
  withSyncedFile(path, content, (finishedPath) => rename(finishedPath, path));

/**
 * Creates a file by a hard link, synced to disk; false if the name is taken: a finished file then stays. `mayRename`:
 * without hard links it is renamed, and of two processes that look at once both succeed. Throws the system's error.
 */
export const createFile = (path: string, content: FileContent, { mayRename = false } = {}): Promise<boolean> =>
  withSyncedFile(path, content, async (finishedPath) => {
    try {
      await link(finishedPath, path);
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      if (!mayRename || !isLinkUnsupported(error)) throw error;
      if ((await lstat(path).catch(() => undefined)) !== undefined) return false;
      await rename(finishedPath, path);
    }
    await rm(finishedPath, { force: true });
    return true;
  });

/** Settles as `work` does with the path of a file that has this content. Its bytes are synced before, its name after. */
async function withSyncedFile<T>(
  path: string,
  content: FileContent,
  work: (finishedPath: string) => Promise<T>,
): Promise<T> {
  const temporaryPath = temporaryPathOf(path);
  const finishedPath = 'text' in content ? temporaryPath : content.finishedPath;
  try {
    if ('text' in content) await writeTemporary(temporaryPath, content.text, content.mode);
    await syncFile(finishedPath);
    const result = await work(finishedPath);
    await syncFolder(dirname(path));
    return result;
  } finally {
    await rm(temporaryPath, { force: true });
  }
}

async function writeTemporary(path: string, text: string, mode = PRIVATE_FILE_MODE): Promise<void> {
  await writeFile(path, text, { flag: 'wx', mode: PRIVATE_FILE_MODE });
  giveToFolderOwner(path);
  // The umask must not decide the mode.
  if (mode !== PRIVATE_FILE_MODE) setMode(path, mode);
}

async function syncFile(path: string): Promise<void> {
  // Windows syncs only what is open for writing.
  const handle = await open(path, 'r+');
  await handle.sync().finally(() => handle.close());
}

const NO_LINKS_CODES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** True for the error of `link` in a file system that gives a file no second name. */
export const isLinkUnsupported = (error: unknown): boolean =>
  hasCode(error, NO_LINKS_CODES) && (error as NodeJS.ErrnoException).syscall === 'link';
