import { UserError } from '../../base/errors.ts';
import { CORRECTION_DATETIME, DETAIL_LOG_ID, LOG_ID, SERVER_DATETIME } from '../../cells/columns/groups.ts';
import { asText, literal } from '../../cells/types/sql.ts';
import type { Zone } from '../../cells/types/zone.ts';
import type { StoredColumn } from '../../table/columns.ts';
import { type IncomingWindow, type NumberedWindow, type SharedDays, sharedDays } from '../../table/receipts.ts';
import { rereadDate } from '../row-dates.ts';
import type { Engine } from '../session/engine.ts';
import { anyOf } from '../session/quote.ts';
import { columnOfSource } from '../views.ts';
import { rowsByWindow } from './counts.ts';
import { HASH_KEY_LENGTH, HASH_PREFIX, sqlNumberKeys, sqlNumbersIn } from './keys.ts';

// Decides which stored rows a batch of windows supersedes, whatever their ids mean. A row is identified by its
// base id: the id, or the hash with which the key of a row without an id starts. No two windows of the batch have the
// same base id. A stored row with a base id of a window is the same row
//
// - if all days that its own window requested are requested again, or
// - if a row of the window with that base id has the same server time, or
// - if its window shares a day with this one, and a row with that base id has the same date by the clock of `timezone`
//   and another server time than every stored row with that id: such a row was corrected, or
// - if it has neither an id nor a server time: the same cells are the same row.
//
// Any other row with that base id is another row: both stay, and the new one gets a number of its own.

/** A batch of windows and the stored windows that it may supersede. */
export interface RereadBatch {
  readonly columns: readonly StoredColumn[];
  /** The zone of the datetimes if they are instants: a date is that of its clock, as in the export. */
  readonly zone: Zone | undefined;
  /** The windows of the batch, and the stored windows that still have rows. */
  readonly windows: readonly IncomingWindow[];
  readonly liveWindows: readonly NumberedWindow[];
  /** True if a row of the batch has no id, so that its key is a hash. */
  readonly hasRowsWithoutId: boolean;
  /** True if a row of the batch may not have its id as its key. */
  readonly hasDuplicateOrMissingIds: boolean;
}

/** A batch with SQL, for FROM, of its rows and of the stored rows, which have the columns of `keyColumns`. */
export interface Reread extends RereadBatch {
  readonly stored: string;
  readonly incoming: string;
}

const KEY_SOURCES: ReadonlySet<string> = new Set([DETAIL_LOG_ID, LOG_ID, SERVER_DATETIME, CORRECTION_DATETIME]);

/** The columns, by their names in the table, that identify rows, events and their times. */
export function keyColumns(columns: readonly StoredColumn[]): Set<string> {
  const ids = columns.filter((column) => column.occurrence === 1 && KEY_SOURCES.has(column.source));
  return new Set(['_key', '_dfinery_window', ...ids.map(({ name }) => name)]);
}

// Temporary tables, each with an example of a row. `number` is the number of the window.

/**
 * Stored rows with a base id of the batch, without those of windows that are re-read whole:
 * `key` a#2, `base` a, `server` 2026-01-02 03:04:05, `date` 2026-01-02, `number` 4.
 */
const CANDIDATES = '_dfinery_candidates';
/** Rows of the batch that have a base id of a candidate: `base` a, `server` and `date` as above, `number` 9. */
const ARRIVED = '_dfinery_arrived';
/** Candidates that are superseded: `key` a#2. */
const SUPERSEDED = '_dfinery_superseded';
/** Base ids of which several rows stay: `base` a. */
const BASES = '_dfinery_bases';
/** Keys of the batch that must change: `key` a, `next` a#3. */
export const RENUMBERED = '_dfinery_renumbered';

export interface SupersededRows {
  /** Conditions on stored rows. A row that meets one of them is superseded; no row meets two. */
  readonly conditions: readonly string[];
  /** Number of stored rows with a base id of the batch, without those of windows that are re-read whole. */
  readonly candidates: number;
}

/** Thrown for windows of a batch that share ids; nothing of the batch is stored. */
export class SharedIds extends UserError {
  override readonly name = 'SharedIds';

  constructor() {
    super('config', 'Windows of a batch share ids. Nothing of it was stored: commit them one by one.');
  }
}

/**
 * Throws SharedIds if windows of a batch may share an id: a later one may supersede rows of an earlier, so that they
 * are stored one by one. Hashes are compared, which takes a third less time than texts.
 */
export async function refuseSharedIds(engine: Engine, { windows }: RereadBatch, incoming: string): Promise<void> {
  if (windows.length === 1) return;
  const { repeated } = await engine.row(`
    SELECT count(*) - count(DISTINCT hash(_key)) AS repeated
    FROM ${incoming}`);
  if (Number(repeated) > 0) throw new SharedIds();
}

/** Finds the rows that are superseded. Makes temporary tables; called inside a transaction. */
export async function findSupersededRows(engine: Engine, reread: Reread): Promise<SupersededRows> {
  const { stored, columns, windows, liveWindows } = reread;
  const { base, server } = rowSql(columns);
  const date = rereadDate(columns, reread.zone);
  const shared = sharedDays(liveWindows, windows);
  const whole = shared.filter(({ isWhole }) => isWhole);
  const same = sameBase(reread);
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${CANDIDATES} (
      key VARCHAR, base VARCHAR, server VARCHAR, date VARCHAR, number BIGINT
    )`);
  let candidates = 0;
  const conditions: string[] = [];
  for (const condition of same) {
    const again = whole.length === 0 ? 'false' : isReadWhole(whole, windows.length === 1, condition);
    candidates += await engine.run(`
      INSERT INTO ${CANDIDATES}
      SELECT _key, ${base}, ${server}, ${date}, _dfinery_window
      FROM ${stored}
      WHERE NOT coalesce(${again}, false) AND ${isAmong(condition)}`);
    if (whole.length > 0) conditions.push(again);
  }
  if (candidates === 0) return { conditions, candidates };
  const partly = shared.filter(({ isWhole }) => !isWhole);
  await compare(engine, reread, partly);
  return { conditions: [...conditions, `_key IN (SELECT key FROM ${SUPERSEDED})`], candidates };
}

/**
 * Fills SUPERSEDED, by the second and the third rule above; and with the rows that have no server time and no id, whose
 * hash says that they are the same. `partly` has the windows some of whose days are requested again.
 */
async function compare(engine: Engine, reread: Reread, partly: readonly SharedDays[]): Promise<void> {
  const { incoming, columns } = reread;
  const { base, server } = rowSql(columns);
  const date = rereadDate(columns, reread.zone);
  const isSharing = anyOf(
    partly.map((pair) => `(candidate.number = ${pair.stored} AND fresh.number = ${pair.incoming})`),
  );
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${ARRIVED} AS
    SELECT ${base} AS base, ${server} AS server, ${date} AS date, _dfinery_window AS number
    FROM ${incoming}
    WHERE ${base} IN (SELECT base FROM ${CANDIDATES})`);
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${SUPERSEDED} AS
    SELECT candidate.key
    FROM ${CANDIDATES} AS candidate
    SEMI JOIN ${ARRIVED} AS arrived ON arrived.base = candidate.base AND arrived.server = candidate.server
    UNION
    SELECT candidate.key
    FROM ${CANDIDATES} AS candidate
    JOIN (
      FROM ${ARRIVED} AS arrived
      ANTI JOIN ${CANDIDATES} AS known ON known.base = arrived.base AND known.server = arrived.server
    ) AS fresh ON fresh.base = candidate.base AND fresh.date = candidate.date
    WHERE ${isSharing}
    UNION
    SELECT key
    FROM ${CANDIDATES}
    WHERE server IS NULL AND starts_with(base, ${literal(HASH_PREFIX)})`);
}

/** SQL of a kind of base id, and of the rows of the batch and of the table that have it. */
interface SameBase {
  readonly expr: string;
  readonly rows: string;
  readonly where: string;
}

/** The two kinds of base id. They are compared separately, so that an id is compared as a column. */
function sameBase({ incoming, columns, hasRowsWithoutId }: Reread): SameBase[] {
  const { id, hash } = rowSql(columns);
  const byId = { expr: id, rows: `${incoming} WHERE ${id} IS NOT NULL`, where: 'true' };
  if (!hasRowsWithoutId) return [byId];
  return [byId, { expr: hash, rows: `${incoming} WHERE ${id} IS NULL`, where: `${id} IS NULL` }];
}

/** The condition of a stored row that has the base id of a row of the batch. */
const isAmong = ({ expr, rows, where }: SameBase): string => `(${where} AND ${expr} IN (SELECT ${expr} FROM ${rows}))`;

/** The condition of a stored row with a base id of the window that requests all days of the row's own window. */
function isReadWhole(whole: readonly SharedDays[], isOneWindow: boolean, same: SameBase): string {
  const isOfWhole = `_dfinery_window IN (${whole.map(({ stored }) => stored).join(', ')})`;
  if (isOneWindow) return `(${isOfWhole} AND ${isAmong(same)})`;
  const next = whole.map(({ stored, incoming }) => `WHEN ${stored} THEN ${incoming}`).join(' ');
  const pair = `(${same.expr}, CASE _dfinery_window ${next} END)`;
  return `(${isOfWhole} AND ${same.where} AND ${pair} IN (SELECT ${same.expr}, _dfinery_window FROM ${same.rows}))`;
}

/** SQL of the values by which rows are compared: texts, since a column may have another type in older files. */
interface RowSql {
  /** The id of the row in the export. */
  readonly id: string;
  /** The hash with which the key of a row without an id starts. */
  readonly hash: string;
  readonly base: string;
  readonly server: string;
}

function rowSql(columns: readonly StoredColumn[]): RowSql {
  const id = asText(columnOfSource(columns, DETAIL_LOG_ID));
  const hash = `left(_key, ${HASH_KEY_LENGTH})`;
  return { id, hash, base: `coalesce(${id}, ${hash})`, server: asText(columnOfSource(columns, SERVER_DATETIME)) };
}

/**
 * Finds the next free number for rows of the batch whose key a row that stays has, and writes the keys into
 * RENUMBERED. `kept`: the stored rows that stay. Returns the number of keys that change.
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
  const hasNumbers = (await engine.count(withNumber)) > 0;
  const bases = [
    ...(candidates > 0 ? [`SELECT base FROM ${CANDIDATES} WHERE key NOT IN (SELECT key FROM ${SUPERSEDED})`] : []),
    ...(hasNumbers
      ? [`SELECT base FROM ${withNumber} WHERE _key IN (SELECT _key FROM ${kept} WHERE contains(_key, '#'))`]
      : []),
  ];
  if (bases.length === 0) return 0;
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${BASES} AS ${bases.join(' UNION ')}`);
  if ((await engine.count(BASES)) === 0) return 0;
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${RENUMBERED} AS ${renumbered(incoming, base, kept)}`);
  return engine.count(RENUMBERED);
}

/** SQL of the new keys of rows with a base id of BASES, in the order of their keys, beside those of all other rows. */
function renumbered(incoming: string, base: string, kept: string): string {
  const arrived = `(SELECT _key AS key, ${base} AS base FROM ${incoming})`;
  const mine = `
    SELECT key AS ref, base, row_number() OVER (PARTITION BY base ORDER BY length(key), key) AS ordinal
    FROM ${arrived}
    WHERE base IN (SELECT base FROM ${BASES})`;
  const taken = `
    WITH others AS (
      SELECT _key AS key FROM ${kept}
      UNION ALL
      SELECT key FROM ${arrived} WHERE NOT base IN (SELECT base FROM ${BASES})
    )
    SELECT key AS base, 1 AS number FROM others
    UNION ALL
    SELECT base, number FROM (${sqlNumbersIn('others')}) WHERE number > 1`;
  return `
    SELECT ref AS key, key AS next
    FROM (${sqlNumberKeys(mine, taken)})
    WHERE ref <> key`;
}

export const baseId = (columns: readonly StoredColumn[]): string => rowSql(columns).base;

/** Counts by window the rows of a relation whose key has a number, because another row has their id. */
export const countNumbered = (engine: Engine, from: string, columns: readonly StoredColumn[]) =>
  rowsByWindow(engine, `${from} WHERE _key <> ${rowSql(columns).base}`);
