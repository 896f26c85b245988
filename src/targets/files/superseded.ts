import type { PlannedBatch } from '../../engine/rows/batch.ts';
import {
  countNumbered,
  findSupersededRows,
  RENUMBERED,
  type Reread,
  refuseSharedIds,
  renumber,
} from '../../engine/rows/superseded.ts';
import type { NewFile, ReadableFile } from './data-file.ts';
import { copiesOf, type FileTable } from './file-table.ts';
import { countByFile, readFiles, readFilesWithPaths, writeFile } from './parquet-file.ts';

/** The effect of a batch on the rows of stored files. */
export interface Superseded {
  /** Number of superseded rows by the local path of their file; files that keep all rows are not in it. */
  readonly counts: ReadonlyMap<string, number>;
  /** SQL condition of a row of a stored file that stays. */
  readonly isKept: string;
  /** The files of the batch; keys that rows which stay already have are numbered. */
  readonly files: readonly NewFile[];
  /** Number of rows of the batch by window whose key has a number. */
  readonly idRepeats: ReadonlyMap<number, number>;
}

/**
 * Finds the rows of stored files that a batch, written into `files`, reads again and so supersedes. Makes
 * temporary tables; called inside a transaction. Throws SharedIds.
 */
export async function findSuperseded(
  table: FileTable,
  stored: readonly ReadableFile[],
  batch: PlannedBatch,
  files: readonly NewFile[],
): Promise<Superseded> {
  const { engine } = table;
  const { columns, hasDuplicateOrMissingIds } = batch;
  if (files.length === 0) return { counts: new Map(), isKept: 'true', files, idRepeats: new Map() };
  const incoming = relationOf(files);
  await refuseSharedIds(engine, batch, incoming);
  if (stored.length === 0) {
    const idRepeats = hasDuplicateOrMissingIds ? await countNumbered(engine, incoming, columns) : new Map();
    return { counts: new Map(), isKept: 'true', files, idRepeats };
  }
  const paths = copiesOf(stored);
  const reread: Reread = { ...batch, stored: readFiles(paths), incoming };
  const rereads = await findSupersededRows(engine, reread);
  const isKept = rereads.conditions.map((condition) => `NOT coalesce(${condition}, false)`).join(' AND ') || 'true';
  const counts = new Map<string, number>();
  for (const condition of rereads.conditions) {
    const found = await countByFile(engine, readFilesWithPaths(paths), condition);
    for (const [path, rows] of found) counts.set(path, (counts.get(path) ?? 0) + rows);
  }
  const kept = `(SELECT _key FROM ${readFiles(paths)} WHERE ${isKept})`;
  const changed = await renumber(engine, reread, rereads, kept);
  const renumbered = changed === 0 ? files : await withNewKeys(table, files);
  const isNumbered = changed > 0 || hasDuplicateOrMissingIds;
  const idRepeats = isNumbered ? await countNumbered(engine, relationOf(renumbered), columns) : new Map();
  return { counts, isKept, files: renumbered, idRepeats };
}

async function withNewKeys(table: FileTable, files: readonly NewFile[]): Promise<NewFile[]> {
  const out: NewFile[] = [];
  for (const file of files) {
    const query = `SELECT incoming.* REPLACE (coalesce(renumbered.next, incoming._key) AS _key)
      FROM ${readFiles([file.local])} AS incoming LEFT JOIN ${RENUMBERED} AS renumbered ON renumbered.key = incoming._key`;
    const written = await writeFile(
      table.writer(),
      { table: 'events', query, rows: file.rows },
      table.newPath('numbered'),
    );
    out.push({ ...file, ...written });
  }
  return out;
}

const relationOf = (files: readonly NewFile[]): string => readFiles(files.map(({ local }) => local));
