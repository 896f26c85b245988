import { CORRECTION_DATETIME, DETAIL_LOG_ID, SERVER_DATETIME } from '../../../schema/groups.ts';
import type { StoredColumn } from '../../../table/columns.ts';
import type { Overlap } from '../../../table/receipts.ts';
import { literal } from '../../../types/sql.ts';
import type { Zone } from '../../../types/zone.ts';
import { sqlWall } from '../../../types/zone-sql.ts';
import type { Engine } from '../engine/engine.ts';
import { nameOf } from '../views.ts';
import { HASH_KEY_LENGTH, HASH_PREFIX, sqlNumbersIn } from './keys.ts';

// Which stored rows a window supersedes (S13), whatever their ids mean. A row is identified by its base id: the id, or
// the hash that the key of a row without an id starts with. A stored row with a base id of the window is the same row
//
// - when all days that its own window asked for are asked for again, or
// - when a row of the window with that base id has the same server time, or
// - when its window shares a day with this one and a row with that base id has the same date, by the clock of `timezone`.
//
// Any other row with that base id is another row: both stay, and the new one gets a number of its own.

/** A window that may re-read stored rows. Both sources have the columns of `events`. */
export interface Reread {
  /** What follows FROM for the rows of older windows. */
  readonly stored: string;
  /** The same for the rows of the window. */
  readonly incoming: string;
  readonly columns: readonly StoredColumn[];
  readonly hasRowsWithoutId: boolean;
  readonly overlap: Overlap;
  /** The zone of the datetimes, where they are instants: their date is that of its clock, as in the export. */
  readonly zone: Zone | undefined;
}

/** Stored rows with a base id of the window, but those of windows that are re-read whole. */
const CANDIDATES = '_dfinery_candidates';
/** Rows of the window that have a base id of one of these. */
const ARRIVED = '_dfinery_arrived';
/** Keys of candidates that are superseded. */
const SUPERSEDED = '_dfinery_superseded';
/** Base ids of which several rows stay. */
const BASES = '_dfinery_bases';
/** Keys of the window that must change: `key`, `next`. */
export const RENUMBERED = '_dfinery_renumbered';

/** What `findSupersededRows` found. */
export interface SupersededRows {
  /** Conditions of a stored row, each with rows of its own: those that meet one are superseded. */
  readonly conditions: readonly string[];
  /** Stored rows that share a base id with a row of the window and are not of a window that is re-read whole. */
  readonly candidates: number;
}

/** Looks for the rows that are superseded. Makes temporary tables; inside a transaction. */
export async function findSupersededRows(engine: Engine, reread: Reread): Promise<SupersededRows> {
  const { stored, columns, overlap } = reread;
  const { base, server } = rowSql(columns);
  const date = dateSql(reread);
  const within = `_dfinery_window IN (${overlap.within.join(', ')})`;
  const hasWhole = overlap.within.length > 0;
  const same = sameBase(reread);
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE ${CANDIDATES} (key VARCHAR, base VARCHAR, server VARCHAR, date VARCHAR, number BIGINT)`,
  );
  let candidates = 0;
  for (const condition of same) {
    candidates += await engine.run(
      `INSERT INTO ${CANDIDATES} SELECT _key, ${base}, ${server}, ${date}, _dfinery_window FROM ${stored}
      WHERE ${hasWhole ? `NOT ${within} AND ` : ''}${condition}`,
    );
  }
  const conditions = hasWhole ? same.map((condition) => `(${within} AND ${condition})`) : [];
  if (candidates === 0) return { conditions, candidates };
  await compare(engine, reread);
  return { conditions: [...conditions, `_key IN (SELECT key FROM ${SUPERSEDED})`], candidates };
}

async function compare(engine: Engine, reread: Reread): Promise<void> {
  const { incoming, columns, overlap } = reread;
  const { base, server } = rowSql(columns);
  const date = dateSql(reread);
  const isSharing = overlap.sharing.length === 0 ? 'false' : `c.number IN (${overlap.sharing.join(', ')})`;
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE ${ARRIVED} AS SELECT ${base} AS base, ${server} AS server, ${date} AS date
    FROM ${incoming} WHERE ${base} IN (SELECT base FROM ${CANDIDATES})`,
  );
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE ${SUPERSEDED} AS
    SELECT c.key FROM ${CANDIDATES} c SEMI JOIN ${ARRIVED} a ON a.base = c.base AND a.server = c.server
    UNION SELECT c.key FROM ${CANDIDATES} c SEMI JOIN ${ARRIVED} a ON a.base = c.base AND a.date = c.date WHERE ${isSharing}
    UNION SELECT c.key FROM ${CANDIDATES} c WHERE c.server IS NULL AND starts_with(c.base, ${literal(HASH_PREFIX)})`,
  );
}

/** Two conditions instead of one on the base id, so that an id is compared as a column. */
function sameBase({ incoming, columns, hasRowsWithoutId }: Reread): string[] {
  const { id, hash } = rowSql(columns);
  const byId = `${id} IN (SELECT ${id} FROM ${incoming} WHERE ${id} IS NOT NULL)`;
  if (!hasRowsWithoutId) return [byId];
  return [byId, `${id} IS NULL AND ${hash} IN (SELECT ${hash} FROM ${incoming} WHERE ${id} IS NULL)`];
}

/** What tells rows apart, as SQL: texts, since a column may be of another type in older files. */
function rowSql(columns: readonly StoredColumn[]) {
  const id = asText(nameOf(columns, DETAIL_LOG_ID));
  const hash = `left(_key, ${HASH_KEY_LENGTH})`;
  return { id, hash, base: `coalesce(${id}, ${hash})`, server: asText(nameOf(columns, SERVER_DATETIME)) };
}

const asText = (expr: string): string => `CAST(${expr} AS VARCHAR)`;

/** The times whose dates are compared: for others the nearest offset does, since both sides have the same. */
const COMPARED_TIMES = ['1970-01-01T00:00:00', '2100-01-01T00:00:00'] as const;

/** The date of a row as SQL, a text: as the export has it, not in UTC nor in the zone of this machine. */
export function dateSql({ columns, zone }: Pick<Reread, 'columns' | 'zone'>): string {
  const wall = (source: string) => {
    const name = nameOf(columns, source);
    if (zone === undefined) return asText(name);
    const local = asText(sqlWall(`TRY_CAST(${name} AS TIMESTAMPTZ)`, zone.within(...COMPARED_TIMES)));
    return `CASE WHEN typeof(${name}) = 'TIMESTAMP WITH TIME ZONE' THEN ${local} ELSE ${asText(name)} END`;
  };
  return `coalesce(left(coalesce(${wall(SERVER_DATETIME)}, ${wall(CORRECTION_DATETIME)}), 10), '')`;
}

/**
 * Gives rows of the window whose key a row that stays has the next free number (S12), in the table RENUMBERED. `kept`:
 * what follows FROM for the stored rows that stay. Gives how many keys change.
 */
export async function renumber(
  engine: Engine,
  reread: Reread,
  { candidates }: SupersededRows,
  kept: string,
): Promise<number> {
  const { incoming, columns } = reread;
  const { base } = rowSql(columns);
  const withNumber = `(SELECT _key, ${base} AS base FROM ${incoming} WHERE contains(_key, '#'))`;
  const hasNumbers = (await countOf(engine, withNumber)) > 0;
  const bases = [
    ...(candidates > 0 ? [`SELECT base FROM ${CANDIDATES} WHERE key NOT IN (SELECT key FROM ${SUPERSEDED})`] : []),
    ...(hasNumbers
      ? [`SELECT base FROM ${withNumber} WHERE _key IN (SELECT _key FROM ${kept} WHERE contains(_key, '#'))`]
      : []),
  ];
  if (bases.length === 0) return 0;
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${BASES} AS ${bases.join(' UNION ')}`);
  if ((await countOf(engine, BASES)) === 0) return 0;
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${RENUMBERED} AS ${renumbered(incoming, base, kept)}`);
  return countOf(engine, RENUMBERED);
}

/** New keys of the rows with a base id of BASES, in the order they have; numbers of all other rows are skipped. */
function renumbered(incoming: string, base: string, kept: string): string {
  const isMine = `base IN (SELECT base FROM ${BASES})`;
  return `WITH arrived AS (SELECT _key AS key, ${base} AS base FROM ${incoming}),
    mine AS (
      SELECT key, base, row_number() OVER (PARTITION BY base ORDER BY length(key), key) AS n FROM arrived WHERE ${isMine}),
    others AS (SELECT _key AS key FROM ${kept} UNION ALL SELECT key FROM arrived WHERE NOT ${isMine}),
    taken AS (
      SELECT key AS base, 1 AS c FROM others WHERE key IN (SELECT base FROM ${BASES})
      UNION SELECT base, c FROM (${sqlNumbersIn('others')}) WHERE c > 1 AND ${isMine}),
    wanted AS (SELECT base, max(n) AS most FROM mine GROUP BY base),
    clash AS (SELECT base, count(*) AS many FROM taken GROUP BY base),
    candidate AS (
      SELECT base, unnest(range(1, most + coalesce(many, 0) + 1)) AS c FROM wanted LEFT JOIN clash USING (base)),
    free AS (
      SELECT base, c, row_number() OVER (PARTITION BY base ORDER BY c) AS n
      FROM candidate ANTI JOIN taken USING (base, c))
    SELECT key, CASE WHEN c = 1 THEN base ELSE base || '#' || c END AS next
    FROM mine JOIN free USING (base, n) WHERE key <> next`;
}

/** The base id of a row of `events`, as SQL. */
export const baseId = (columns: readonly StoredColumn[]): string => rowSql(columns).base;

/** Rows that have a number in their key, because another row has their id. */
export function countNumbered(engine: Engine, from: string, columns: readonly StoredColumn[]): Promise<number> {
  return countOf(engine, `(SELECT 1 FROM ${from} WHERE _key <> ${rowSql(columns).base})`);
}

const countOf = async (engine: Engine, from: string): Promise<number> =>
  Number((await engine.row(`SELECT count(*) AS n FROM ${from}`)).n);
