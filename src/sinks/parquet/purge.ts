import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { configFailure, defect } from '../../base/errors.ts';
import { FILE, readFiles } from '../sql/files/parquet-file.ts';
import { refuseOtherNames } from '../sql/files/second-name.ts';
import { findPeople, type Lookup } from '../sql/people.ts';
import type { PeopleFound, PeopleQuery, Purged, PurgeTrial } from '../target.ts';
import type { Change, DatasetOptions } from './dataset/dataset.ts';
import { eventFiles } from './dataset/manifest.ts';
import { eventRowsOf } from './people.ts';
import { type Existing, prepareRewrite, rewriteFolder, withExisting } from './rewrite.ts';

/** Looks the people up in the locked folder and rewrites every file that has rows of theirs. Throws Failure. */
export async function purgeParquet(
  options: DatasetOptions,
  query: PeopleQuery,
  onFound: (found: PeopleFound) => Promise<void> = async () => {},
): Promise<Purged> {
  let lookup: Lookup | undefined;
  const rewritten = await rewriteFolder(options, {
    async choose(dataset) {
      lookup = await findPeople(eventRowsOf(dataset, options.dir), query);
      await onFound(lookup.found);
      return pathsWithout(dataset, lookup);
    },
    keep: () => `NOT ${lookup?.condition}`,
    check: checkReplaceable,
  });
  if (lookup === undefined) throw defect('A purge looked for nobody.');
  return { ...rewritten, found: lookup.found, unreached: [] };
}

/** Does the same without replacing files: each new file is written and dropped. No table is left out. */
export function checkPurgeParquet(options: DatasetOptions, query: PeopleQuery): Promise<PurgeTrial> {
  return withExisting(options, async (dataset) => {
    const lookup = await findPeople(eventRowsOf(dataset, options.dir), query);
    for (const path of await pathsWithout(dataset, lookup)) {
      const work = () => prepareRewrite(dataset, path, `NOT ${lookup.condition}`);
      await checkReplaceable(dataset, await dataset.prepare(work, options.signal));
    }
    await dataset.clear();
    return { found: lookup.found, foreignTables: [] };
  });
}

/** The files of `events` with rows to leave out. */
async function pathsWithout(dataset: Existing, { condition }: Lookup): Promise<string[]> {
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
