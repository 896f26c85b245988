import { lstat, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { configFailure } from '../../base/errors.ts';
import { proved } from '../../config/validate.ts';
import { replaceFile, syncFolder } from '../../fs/atomic-file.ts';
import { isLivePath, type Places } from './dataset/layout.ts';
import { checkManifest, type Manifest, parseJson, readIfThere, writeManifest } from './dataset/manifest.ts';
import { moveInto } from './durable.ts';

/** A file that waits in the temporary folder, and the live name it is to take. Paths from the folder, with `/`. */
export interface Move {
  readonly from: string;
  readonly to: string;
}

/**
 * A change that is decided: every new file is whole and on the disk, and nothing live was touched. From the moment it is
 * written, the change happens, by this run or by the next. What a reader that globs finds when the writer dies:
 *
 * - before the journal: the old files, all of them. The next run drops what waits.
 * - between moves of files with other columns (S30): the same rows, some under the old columns. Milliseconds, since all
 *   were written before the first move.
 * - between moves of files that lose rows to other dates: rows that are nowhere for now, none twice. Files that gain
 *   rows come after all of those; a file that does both is moved twice, first without what it loses.
 * - between moves of files that gain rows: whole old and whole new partitions; what moved is in one of them or in none.
 * - before the manifest, or before the journal is gone: the new files, all of them.
 *
 * In each of the last four the next writer does every step again that was not done, and the state is the new one.
 */
export interface Journal {
  readonly v: 1;
  /** In this order. */
  readonly moves: readonly Move[];
  /** Live files that go, after the moves. */
  readonly removes: readonly string[];
  readonly manifest: Manifest;
}

/** Writes the journal of a change and executes it. Once it has begun, only a disk error can stop it. */
export async function carryOut(places: Places, journal: Journal): Promise<void> {
  // What it names outlives a power cut before it does itself.
  for (const folder of waitingFolders(places, journal.moves)) await syncFolder(folder);
  await replaceFile(places.journal, JSON.stringify(journal));
  await finish(places, journal);
}

/** The folders of the files that wait, up to the temporary one: DuckDB has made them, and has synced none. */
function waitingFolders({ root, temporary }: Places, moves: readonly Move[]): Set<string> {
  const folders = new Set<string>();
  for (const { from } of moves) {
    let folder = dirname(join(root, from));
    for (; folder.length > temporary.length && !folders.has(folder); folder = dirname(folder)) folders.add(folder);
    folders.add(temporary);
  }
  return folders;
}

/** Executes the journal of a dead run. True if there was one. Throws Failure. */
export async function recover(places: Places): Promise<boolean> {
  const text = await readIfThere(places.journal);
  if (text === undefined) return false;
  const journal = parseJson(text, places.journal);
  checkJournal(journal, places);
  await refuseLinks(places, journal);
  await finish(places, journal);
  return true;
}

/** Throws unless every path of a journal lies where its own step of a change is allowed to be. */
function checkJournal(value: unknown, places: Places): asserts value is Journal {
  const { v, moves, removes, manifest } = proved<Partial<Record<keyof Journal, unknown>>>(value ?? {});
  checkManifest(manifest, places.journal);
  const isSound =
    v === 1 &&
    Array.isArray(moves) &&
    moves.every((move: Partial<Move> | null) => isWaiting(places, move?.from) && isLivePath(move?.to)) &&
    Array.isArray(removes) &&
    removes.every(isLivePath);
  if (!isSound) throw damagedJournal(places, 'it names a file that no change of ours touches');
}

/** A file below the temporary folder, named without any way out of it. */
function isWaiting({ root, temporary }: Places, path: unknown): boolean {
  if (typeof path !== 'string') return false;
  const [own, ...rest] = [relative(root, temporary).split(sep).join('/'), ...path.split('/')];
  return path.startsWith(`${own}/`) && rest.every((part) => part !== '' && part !== '.' && part !== '..');
}

/** A link among the folders of ours would lead a change out of them. */
async function refuseLinks(places: Places, { moves, removes }: Journal): Promise<void> {
  const folders = new Set<string>();
  for (const path of [...moves.flatMap(({ from, to }) => [from, to]), ...removes]) {
    const parts = path.split('/');
    for (let length = 1; length <= parts.length; length++) folders.add(parts.slice(0, length).join('/'));
  }
  for (const path of folders) {
    const found = await lstat(join(places.root, path)).catch(() => undefined);
    if (found?.isSymbolicLink()) throw damagedJournal(places, `${join(places.root, path)} is a link`);
  }
}

const damagedJournal = ({ journal }: Places, why: string) =>
  configFailure(`${journal} cannot be used: ${why}. Nothing was changed; remove it, and load the days again.`, {
    where: { file: journal },
  });

/** Each step may have been done before; each is on the disk before the next, so that their order outlives a power cut. */
async function finish(places: Places, { moves, removes, manifest }: Journal): Promise<void> {
  for (const { from, to } of moves) {
    const target = join(places.root, to);
    await moveInto(join(places.root, from), target);
    await syncFolder(dirname(target));
    await syncFolder(dirname(dirname(target)));
  }
  for (const path of removes) {
    const target = join(places.root, path);
    await rm(target, { force: true });
    await syncFolder(dirname(target));
  }
  await checkMoved(places, moves, manifest);
  await writeManifest(places.manifest, manifest);
  await rm(places.journal, { force: true });
  await syncFolder(places.own);
}

/** A manifest may only name files that are there: a file that neither waits nor arrived was taken by somebody else. */
async function checkMoved(places: Places, moves: readonly Move[], manifest: Manifest): Promise<void> {
  const targets = new Set(moves.map(({ to }) => to));
  for (const { path, bytes } of manifest.files.filter((file) => targets.has(file.path))) {
    const found = await stat(join(places.root, path)).catch(() => undefined);
    if (found?.size === bytes) continue;
    throw configFailure(
      `${join(places.root, path)} is not the file that a change left waiting in ${places.temporary}: somebody else took ` +
        'it away. Load the days again into an empty folder.',
      { where: { file: path } },
    );
  }
}
