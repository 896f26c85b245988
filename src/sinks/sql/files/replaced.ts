import type { StoredColumn } from '../../../table/columns.ts';
import type { Overlap } from '../../../table/receipts.ts';
import type { Zone } from '../../../types/zone.ts';
import type { Engine } from '../engine/engine.ts';
import {
  baseId,
  countNumbered,
  findReadAgain,
  RENUMBERED,
  type ReadAgain,
  type Rereading,
  renumber,
} from '../rows/read-again.ts';
import { FILE, type Metadata, readFiles, UNFINISHED, type Writer, writeFile } from './parquet-file.ts';
import type { WindowFile } from './window-files.ts';

/** The rows of a window, written to files, and what its days have in common with those of older windows. */
export interface Incoming {
  readonly files: readonly WindowFile[];
  /** Columns of these files. */
  readonly columns: readonly StoredColumn[];
  /** True when some rows have no id. */
  readonly hasRowsWithoutId: boolean;
  readonly overlap: Overlap;
  readonly zone: Zone | undefined;
}

/** What a window replaces in older files. */
export interface Replaced {
  /** Rows that are read again, by the path of their file; files that keep all of theirs are left out. */
  readonly counts: ReadonlyMap<string, number>;
  /** The condition of a row of an older file that stays. */
  readonly isKept: string;
  /** The window with numbers in the keys that rows which stay have already. */
  readonly files: readonly WindowFile[];
  /** Rows of the window whose key has a number. */
  readonly idRepeats: number;
  readonly isReadAgain: string;
}

/** Finds the rows of older files that a window reads again (S13). Makes temporary tables; inside a transaction. */
export async function findReplaced(
  into: Writer,
  old: readonly string[],
  incoming: Incoming,
  metadata: Metadata,
): Promise<Replaced> {
  const { files, columns, hasRowsWithoutId, overlap, zone } = incoming;
  if (old.length === 0 || files.length === 0) return { ...(await untouched(into, incoming)), files };
  const { engine } = into;
  const rows = readFiles(files.map(({ path }) => path));
  const rereading: Rereading = { stored: readFiles(old), incoming: rows, columns, hasRowsWithoutId, overlap, zone };
  const found = await findReadAgain(engine, rereading);
  const isKept = found.conditions.map((condition) => `NOT coalesce(${condition}, false)`).join(' AND ') || 'true';
  const counts = await countsOf(engine, old, found);
  const stays = `(SELECT _key FROM ${readFiles(old)} WHERE ${isKept})`;
  const changed = await renumber(engine, rereading, found, stays);
  const renumbered = changed === 0 ? files : await withNewKeys(into, files, metadata);
  const after = readFiles(renumbered.map(({ path }) => path));
  const idRepeats = await countNumbered(engine, after, columns);
  const isReadAgain = found.conditions.map((condition) => `coalesce(${condition}, false)`).join(' OR ') || 'false';
  return { counts, isKept, files: renumbered, idRepeats, isReadAgain };
}

async function untouched({ engine }: Writer, { files, columns }: Incoming): Promise<Omit<Replaced, 'files'>> {
  const rows = readFiles(files.map(({ path }) => path));
  const idRepeats = files.length === 0 ? 0 : await countNumbered(engine, rows, columns);
  return { counts: new Map(), isKept: 'true', isReadAgain: 'false', idRepeats };
}

async function countsOf(engine: Engine, old: readonly string[], found: ReadAgain): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const condition of found.conditions) {
    const rows = await engine.rows(
      `SELECT ${FILE} AS path, count(*) AS n FROM ${readFiles(old, true)} WHERE ${condition} GROUP BY ${FILE}`,
    );
    for (const { path, n } of rows) counts.set(String(path), (counts.get(String(path)) ?? 0) + Number(n));
  }
  return counts;
}

/** The files of a window with the keys of RENUMBERED. */
async function withNewKeys(into: Writer, files: readonly WindowFile[], metadata: Metadata): Promise<WindowFile[]> {
  const out: WindowFile[] = [];
  for (const { date, path, rows } of files) {
    const next = path.replace(new RegExp(`\\.${UNFINISHED}$`), `.numbered.${UNFINISHED}`);
    const query = `SELECT w.* REPLACE (coalesce(r.next, w._key) AS _key) FROM ${readFiles([path])} w
      LEFT JOIN ${RENUMBERED} r ON r.key = w._key`;
    await writeFile(into, { query, rows }, next, metadata);
    out.push({ date, path: next, rows });
  }
  return out;
}

/** Which old files lose a row to which files of the window, by path: only where a key moves can a reader see it twice. */
export async function movesOf(
  engine: Engine,
  old: readonly string[],
  { files, isReadAgain }: Replaced,
  columns: readonly StoredColumn[],
): Promise<{ readonly from: string; readonly to: string }[]> {
  const base = baseId(columns);
  const rows = await engine.rows(
    `SELECT DISTINCT o.f AS f, n.f AS t
    FROM (SELECT ${base} AS b, ${FILE} AS f FROM ${readFiles(old, true)} WHERE ${isReadAgain}) o
    JOIN (SELECT DISTINCT ${base} AS b, ${FILE} AS f FROM ${readFiles(
      files.map((file) => file.path),
      true,
    )}) n USING (b)`,
  );
  return rows.map((row) => ({ from: String(row.f), to: String(row.t) }));
}
