import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { configFailure } from '../../base/errors.ts';
import { FILE, readFiles } from '../sql/files/parquet-file.ts';
import { refuseOtherNames } from '../sql/files/second-name.ts';
import { createRemovedValues, removalCondition } from '../sql/people.ts';
import type { Removal, Rewritten } from '../target.ts';
import type { Change, DatasetOptions } from './dataset/dataset.ts';
import { eventFiles, type Manifest } from './dataset/manifest.ts';
import { type Existing, prepareRewrite, rewriteFolder, withExisting } from './rewrite.ts';

export interface PurgeOptions extends DatasetOptions {
  readonly removal: Removal;
}

/**
 * Rewrites every file that has rows to remove, one partition after the other, each atomically. Throws Failure.
 */
export function purgeParquet(options: PurgeOptions): Promise<Rewritten> {
  return rewriteFolder(options, {
    choose: (dataset) => pathsWithout(dataset, options),
    keep: (manifest) => `NOT ${leftOut(manifest, options)}`,
    check: checkReplaceable,
  });
}

/** Does the same without replacing files: each new file is written and dropped. No table is left out. */
export function checkPurgeParquet(options: DatasetOptions, removals: readonly Removal[]): Promise<string[]> {
  return withExisting(options, async (dataset) => {
    for (const removal of removals) await tryOne(dataset, { ...options, removal });
    await dataset.clear();
    return [];
  });
}

async function tryOne(dataset: Existing, options: PurgeOptions): Promise<void> {
  for (const path of await pathsWithout(dataset, options)) {
    const work = () => prepareRewrite(dataset, path, `NOT ${leftOut(dataset.manifest, options)}`);
    await checkReplaceable(dataset, await dataset.prepare(work, options.signal));
  }
}

const leftOut = ({ columns }: Manifest, { dir, removal }: PurgeOptions) =>
  removalCondition({ columns, place: dir }, removal.column);

/** The files of `events` with rows to leave out. */
async function pathsWithout(dataset: Existing, options: PurgeOptions): Promise<string[]> {
  const condition = leftOut(dataset.manifest, options);
  await createRemovedValues(dataset.engine, options.removal.values);
  const paths = new Map(eventFiles(dataset.manifest).map(({ path }) => [dataset.pathOf(path), path]));
  if (paths.size === 0) return [];
  const rows = await dataset.engine.rows(
    `SELECT DISTINCT ${FILE} AS path FROM ${readFiles([...paths.keys()], true)} WHERE ${condition}`,
  );
  return rows.flatMap((row) => paths.get(String(row.path)) ?? []).sort();
}

/** Throws Failure unless every old file can be replaced, and its contents go with it. */
async function checkReplaceable(dataset: Existing, { moves, removes = [] }: Change): Promise<void> {
  const there = new Set(dataset.manifest.files.map(({ path }) => path));
  const { dev } = await stat(dataset.places.temporary);
  for (const path of [...moves.map(({ to }) => to), ...removes]) {
    if (!there.has(path)) continue;
    const file = dataset.pathOf(path);
    await refuseOtherNames(file);
    if ((await stat(dirname(file))).dev !== dev) {
      throw configFailure(
        `${dirname(file)} lies on another disk than ${dataset.places.root}: a file there cannot be replaced in one step. Move the folder itself there. It was not changed.`,
      );
    }
    await access(dirname(file), constants.W_OK | constants.X_OK).catch((error) => {
      throw configFailure(`${dirname(file)} cannot be written to: give its owner the right to. Nothing was changed.`, {
        cause: error,
      });
    });
  }
}
