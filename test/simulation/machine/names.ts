import { dirname, join } from 'node:path';
import type { Random } from '../../../src/base/random.ts';
import { realFs } from './real-fs.ts';

/*
 * Names that a power cut takes back: those that were made, moved or removed in a folder that was not synced since. What was
 * removed or replaced is kept aside until then.
 */

interface Change {
  /** The folder whose sync makes it last, by inode. */
  readonly folder: number;
  readonly undo: () => void;
}

/** Oldest first. */
let changes: Change[] = [];
let aside = '';
let count = 0;

/** Called for each simulation: `folder` receives what is kept aside. */
export function keepNamesIn(folder: string): void {
  aside = folder;
  realFs.mkdirSync(folder, { recursive: true });
  forgetNames();
}

/** All names are synced. */
export function forgetNames(): void {
  changes = [];
}

/** Called when a folder is synced. */
export function namesSynced(folder: number): void {
  changes = changes.filter((change) => change.folder !== folder);
}

/** Makes a call that may change names, and notes how to undo it. */
export function renaming(name: string, parameters: readonly unknown[], call: () => unknown): unknown {
  const kind = KINDS[name];
  const [first] = parameters;
  if (kind === undefined || typeof first !== 'string') return call();
  return kind([first, String(parameters[1])], parameters, call);
}

/** A file or folder that was just made, by a call or by DuckDB. */
export function noteMadeNames(path: string): void {
  changes.push({ folder: folderOf(path), undo: () => realFs.rmSync(path, { recursive: true, force: true }) });
}

/** Undoes the latest changes: all, or a random number of them. */
export function loseNames(random: Random): void {
  const kept = random() < 0.5 ? 0 : Math.floor(random() * (changes.length + 1));
  for (const { undo } of changes.slice(kept).reverse()) undo();
  forgetNames();
}

type Kind = (paths: readonly string[], parameters: readonly unknown[], call: () => unknown) => unknown;

const making =
  (place: (paths: readonly string[]) => string): Kind =>
  (paths, _parameters, call) => {
    const path = firstMissing(place(paths));
    const result = call();
    if (path !== undefined) noteMadeNames(path);
    return result;
  };

const moving: Kind = ([from, to], _parameters, call) => {
  const old = statOf(to)?.isFile() === true ? nextAside() : undefined;
  if (old !== undefined) realFs.linkSync(to, old);
  const result = call();
  changes.push({ folder: folderOf(to), undo: () => moveBack(from, to, old) });
  return result;
};

function moveBack(from: string, to: string, old: string | undefined): void {
  // The folder that it came from is gone for good, and so the move is.
  if (statOf(dirname(from)) === undefined) return;
  if (statOf(to) !== undefined) realFs.renameSync(to, from);
  if (old !== undefined) realFs.renameSync(old, to);
}

const removing: Kind = ([path], parameters, call) => {
  const found = statOf(path);
  const isWhole = (parameters[1] as { recursive?: boolean } | undefined)?.recursive === true;
  // A file with another name is not lost, and must have no name here beside that.
  if (found === undefined || (found.isDirectory() && !isWhole) || (found.isFile() && found.nlink > 1)) return call();
  const kept = nextAside();
  const folder = folderOf(path);
  realFs.renameSync(path, kept);
  changes.push({ folder, undo: () => putBack(kept, path) });
  return undefined;
};

function putBack(kept: string, path: string): void {
  if (statOf(path) === undefined && statOf(dirname(path)) !== undefined) realFs.renameSync(kept, path);
}

const emptying: Kind = ([path], _parameters, call) => {
  const result = call();
  const undo = () => {
    if (statOf(dirname(path)) !== undefined) realFs.mkdirSync(path, { recursive: true, mode: 0o700 });
  };
  changes.push({ folder: folderOf(path), undo });
  return result;
};

const first = ([path]: readonly string[]): string => path;
const second = ([, path]: readonly string[]): string => path;

const KINDS: Readonly<Record<string, Kind>> = {
  open: making(first),
  writeFile: making(first),
  mkdir: making(first),
  mkdtemp: ([prefix], _parameters, call) => {
    const path = call();
    if (statOf(dirname(prefix)) !== undefined) noteMadeNames(String(path));
    return path;
  },
  copyFile: making(second),
  link: making(second),
  rename: moving,
  unlink: removing,
  rm: removing,
  rmdir: emptying,
};

/** The uppermost missing one of a path and the folders above it; undefined if the path is there. */
function firstMissing(path: string): string | undefined {
  if (statOf(path) !== undefined) return undefined;
  const above = dirname(path);
  return above === path ? path : (firstMissing(above) ?? path);
}

const nextAside = (): string => join(aside, String(++count));

const statOf = (path: string) => realFs.lstatSync(path, { throwIfNoEntry: false });

const folderOf = (path: string): number => realFs.statSync(dirname(path)).ino;
