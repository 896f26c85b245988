import pLimit from 'p-limit';
import { daysBetween } from '../../base/days.ts';
import { asText } from '../../cells/types/sql.ts';
import { checkRowCount } from '../../engine/rows/counts.ts';
import { fileQuery, type TypedRows, typedValues, type WindowLoad } from '../../engine/rows/file-query.ts';
import { type Prewriter, WRITE_CONCURRENCY } from '../../engine/rows/prewriter.ts';
import { type Staged, type StagedExtra, withStaged } from '../../engine/rows/staging.ts';
import { identifier } from '../../engine/session/quote.ts';
import { hasDuplicateOrMissingIds } from '../../extract/window.ts';
import { typedColumns } from '../../table/columns.ts';
import type { NewFile } from './data-file.ts';
import { eventColumns } from './file-columns.ts';
import type { FileTable } from './file-table.ts';
import { PARTITION_COLUMN, type Writer, writeDates, writeFile } from './parquet-file.ts';
import { onlyDate, partitionSql } from './partition-date.ts';

/**
 * Writes all rows of the windows, typed and with keys, one file for each window and date, unless the prewriter has
 * them. Called inside a transaction. Throws UserError if a count differs.
 */
export async function writeIncoming(table: FileTable, loads: readonly WindowLoad[], prewriter: Prewriter<NewFile[]>) {
  const filled = loads.filter(({ window }) => window.receipt.rows > 0);
  const limit = pLimit(table.engine.isLowOnMemory ? 1 : WRITE_CONCURRENCY);
  const writing = filled.map(async (load) => {
    if (hasDuplicateOrMissingIds(load.window)) return undefined;
    return (await prewriter.resultFor(load)) ?? limit(() => writePlain(table, load));
  });
  // After a failure nothing must go on beside a second attempt, which may be made for lack of memory, or the closing.
  await Promise.allSettled(writing);
  const plain = await Promise.all(writing);
  const files: NewFile[] = [];
  for (const [i, load] of filled.entries()) files.push(...(plain[i] ?? (await writeStaged(table, load))));
  return files;
}

/** Writes a window whose ids are its keys, beside other statements. */
export function writePlain(table: FileTable, load: WindowLoad): Promise<NewFile[]> {
  const partition = onlyDate(load) === undefined ? partitionSql(load, 0) : undefined;
  const source = fileQuery(load, 0, partition?.texts);
  return writeDatesOf(table, table.writer({ onOwnConnection: true }), queryOf(source, partition?.sql, load), load);
}

/** Writes a window whose ids may be missing or repeated: its rows are staged in their order in a temporary table. */
function writeStaged(table: FileTable, load: WindowLoad): Promise<NewFile[]> {
  const partition: StagedExtra = { type: 'DATE', valueOf: (index) => partitionSql(load, index) };
  const write = (staged: Staged) => {
    const query = queryOf(staged, onlyDate(load) === undefined ? staged.extra : undefined, load);
    return writeDatesOf(table, table.writer(), query, load);
  };
  return withStaged(table.engine, load, write, partition);
}

/** The query of rows as a file of `events` has them. `date` is SQL; undefined if there is no column of the date. */
function queryOf(rows: TypedRows, date: string | undefined, load: WindowLoad): string {
  const names = typedColumns([...load.planned.values()]).map(({ name }) => identifier(name));
  const inner = [...typedValues(rows, load), `${rows.rescued} AS _rescued`];
  // A column that is the key is computed once.
  const key = rows.columns.find((_, i) => rows.values[i] === rows.key)?.name;
  if (key === undefined) inner.push(`${rows.key} AS _key`);
  if (date !== undefined) inner.push(`${date} AS ${PARTITION_COLUMN}`);
  const own = [
    key === undefined ? '_key' : `${identifier(key)} AS _key`,
    `CAST(${load.windowNumber} AS BIGINT) AS _dfinery_window`,
    `${asText('_rescued')} AS _rescued`,
  ];
  const all = [...own, ...names, ...(date === undefined ? [] : [PARTITION_COLUMN])];
  return `SELECT ${all.join(', ')} FROM (SELECT ${inner.join(', ')} FROM ${rows.from})`;
}

async function writeDatesOf(table: FileTable, writer: Writer, query: string, load: WindowLoad): Promise<NewFile[]> {
  const { window, windowNumber, planned, zone } = load;
  const { receipt } = window;
  const date = onlyDate(load);
  const days = date === undefined ? daysBetween(receipt.from, receipt.to) + 1 : 1;
  const columns = eventColumns([...planned.values()], zone);
  const sized = { table: 'events', query, rows: Math.floor(receipt.rows / days), date, columns } as const;
  const path = table.newPath('incoming');
  const byDate =
    date === undefined
      ? await writeDates(writer, sized, path)
      : new Map([[date, await writeFile(writer, sized, path)]]);
  const files = [...byDate].map(([day, written]) =>
    table.newFile(written, { table: 'events', date: day, windows: new Map([[windowNumber, written.rows]]) }),
  );
  const came = files.reduce((sum, { rows }) => sum + rows, 0);
  checkRowCount(window, came, table.place);
  return files;
}
