import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Typed } from '../duckdb/alter.ts';
import { type Metadata, type Sized, writeFile, writeFolder } from './copy.ts';
import type { Dataset } from './dataset.ts';
import { LIVE_ENDING, NO_DATE, PART_ENDING } from './layout.ts';
import { BUCKET, bucketSql } from './order.ts';
import { splice } from './splice.ts';

/** Rows to write, their columns, and the event names among them where they are known. */
export interface RowsToWrite extends Sized {
  readonly columns: readonly Typed[];
  readonly names: readonly string[] | undefined;
}

const DATE = 'event_date';

/** Writes rows into one file, event names together where there are enough of them for a filter to skip some. */
export async function writeRows(
  dataset: Dataset,
  { query, columns, rows, names }: RowsToWrite,
  path: string,
  metadata: Metadata,
): Promise<void> {
  const bucket = dataset.isFrugal ? undefined : bucketSql(columns, rows, names);
  if (bucket === undefined) return writeFile(dataset, { query, rows }, path, metadata);
  const folder = `${path}.parts`;
  const bucketed = { query: `SELECT *, ${bucket} AS ${BUCKET} FROM (${query})`, rows };
  await writeFolder(dataset, bucketed, folder, metadata, [BUCKET]);
  await splice(await partsIn(folder), path);
  await rm(folder, { recursive: true });
}

/** Writes rows that have an `event_date` into one file for each date; gives their paths by date, `rows` being those a date. */
export async function writeDates(
  dataset: Dataset,
  { query, columns, rows, names }: RowsToWrite,
  folder: string,
  metadata: Metadata,
): Promise<Map<string, string>> {
  const bucket = dataset.isFrugal ? undefined : bucketSql(columns, rows, names);
  const all = bucket === undefined ? query : `SELECT *, ${bucket} AS ${BUCKET} FROM (${query})`;
  await writeFolder(dataset, { query: all, rows }, folder, metadata, bucket === undefined ? [DATE] : [DATE, BUCKET]);
  const paths = new Map<string, string>();
  for (const name of (await readdir(folder)).sort()) {
    const date = name.slice(DATE.length + 1) || NO_DATE;
    paths.set(date, await asOne(join(folder, name)));
  }
  return paths;
}

/** The only file in a folder, or one made of all there are. */
async function asOne(folder: string): Promise<string> {
  const parts = await partsIn(folder);
  if (parts.length === 1) return parts[0];
  const path = `${folder}.${PART_ENDING}`;
  await splice(parts, path);
  await rm(folder, { recursive: true });
  return path;
}

/** In the order of buckets, which are numbers of one width. */
async function partsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return files.filter((file) => !file.endsWith(LIVE_ENDING)).sort();
}
