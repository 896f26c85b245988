import { CORRECTION_DATETIME, DETAIL_LOG_ID, LOG_ID, SERVER_DATETIME } from '../../schema/groups.ts';
import type { StoredColumn } from '../../table/columns.ts';
import type { Overlap } from '../../table/receipts.ts';
import type { Zone } from '../../types/zone.ts';
import { baseId, findSupersededRows, RENUMBERED, type Reread, renumber } from '../sql/rows/superseded.ts';
import type { IncomingFile } from './incoming-files.ts';
import type { FileTable } from './open.ts';
import { FILE, readFiles, writeFile } from './parquet-file.ts';

/** The rows of a batch, in files, and what its days have in common with those of stored windows. */
export interface Incoming {
  readonly files: readonly IncomingFile[];
  readonly columns: readonly StoredColumn[];
  /** True if some rows have no id. */
  readonly hasRowsWithoutId: boolean;
  readonly overlap: Overlap;
  readonly zone: Zone | undefined;
}

/** What a batch does to the rows of stored files. */
export interface Superseded {
  /** Superseded rows by the local path of their file; files that keep all of theirs are left out. */
  readonly counts: ReadonlyMap<string, number>;
  /** The condition of a row of a stored file that stays. */
  readonly isKept: string;
  /** The files of the batch, with numbers in the keys that rows which stay have already. */
  readonly files: readonly IncomingFile[];
  /** Rows of the batch whose key has a number, by window. */
  readonly idRepeats: ReadonlyMap<number, number>;
}

const KEY_SOURCES: ReadonlySet<string> = new Set([DETAIL_LOG_ID, LOG_ID, SERVER_DATETIME, CORRECTION_DATETIME]);

/** The columns that tell rows, events and their times: all that is read of files that do not change. */
export function keyColumns(columns: readonly StoredColumn[]): Set<string> {
  const ids = columns.filter((column) => column.occurrence === 1 && KEY_SOURCES.has(column.source));
  return new Set(['_key', '_dfinery_window', ...ids.map(({ name }) => name)]);
}

/** Rows of several windows that share an id: the later one would supersede or renumber rows of the earlier. */
export async function hasSharedKeys(table: FileTable, files: readonly IncomingFile[]): Promise<boolean> {
  if (files.length < 2) return false;
  const from = readFiles(files.map(({ local }) => local));
  const { repeated } = await table.engine.row(`SELECT count(*) - count(DISTINCT _key) AS repeated FROM ${from}`);
  return Number(repeated) > 0;
}

/**
 * Finds the rows of stored files that a batch supersedes (S13). Makes temporary tables; inside a transaction. `stored`: local
 * paths.
 */
export async function findSuperseded(
  table: FileTable,
  stored: readonly string[],
  { files, columns, hasRowsWithoutId, overlap, zone }: Incoming,
): Promise<Superseded> {
  const { engine } = table;
  const nothing = { counts: new Map<string, number>(), isKept: 'true', files };
  if (stored.length === 0 || files.length === 0)
    return { ...nothing, idRepeats: await numbered(table, files, columns) };
  const incoming = readFiles(files.map(({ local }) => local));
  const reread: Reread = { stored: readFiles(stored), incoming, columns, hasRowsWithoutId, overlap, zone };
  const found = await findSupersededRows(engine, reread);
  const isKept = found.conditions.map((condition) => `NOT coalesce(${condition}, false)`).join(' AND ') || 'true';
  const counts = new Map<string, number>();
  for (const condition of found.conditions) {
    const rows = await engine.rows(
      `SELECT ${FILE} AS path, count(*) AS n FROM ${readFiles(stored, true)} WHERE ${condition} GROUP BY ${FILE}`,
    );
    for (const { path, n } of rows) counts.set(String(path), (counts.get(String(path)) ?? 0) + Number(n));
  }
  const kept = `(SELECT _key FROM ${readFiles(stored)} WHERE ${isKept})`;
  const changed = await renumber(engine, reread, found, kept);
  const renumbered = changed === 0 ? files : await withNewKeys(table, files);
  return { counts, isKept, files: renumbered, idRepeats: await numbered(table, renumbered, columns) };
}

/** The files of a batch with the keys of RENUMBERED. */
async function withNewKeys(table: FileTable, files: readonly IncomingFile[]): Promise<IncomingFile[]> {
  const out: IncomingFile[] = [];
  for (const file of files) {
    const local = table.newPath('numbered');
    const query = `SELECT w.* REPLACE (coalesce(r.next, w._key) AS _key) FROM ${readFiles([file.local])} w
      LEFT JOIN ${RENUMBERED} r ON r.key = w._key`;
    const rows = [...file.windows.values()].reduce((sum, n) => sum + n, 0);
    await writeFile(table, { query, rows }, local);
    out.push({ ...file, local });
  }
  return out;
}

/** Rows that have a number in their key, because another row has their id, by window. */
async function numbered(
  { engine }: FileTable,
  files: readonly IncomingFile[],
  columns: readonly StoredColumn[],
): Promise<Map<number, number>> {
  if (files.length === 0) return new Map();
  const rows = await engine.rows(
    `SELECT _dfinery_window AS w, count(*) AS n FROM ${readFiles(files.map(({ local }) => local))}
    WHERE _key <> ${baseId(columns)} GROUP BY 1`,
  );
  return new Map(rows.map(({ w, n }) => [Number(w), Number(n)]));
}
