import { mkdirSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../base/errors.ts';
import { syncFolderAtOnce } from './atomic-file.ts';

/**
 * Makes a folder and those above it, where they are missing; their names are on the disk when this returns. Throws the
 * system's error. Node's own recursion never ends where a parent exists and still nothing can be made in it, as under
 * /proc.
 */
export function makeFolders(path: string, mode: number): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  // Below a file it is the system that says so, with ENOTDIR.
  if (parent !== path && found(parent) === undefined) makeFolders(parent, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Somebody else was quicker.
    if (!isFolder(path)) throw error;
  }
  syncFolderAtOnce(parent);
}

const isFolder = (path: string): boolean => found(path)?.isDirectory() === true;

/** Node 20 throws ENOTDIR for a path below a file, Node 24 finds nothing there. */
function found(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
