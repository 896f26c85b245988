import { DETAIL_LOG_ID } from '../../../schema/groups.ts';
import type { StoredColumn } from '../columns/stored.ts';
import type { Engine } from '../engine/engine.ts';
import { HASH_KEY_LENGTH } from '../rows/keys.ts';
import { nameOf } from '../views.ts';
import { FILE, readFiles } from './parquet-file.ts';

/**
 * What tells that an old row and a row of the window are the same event: their ids, as text; of rows without an id the
 * hash that their keys start with. Two joins instead of one key, so that an id is compared as a column, and files and
 * row groups whose ids lie elsewhere are never read.
 */
interface Identity {
  readonly id: string;
  readonly hash: string;
}

function identityOf(columns: readonly StoredColumn[]): Identity {
  return { id: `CAST(${nameOf(columns, DETAIL_LOG_ID)} AS VARCHAR)`, hash: `left(_key, ${HASH_KEY_LENGTH})` };
}

/** The rows of a window, written to files, and how they are told from one another. */
export interface Incoming {
  readonly paths: readonly string[];
  /** Columns of these files. */
  readonly columns: readonly StoredColumn[];
  /** True when some have no id. */
  readonly hasRowsWithoutId: boolean;
}

/** Rows of each old file that the window replaces; files that keep all of theirs are left out. By path. */
export async function countReplaced(
  engine: Engine,
  old: readonly string[],
  oldColumns: readonly StoredColumn[],
  incoming: Incoming,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  if (old.length === 0 || incoming.paths.length === 0) return counts;
  for (const { where } of joinsOf(oldColumns, incoming)) {
    const rows = await engine.rows(
      `SELECT ${FILE} AS path, count(*) AS n FROM ${readFiles(old, true)} WHERE ${where} GROUP BY ${FILE}`,
    );
    for (const { path, n } of rows) counts.set(String(path), (counts.get(String(path)) ?? 0) + Number(n));
  }
  return counts;
}

/** The condition that keeps a row of an old file: no row of the window is the same event. */
export function isKept(oldColumns: readonly StoredColumn[], incoming: Incoming): string {
  return joinsOf(oldColumns, incoming)
    .map(({ where }) => `NOT coalesce(${where}, false)`)
    .join(' AND ');
}

/** Which old files lose a row to which files of the window, by path: only where a key moves can a reader see it twice. */
export async function movesOf(
  engine: Engine,
  old: readonly string[],
  oldColumns: readonly StoredColumn[],
  incoming: Incoming,
): Promise<{ readonly from: string; readonly to: string }[]> {
  const was = identityOf(oldColumns);
  const is = identityOf(incoming.columns);
  const found: { from: string; to: string }[] = [];
  const on = [{ left: was.id, right: is.id, also: '' }];
  if (incoming.hasRowsWithoutId) {
    on.push({ left: was.hash, right: is.hash, also: ` WHERE ${was.id} IS NULL` });
  }
  for (const { left, right, also } of on) {
    const rows = await engine.rows(
      `SELECT DISTINCT o.f AS f, n.f AS t FROM (SELECT ${left} AS k, ${FILE} AS f FROM ${readFiles(old, true)}${also}) o
      JOIN (SELECT DISTINCT ${right} AS k, ${FILE} AS f FROM ${readFiles(incoming.paths, true)}) n USING (k)`,
    );
    found.push(...rows.map((row) => ({ from: String(row.f), to: String(row.t) })));
  }
  return found;
}

function joinsOf(oldColumns: readonly StoredColumn[], incoming: Incoming): { readonly where: string }[] {
  const was = identityOf(oldColumns);
  const is = identityOf(incoming.columns);
  const files = readFiles(incoming.paths);
  const byId = { where: `${was.id} IN (SELECT ${is.id} FROM ${files} WHERE ${is.id} IS NOT NULL)` };
  if (!incoming.hasRowsWithoutId) return [byId];
  const without = `SELECT ${is.hash} FROM ${files} WHERE ${is.id} IS NULL`;
  return [byId, { where: `(${was.id} IS NULL AND ${was.hash} IN (${without}))` }];
}
