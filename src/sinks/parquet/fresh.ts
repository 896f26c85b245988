import { join } from 'node:path';
import { daysBetween } from '../../base/days.ts';
import { defect } from '../../base/errors.ts';
import type { PlannedColumn } from '../duckdb/plan.ts';
import { isPlain, type Load, sourceOf } from '../duckdb/source.ts';
import { identifier } from '../duckdb/sql.ts';
import { dropStage, stageWindow } from '../duckdb/stage.ts';
import { exactly, nothing, typedColumns } from './columns.ts';
import { countRows, type Metadata } from './copy.ts';
import type { Dataset } from './dataset.ts';
import { PART_ENDING } from './layout.ts';
import { namesOf } from './order.ts';
import { onlyDate, partitionSql } from './partition.ts';
import { writeDates, writeRows } from './rows.ts';

/** The rows of a window that one date has, in a temporary file. */
export interface Fresh {
  readonly date: string;
  readonly path: string;
  readonly rows: number;
}

const FOLDER = 'fresh';

/** Writes all rows of a window, typed and keyed, by date. Inside a transaction. Throws Failure when the count differs. */
export async function writeFresh(dataset: Dataset, load: Load, metadata: Metadata): Promise<Fresh[]> {
  const { receipt } = load.window;
  if (receipt.rows === 0) return [];
  const fresh = await write(dataset, load, metadata);
  const rows = fresh.reduce((sum, { rows }) => sum + rows, 0);
  if (rows === receipt.rows) return fresh;
  throw defect(
    `a window of ${receipt.rows} rows came to ${rows} in Parquet: nothing of it was kept. Please report it.`,
    { where: { window: `${receipt.from}..${receipt.to}`, file: dataset.places.root } },
  );
}

async function write(dataset: Dataset, load: Load, metadata: Metadata): Promise<Fresh[]> {
  const { engine } = dataset;
  const date = onlyDate(load);
  const columns = [...load.plan.values()];
  if (isPlain(load.window)) {
    const query = plainQuery(load, columns, date === undefined);
    return store(dataset, query, load, date, metadata);
  }
  const staged = await stageWindow(engine, load, { type: 'DATE', valueOf: (index) => partitionSql(load, index) });
  const rows: Rows = {
    from: staged.from,
    key: staged.key,
    rescued: staged.rescued,
    values: new Map(staged.columns.map((column, i) => [column.name, staged.values[i]])),
    date: date === undefined ? staged.extra : undefined,
  };
  const fresh = await store(dataset, queryOf(rows, load, columns), load, date, metadata);
  await dropStage(engine);
  return fresh;
}

/** Typed rows to select from: expressions over `from`. */
interface Rows {
  readonly from: string;
  readonly key: string;
  readonly rescued: string | undefined;
  /** By column name. */
  readonly values: ReadonlyMap<string, string>;
  readonly date: string | undefined;
}

function plainQuery(load: Load, columns: readonly PlannedColumn[], withDate: boolean): string {
  const partition = withDate ? partitionSql(load, 0) : undefined;
  const source = sourceOf(load, 0, partition?.texts);
  const values = new Map(source.columns.map((column, i) => [column.name, source.values[i]]));
  const { from, base: key, rescued } = source;
  return queryOf({ from, key, rescued, values, date: partition?.sql }, load, columns);
}

/** The rows as an `events` file has them, its columns in its order. */
function queryOf(rows: Rows, load: Load, columns: readonly PlannedColumn[]): string {
  const typed = typedColumns(columns);
  const inner = typed.flatMap(({ name, type }) => {
    const value = rows.values.get(name);
    return value === undefined ? [] : [`${exactly(value, type, load.zone)} AS ${identifier(name)}`];
  });
  const idColumn = typed.find(({ name }) => rows.values.get(name) === rows.key);
  if (idColumn === undefined) inner.push(`${rows.key} AS _key`);
  if (rows.rescued !== undefined) inner.push(`${rows.rescued} AS _rescued`);
  if (rows.date !== undefined) inner.push(`${rows.date} AS event_date`);
  const outer = [
    idColumn === undefined ? '_key' : `${identifier(idColumn.name)} AS _key`,
    `CAST(${load.number} AS BIGINT) AS _dfinery_window`,
    rows.rescued === undefined
      ? `${nothing('string', undefined)} AS _rescued`
      : 'CAST(_rescued AS VARCHAR) AS _rescued',
    ...typed.map(({ name, type }) =>
      rows.values.has(name) ? identifier(name) : `${nothing(type, load.zone)} AS ${identifier(name)}`,
    ),
    ...(rows.date === undefined ? [] : ['event_date']),
  ];
  return `SELECT ${outer.join(', ')} FROM (SELECT ${inner.join(', ')} FROM ${rows.from})`;
}

/** Writes a query into one file for each date it has. */
async function store(dataset: Dataset, query: string, load: Load, date: string | undefined, metadata: Metadata) {
  const { places } = dataset;
  const columns = typedColumns([...load.plan.values()]);
  const { receipt, files } = load.window;
  const days = date === undefined ? daysBetween(receipt.from, receipt.to) + 1 : 1;
  const rows = { query, columns, rows: Math.floor(receipt.rows / days), names: namesOf(files) };
  if (date === undefined)
    return freshOf(dataset, await writeDates(dataset, rows, join(places.temporary, FOLDER), metadata));
  const path = join(places.temporary, `${FOLDER}.${PART_ENDING}`);
  await writeRows(dataset, rows, path, metadata);
  return freshOf(dataset, new Map([[date, path]]));
}

async function freshOf(dataset: Dataset, paths: ReadonlyMap<string, string>): Promise<Fresh[]> {
  const counts = await countRows(dataset.engine, [...paths.values()]);
  return [...paths].map(([date, path]) => ({ date, path, rows: counts.get(path) ?? 0 }));
}
