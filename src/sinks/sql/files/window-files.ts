import { join } from 'node:path';
import { daysBetween } from '../../../base/days.ts';
import { defect } from '../../../base/errors.ts';
import { typedColumns } from '../../../table/columns.ts';
import type { PlannedColumn } from '../../../table/plan.ts';
import { castTo, typedNull } from '../columns/typed.ts';
import { identifier } from '../engine/quote.ts';
import { fileQuery, idsAreKeys, type WindowLoad } from '../rows/file-query.ts';
import { dropStaging, stageWindow } from '../rows/staging.ts';
import { countRows, type Metadata, UNFINISHED, type Writer, writeDates, writeFile } from './parquet-file.ts';
import { onlyDate, partitionSql } from './partition-date.ts';

/** The rows of a window that one date has, in a file that is part of no dataset yet. */
export interface WindowFile {
  readonly date: string;
  readonly path: string;
  readonly rows: number;
}

/** Where the files of a window are written. */
export interface WindowFolder extends Writer {
  /** An empty folder. */
  readonly folder: string;
  /** The name of the target, for messages. */
  readonly place: string;
}

const NAME = 'window';

/** Writes all rows of a window, typed and keyed, by date. Inside a transaction. Throws Failure when the count differs. */
export async function writeWindowFiles(
  into: WindowFolder,
  load: WindowLoad,
  metadata: Metadata,
): Promise<WindowFile[]> {
  const { receipt } = load.window;
  if (receipt.rows === 0) return [];
  const files = await write(into, load, metadata);
  const written = files.reduce((sum, { rows }) => sum + rows, 0);
  if (written === receipt.rows) return files;
  throw defect(
    `a window of ${receipt.rows} rows came to ${written} in Parquet: nothing of it was kept. Please report it.`,
    { where: { window: `${receipt.from}..${receipt.to}`, file: into.place } },
  );
}

async function write(into: WindowFolder, load: WindowLoad, metadata: Metadata): Promise<WindowFile[]> {
  const { engine } = into;
  const date = onlyDate(load);
  const columns = [...load.plan.values()];
  if (idsAreKeys(load.window)) {
    const query = plainQuery(load, columns, date === undefined);
    return store(into, query, load, date, metadata);
  }
  const staged = await stageWindow(engine, load, { type: 'DATE', valueOf: (index) => partitionSql(load, index) });
  const rows: Rows = {
    from: staged.from,
    key: staged.key,
    rescued: staged.rescued,
    values: new Map(staged.columns.map((column, i) => [column.name, staged.values[i]])),
    date: date === undefined ? staged.extra : undefined,
  };
  const files = await store(into, queryOf(rows, load, columns), load, date, metadata);
  await dropStaging(engine);
  return files;
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

function plainQuery(load: WindowLoad, columns: readonly PlannedColumn[], withDate: boolean): string {
  const partition = withDate ? partitionSql(load, 0) : undefined;
  const source = fileQuery(load, 0, partition?.texts);
  const values = new Map(source.columns.map((column, i) => [column.name, source.values[i]]));
  const { from, base: key, rescued } = source;
  return queryOf({ from, key, rescued, values, date: partition?.sql }, load, columns);
}

/** The rows as an `events` file has them, its columns in its order. */
function queryOf(rows: Rows, load: WindowLoad, columns: readonly PlannedColumn[]): string {
  const typed = typedColumns(columns);
  const inner = typed.flatMap(({ name, type }) => {
    const value = rows.values.get(name);
    return value === undefined ? [] : [`${castTo(value, type, load.zone)} AS ${identifier(name)}`];
  });
  const idColumn = typed.find(({ name }) => rows.values.get(name) === rows.key);
  if (idColumn === undefined) inner.push(`${rows.key} AS _key`);
  if (rows.rescued !== undefined) inner.push(`${rows.rescued} AS _rescued`);
  if (rows.date !== undefined) inner.push(`${rows.date} AS event_date`);
  const outer = [
    idColumn === undefined ? '_key' : `${identifier(idColumn.name)} AS _key`,
    `CAST(${load.number} AS BIGINT) AS _dfinery_window`,
    rows.rescued === undefined
      ? `${typedNull('string', undefined)} AS _rescued`
      : 'CAST(_rescued AS VARCHAR) AS _rescued',
    ...typed.map(({ name, type }) =>
      rows.values.has(name) ? identifier(name) : `${typedNull(type, load.zone)} AS ${identifier(name)}`,
    ),
    ...(rows.date === undefined ? [] : ['event_date']),
  ];
  return `SELECT ${outer.join(', ')} FROM (SELECT ${inner.join(', ')} FROM ${rows.from})`;
}

/** Writes a query into one file for each date it has. */
async function store(
  into: WindowFolder,
  query: string,
  load: WindowLoad,
  date: string | undefined,
  metadata: Metadata,
): Promise<WindowFile[]> {
  const { receipt } = load.window;
  const days = date === undefined ? daysBetween(receipt.from, receipt.to) + 1 : 1;
  const sized = { query, rows: Math.floor(receipt.rows / days) };
  if (date === undefined) return counted(into, await writeDates(into, sized, join(into.folder, NAME), metadata));
  const path = join(into.folder, `${NAME}.${UNFINISHED}`);
  await writeFile(into, sized, path, metadata);
  return counted(into, new Map([[date, path]]));
}

async function counted({ engine }: WindowFolder, paths: ReadonlyMap<string, string>): Promise<WindowFile[]> {
  const counts = await countRows(engine, [...paths.values()]);
  return [...paths].map(([date, path]) => ({ date, path, rows: counts.get(path) ?? 0 }));
}
