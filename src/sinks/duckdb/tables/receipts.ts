import type { Day } from '../../../base/days.ts';
import type { Receipt } from '../../../extract/window.ts';
import { coveredDays, type StoredWindow } from '../../../table/receipts.ts';
import type { Commit } from '../../sink.ts';
import type { Engine } from '../../sql/engine/engine.ts';

export const CREATE_WINDOWS = `CREATE TABLE _dfinery_windows (
  number BIGINT, v INTEGER, id VARCHAR, from_date DATE, to_date DATE, covers_from DATE, covers_to DATE, rows BIGINT,
  rows_live BIGINT, bytes BIGINT, sha256 VARCHAR, exports INTEGER, split VARCHAR, suppressed BIGINT, invalid_utf8 BIGINT,
  verified_at TIMESTAMPTZ, header VARCHAR[], columns JSON, rescued JSON, id_repeats BIGINT)`;

/** Adds what receipts of older versions lack. */
export async function upgradeWindows(engine: Engine): Promise<void> {
  const { n } = await engine.row(
    `SELECT count(*) AS n FROM duckdb_columns() WHERE database_name = current_database() AND schema_name = 'main'
    AND table_name = '_dfinery_windows' AND column_name = 'id_repeats'`,
  );
  if (Number(n) === 0) await engine.run('ALTER TABLE _dfinery_windows ADD COLUMN id_repeats BIGINT');
}

/** Windows that still have rows of their own. */
export async function readLiveWindows(engine: Engine): Promise<StoredWindow[]> {
  const rows = await engine.rows(
    `SELECT number, CAST(from_date AS VARCHAR) AS first, CAST(to_date AS VARCHAR) AS last FROM _dfinery_windows
    WHERE rows_live > 0`,
  );
  return rows.map((row) => ({ number: Number(row.number), from: String(row.first), to: String(row.last) }));
}

/** The number of the latest window; 0 when there is none. */
export async function lastNumber(engine: Engine): Promise<number> {
  return Number((await engine.row('SELECT coalesce(max(number), 0) AS n FROM _dfinery_windows')).n);
}

/** Rows in `events` by number of their window. */
export async function countRows(engine: Engine): Promise<Map<number, number>> {
  const rows = await engine.rows('SELECT _dfinery_window AS w, count(*) AS n FROM events GROUP BY 1');
  return new Map(rows.map((row) => [Number(row.w), Number(row.n)]));
}

/** Writes a receipt beside its rows, all of them still its own. */
export async function writeReceipt(
  engine: Engine,
  number: number,
  receipt: Receipt,
  { rescued, idRepeats }: Pick<Commit, 'rescued' | 'idRepeats'>,
): Promise<void> {
  const r = receipt;
  const values = [
    ...[number, r.v, r.id, r.from, r.to, r.covers_from, r.covers_to, r.rows, r.rows, r.bytes, r.sha256, r.exports],
    ...[r.split, r.suppressed, r.invalid_utf8, r.verified_at],
    ...[JSON.stringify(r.header), JSON.stringify(r.columns), jsonObject(rescued), idRepeats],
  ];
  const places = values.map((_, i) => (i === HEADER ? `from_json($${i + 1}, '["VARCHAR"]')` : `$${i + 1}`));
  await engine.run(`INSERT INTO _dfinery_windows VALUES (${places.join(', ')})`, values);
}

const HEADER = 16;

/** Days that committed receipts cover. */
export async function readCoveredDays(engine: Engine): Promise<Set<Day>> {
  const rows = await engine.rows(
    `SELECT DISTINCT CAST(covers_from AS VARCHAR) AS first, CAST(covers_to AS VARCHAR) AS last FROM _dfinery_windows
    WHERE covers_to IS NOT NULL`,
  );
  return coveredDays(rows.map((row) => ({ covers_from: String(row.first), covers_to: String(row.last) })));
}

/** Rows of the latest receipt that asked for exactly these days, for all that were ever asked for. */
export async function rowsOfDays(engine: Engine): Promise<(from: Day, to: Day) => number | undefined> {
  const rows = await engine.rows(
    `SELECT from_date || '..' || to_date AS days, arg_max(rows, number) AS n FROM _dfinery_windows GROUP BY days`,
  );
  const counts = new Map(rows.map((row) => [String(row.days), Number(row.n)]));
  return (from, to) => counts.get(`${from}..${to}`);
}

/** A JSON object whose keys may be anything. */
function jsonObject(counts: ReadonlyMap<string, number>): string | null {
  if (counts.size === 0) return null;
  return `{${[...counts].map(([key, count]) => `${JSON.stringify(key)}:${count}`).join(',')}}`;
}
