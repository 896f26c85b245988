import { rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { configFailure } from '../../base/errors.ts';
import { proved } from '../../config/validate.ts';
import type { Places } from './dataset/layout.ts';
import { checkManifest, type Manifest, parseJson, readIfThere, writeManifest } from './dataset/manifest.ts';
import { moveInto, replaceText, syncFolder } from './durable.ts';

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

/** Decides a change and carries it out. Once it has begun, nothing but the disk can stop it. */
export async function carryOut(places: Places, journal: Journal): Promise<void> {
  await replaceText(places.journal, JSON.stringify(journal));
  await finish(places, journal);
}

/** Carries out what a dead run had decided. True when there was something. Throws Failure when it cannot. */
export async function recover(places: Places): Promise<boolean> {
  const text = await readIfThere(places.journal);
  if (text === undefined) return false;
  const journal = proved<Journal>(parseJson(text, places.journal));
  checkManifest(journal.manifest, places.journal);
  await finish(places, journal);
  return true;
}

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
