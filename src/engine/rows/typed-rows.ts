// This folder: from the CSV files of days to typed rows with keys, as SQL. All targets store what `typedRows` gives.

import { groupBy } from '../../base/group.ts';
import { columnKey } from '../../cells/columns/groups.ts';
import { asText, identifier, literal } from '../../cells/types/sql.ts';
import { TYPES } from '../../cells/types/types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { PlannedBatch, PlannedDay, PlannedFile } from '../../table/batch.ts';
import { type FileColumn, type PlannedColumn, type Reading, readingOf } from '../../table/column-plan.ts';
import { compareBytes } from '../../table/names.ts';
import { typedColumns } from '../../table/tables.ts';
import { castToColumn, type DescribedColumn } from '../conversions.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFile } from '../session/faults.ts';
import { type CellSql, cell, cellSql, PATH_COLUMN, readCsv, rescuedSql } from './csv-sql.ts';

/** Typed rows of days; the expressions are over `from`. */
export interface TypedRows {
  readonly from: string;
  readonly key: string;
  /** SQL of `event_date`. */
  readonly date: string;
  /** SQL of a JSON text, or NULL. */
  readonly rescued: string;
  /** SQL of the instant at which the export of the row was requested: a TIMESTAMP in UTC. */
  readonly loadedAt: string;
  /** The columns that have a value in these days. */
  readonly columns: readonly PlannedColumn[];
  /** SQL of a value for each of `columns`, in its type. */
  readonly values: readonly string[];
  readonly days: readonly PlannedDay[];
}

/** Rows that the files of these days have. */
export const rowsIn = (days: readonly PlannedDay[]): number =>
  days.flatMap(({ files }) => files).reduce((sum, { file }) => sum + file.rows, 0);

/** Throws unless as many rows came as the files of these days have. `place` is where they were to be stored. */
export function checkRowCount(days: readonly PlannedDay[], came: number, place: string): void {
  const rows = rowsIn(days);
  if (came === rows) return;
  const named = days.map(({ download }) => download.receipt.day);
  throw new MisreadFile(`${rows} rows of ${named.join(', ')} came to ${came}: nothing was kept. Please report it.`, {
    where: { file: place },
  });
}

/** True if every row of the day has an id of its own, which then is its key. */
const hasUniqueIds = ({ files }: PlannedDay): boolean =>
  files.length === 1 && files.every(({ file }) => !file.hasDuplicateOrMissingIds);

/**
 * Calls `store` with typed rows of days: once with those of all days whose ids are their keys, since each statement takes
 * blocks for every column; and for each other day, which is read into temporary tables first, where its rows are
 * numbered. Days without rows are left out.
 */
export async function withTypedRows(
  engine: Engine,
  batch: PlannedBatch,
  days: readonly PlannedDay[],
  store: (rows: TypedRows) => Promise<void>,
): Promise<void> {
  const filled = days.filter((day) => rowsIn([day]) > 0);
  const plain = plainRows(batch, filled.filter(hasUniqueIds));
  if (plain.length > 0) await store(together(plain));
  for (const day of filled.filter((one) => !hasUniqueIds(one))) await withNumbered(engine, batch, day, store);
}

/** The SELECT of typed rows: own columns as asked for, then all typed columns of the batch, each in its own type. */
export function selectRows(
  { from, key, date, rescued, loadedAt, columns, values }: TypedRows,
  { columns: all, timezone }: PlannedBatch,
  own: readonly DescribedColumn[],
): string {
  const zone = zoneOf(timezone);
  const ownSql: Readonly<Record<string, string>> = {
    _key: key,
    event_date: date,
    _rescued: asText(rescued),
    _loaded_at: loadedAt,
  };
  const byKey = new Map(columns.map((column, i) => [column.key, values[i]]));
  const select = [
    ...own.map(({ name, type }) => `${type === 'TIMESTAMPTZ' ? inUtc(ownSql[name]) : ownSql[name]} AS ${name}`),
    ...typedColumns(all).map((column) => {
      const value = castToColumn(byKey.get(column.key) ?? 'NULL', column.type, zone);
      return `${value} AS ${identifier(column.name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM ${from}`;
}

/** SQL of the instant that a TIMESTAMP in UTC names. */
const inUtc = (timestamp: string): string => `timezone('UTC', ${timestamp})`;

const idKeyOf = ({ table }: PlannedBatch): string => columnKey(table.idColumn, 1);

interface FilePart extends PlannedFile {
  readonly day: PlannedDay;
}

const partsOf = (day: PlannedDay): FilePart[] => day.files.map((file) => ({ ...file, day }));

/** The typed rows of days whose ids are their keys: one statement for all files with one header and the same reading. */
function plainRows(batch: PlannedBatch, days: readonly PlannedDay[]): TypedRows[] {
  const texts = batch.columns.filter(({ type }) => type === 'string' || type === 'string[]').map(({ key }) => key);
  const readingsOf = ({ readings }: PlannedDay) =>
    texts.map((key) => {
      const { readAs, nullIsText } = readings.get(key) ?? {};
      return [readAs, nullIsText];
    });
  const alike = groupBy(days.flatMap(partsOf), ({ file, day }) => JSON.stringify([file.header, readingsOf(day)]));
  return [...alike.values()].map((parts) => filesQuery(batch, parts));
}

/** The typed rows of several queries as those of one. */
function together(queries: readonly TypedRows[]): TypedRows {
  const [first, ...others] = queries;
  if (others.length === 0) return first;
  const columns = [...new Map(queries.flatMap((rows) => rows.columns).map((column) => [column.key, column])).values()];
  const selects = queries.map(({ key, date, rescued, loadedAt, columns: own, values, from }) => {
    const named = own.map(({ name }, i) => `${values[i]} AS ${identifier(name)}`);
    const ownSql = [`${key} AS _key`, `${date} AS event_date`, `${rescued} AS _rescued`, `${loadedAt} AS _loaded_at`];
    return `SELECT ${[...ownSql, ...named].join(', ')} FROM ${from}`;
  });
  return {
    from: `(${selects.join(' UNION ALL BY NAME ')})`,
    key: '_key',
    date: 'event_date',
    rescued: '_rescued',
    loadedAt: '_loaded_at',
    columns,
    values: columns.map(({ name }) => identifier(name)),
    days: queries.flatMap(({ days }) => days),
  };
}

/** The SQL that reads files with one header and the same reading of texts in one pass, with base ids as keys. */
function filesQuery(batch: PlannedBatch, parts: readonly FilePart[]): TypedRows {
  const columns = columnsOf(parts);
  const planned = new Map(batch.columns.map((column) => [column.key, column]));
  const idKey = idKeyOf(batch);
  const hasId = parts.every((part) => everyRowHasId(part, idKey));
  const zone = zoneOf(batch.timezone);
  const cells = columns.map((column) => {
    const stored = planned.get(column.key);
    if (stored === undefined || column.filled === 0) return undefined;
    const wantsText = !hasId || column.key === idKey;
    return cellSql(stored, readingOfFiles(parts, stored, zone !== undefined), cell(column.index), { zone, wantsText });
  });
  const stored = cells.filter((c): c is CellSql & { value: string } => c?.value !== undefined);
  const id = columns.find((column) => column.key === idKey);
  const hashed: KeyCell[] = hasId ? [] : columns.map(({ source, index }) => ({ source, expr: cell(index) }));
  return {
    columns: stored.map((c) => c.column),
    values: stored.map((c) => c.value),
    rescued: rescuedSql(cells.filter((c) => c !== undefined)),
    key: sqlBaseId(id && cell(id.index), hashed, hasId),
    date: byFile(parts, dateSql),
    loadedAt: byFile(parts, requestedSql),
    from: readCsv(
      parts.map(({ file }) => file),
      cells.map((c) => c?.reader ?? 'VARCHAR'),
    ),
    days: [...new Set(parts.map(({ day }) => day))],
  };
}

const HASH_PREFIX = 'hash:';

/** A cell: the name under which it is hashed, and SQL of its raw text, NULL if it is empty. */
interface KeyCell {
  readonly source: string;
  readonly expr: string;
}

/**
 * SQL of the key of a row without an id: `hash:` and the SHA-256 in hex over its non-empty cells in byte order of their
 * names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep the order given.
 */
function sqlHashKey(cells: readonly KeyCell[]): string {
  const ordered = [...cells].sort((a, b) => compareBytes(a.source, b.source));
  const parts = ordered.map(({ source, expr }) => {
    const name = literal(`${Buffer.byteLength(source)}:${source}`);
    return `${name} || strlen(${expr}) || ':' || ${expr}`;
  });
  return `${literal(HASH_PREFIX)} || sha256(concat('', ${parts.join(', ')}))`;
}

/** SQL of the base id of a row: its id, or the hash of its cells. */
function sqlBaseId(id: string | undefined, cells: readonly KeyCell[], everyRowHasId: boolean): string {
  if (id === undefined) return sqlHashKey(cells);
  return everyRowHasId ? id : `CASE WHEN ${id} IS NULL THEN ${sqlHashKey(cells)} ELSE ${id} END`;
}

const dateSql = ({ download }: PlannedDay): string => `DATE ${literal(download.receipt.day)}`;

const requestedSql = ({ download }: PlannedDay): string =>
  `TIMESTAMP ${literal(download.receipt.requested_at.replace('Z', ''))}`;

/** SQL of what is the same for all rows of a day, in rows of files. */
function byFile(parts: readonly FilePart[], sqlOf: (day: PlannedDay) => string): string {
  if (parts.length === 1) return sqlOf(parts[0].day);
  return `CASE ${PATH_COLUMN} ${parts.map(({ file, day }) => `WHEN ${literal(file.path)} THEN ${sqlOf(day)}`).join(' ')} END`;
}

/** The columns of files with the same header; `filled` counts the cells of all files. */
const columnsOf = (parts: readonly FilePart[]): FileColumn[] =>
  parts[0].columns.map((column, i) => ({
    ...column,
    filled: parts.reduce((sum, { columns }) => sum + columns[i].filled, 0),
  }));

/** The reading of a column in files: that which all have of a text; else that of the forms of all. */
function readingOfFiles(parts: readonly FilePart[], column: PlannedColumn, asInstants: boolean): Reading {
  const all = parts.flatMap(({ day }) => day.readings.get(column.key) ?? []);
  const forms = all.reduce((union, reading) => union | reading.forms, 0);
  const text = all.find(({ readAs }) => readAs !== null);
  if (text !== undefined && (column.type === 'string' || column.type === 'string[]')) {
    return { ...text, forms, isClean: all.every(({ isClean }) => isClean) };
  }
  return readingOf(column, forms, { asInstants, isNullText: false });
}

function everyRowHasId({ file, columns }: PlannedFile, idKey: string): boolean {
  const id = columns.find((column) => column.key === idKey);
  return id !== undefined && id.filled === file.rows;
}

/** Temporary table: the rows of a day in their order, `base` a, `rescued`, and typed values `t0`, `t1`… by position. */
const STAGE = '_dfinery_stage';
/** Temporary table: the keys of rows whose base id an earlier row has. `ref`, the `rowid` there, 23, `key` a#2. */
const KEYS = '_dfinery_keys';

/** Reads a day into temporary tables, where its repeated ids are numbered in the order of its rows. */
async function withNumbered(
  engine: Engine,
  batch: PlannedBatch,
  day: PlannedDay,
  store: (rows: TypedRows) => Promise<void>,
): Promise<void> {
  await engine.run('SET preserve_insertion_order = true');
  await dropStage(engine);
  await store(await stage(engine, batch, day));
  await dropStage(engine);
}

async function stage(engine: Engine, batch: PlannedBatch, day: PlannedDay): Promise<TypedRows> {
  const columns = typedColumns(batch.columns).filter(({ key }) => day.readings.get(key)?.readAs != null);
  const types = columns.map((c) => `t${c.position} ${TYPES[c.type].duckdb(batch.timezone !== undefined)}`);
  await engine.run(`CREATE TEMP TABLE ${STAGE} (${['base VARCHAR', 'rescued VARCHAR', ...types].join(', ')})`);
  for (const part of partsOf(day)) {
    const { key, rescued, columns: own, values, from } = filesQuery(batch, [part]);
    const into = ['base', 'rescued', ...own.map(({ position }) => `t${position}`)].join(', ');
    await engine.run(`
      INSERT INTO ${STAGE} (${into})
      SELECT ${[key, rescued, ...values].join(', ')}
      FROM ${from}`);
  }
  await engine.run(`
    CREATE TEMP TABLE ${KEYS} AS
    SELECT rowid AS ref, base || '#' || row_number() OVER (PARTITION BY base ORDER BY rowid) AS key
    FROM ${STAGE}
    WHERE base IN (SELECT base FROM ${STAGE} GROUP BY base HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY base ORDER BY rowid) > 1`);
  return {
    from: `(SELECT s.*, coalesce(k.key, s.base) AS key FROM ${STAGE} s LEFT JOIN ${KEYS} k ON s.rowid = k.ref ORDER BY s.rowid)`,
    key: 'key',
    date: dateSql(day),
    rescued: 'rescued',
    loadedAt: requestedSql(day),
    columns,
    values: columns.map(({ position }) => `t${position}`),
    days: [day],
  };
}

async function dropStage(engine: Engine): Promise<void> {
  for (const table of [STAGE, KEYS]) await engine.run(`DROP TABLE IF EXISTS ${table}`);
}
