import { lstat, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, configError } from '../../base/errors.ts';
import { isObject, jsonOf } from '../../base/json.ts';
import { replaceFile, syncFolder } from '../../fs/atomic-file.ts';
import { makeFolders } from '../../fs/private-folder.ts';
import { checkedManifest, type FolderPaths, isLivePath, type Manifest, readIfThere } from './manifest.ts';

/** A new file gets its live name, or a live file is removed. Paths from the folder, with `/`. */
export type Move = { readonly from: string; readonly to: string } | { readonly remove: string };

/**
 * The journal of a change, written when every new file is complete and on the disk, and before any live file is
 * touched: from then on the change happens, by this run or the next, which executes the steps that are left. A reader
 * that globs finds files that are old, old without the rows that move to other dates, or new: never a row twice,
 * at the end the new ones alone.
 */
export interface Journal {
  readonly v: 1;
  readonly steps: readonly Move[];
  readonly manifest: Manifest;
}

/** Writes the journal of a change and executes it. Once it has begun, only a disk error can stop it. */
export async function execute(paths: FolderPaths, journal: Journal): Promise<void> {
  // The files that it names are on the disk before the journal is.
  await syncFolder(paths.temporary);
  await replaceFile(paths.journal, JSON.stringify(journal));
  await finish(paths, journal);
}

/** Executes the journal of a dead run. True if there was one. Throws UserError. */
export async function recover(paths: FolderPaths): Promise<boolean> {
  const text = await readIfThere(paths.journal);
  if (text === undefined) return false;
  const journal = checkedJournal(jsonOf(text), paths);
  await refuseLinks(paths, journal);
  await finish(paths, journal);
  return true;
}

function checkedJournal(value: unknown, paths: FolderPaths): Journal {
  const { v, steps, manifest } = isObject(value) ? value : {};
  const checked = checkedManifest(manifest, paths.journal);
  const isStep = (step: unknown) =>
    isObject(step) && ('remove' in step ? isLivePath(step.remove) : isWaiting(step.from) && isLivePath(step.to));
  if (v !== 1 || !Array.isArray(steps) || !steps.every(isStep)) {
    throw damagedJournal(paths, 'it names a file that no change of ours touches');
  }
  return { v, steps, manifest: checked };
}

/** True for the path of a file below the temporary folder, without any way out of it. */
const isWaiting = (path: unknown) =>
  typeof path === 'string' && /^_dfinery\/tmp(\/(?!\.{1,2}(\/|$))[^/]+)+$/.test(path);

/** Throws UserError for a link among this program's folders, which would lead a change out of them. */
async function refuseLinks(paths: FolderPaths, { steps }: Journal): Promise<void> {
  for (const path of steps.flatMap((step) => ('remove' in step ? [step.remove] : [step.from, step.to]))) {
    for (let at = resolve(paths.root, path); at !== resolve(paths.root); at = dirname(at)) {
      const found = await lstat(at).catch(() => undefined);
      if (found?.isSymbolicLink()) throw damagedJournal(paths, `${at} is a link`);
    }
  }
}

const damagedJournal = ({ journal }: FolderPaths, why: string) =>
  configError(`${journal} cannot be used: ${why}. Nothing was changed; remove it, and load the days again.`, {
    where: { file: journal },
  });

/** Executes the steps, of which some may be done, each on the disk before the next begins, in case of a power cut. */
async function finish(paths: FolderPaths, { steps, manifest }: Journal): Promise<void> {
  for (const step of steps) {
    const path = join(paths.root, 'remove' in step ? step.remove : step.to);
    if ('remove' in step) await rm(path, { force: true });
    else {
      makeFolders(dirname(path));
      // A file that was moved before stays there.
      await rename(join(paths.root, step.from), path).catch(unlessAbsent);
    }
    await syncFolder(dirname(path)).catch(unlessAbsent);
    await syncFolder(dirname(dirname(path))).catch(unlessAbsent);
  }
  await checkMoved(paths, steps, manifest);
  await replaceFile(paths.manifest, `${JSON.stringify(manifest)}\n`);
  await rm(paths.journal, { force: true });
  await syncFolder(paths.own);
}

/** Ignores a missing folder: the removed file may have been the last of its table, whose folder somebody removed. */
function unlessAbsent(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** Throws UserError if a file that waited is not in its place: somebody else took it away. */
async function checkMoved(paths: FolderPaths, steps: readonly Move[], manifest: Manifest): Promise<void> {
  const newPaths = new Set(steps.flatMap((step) => ('remove' in step ? [] : [step.to])));
  for (const { path, bytes } of manifest.files.filter((file) => newPaths.has(file.path))) {
    const moved = await stat(join(paths.root, path)).catch(() => undefined);
    if (moved?.size === bytes) continue;
    throw configError(
      `${join(paths.root, path)} is not the file that a change left waiting in ${paths.temporary}: somebody else took ` +
        'it away. Load the days again into an empty folder.',
      { where: { file: path } },
    );
  }
}
