import { countColumns, countEvents, NO_EVENTS, reportedColumns } from '../../engine/report.ts';
import { rescuedCells } from '../../engine/rows/counts.ts';
import type { StoredColumn } from '../../table/columns.ts';
import type { TargetReport } from '../report.ts';
import type { DataFile } from './data-file.ts';
import { eventRows, withUnloggedColumns } from './file-columns.ts';
import { type FileTable, readingTable } from './file-table.ts';
import type { FilesFormat, OpenFilesOptions } from './files-format.ts';
import { readRuns } from './runs.ts';

export const reportFiles = (format: FilesFormat, options: OpenFilesOptions): Promise<TargetReport> =>
  readingTable(format, options, async (table) => ({
    state: table.snapshot.state,
    ...(await countedIn(table)),
    sizeBytes: table.snapshot.files.reduce((sum, { bytes }) => sum + bytes, 0),
    runs: await readRuns(table.storage),
  }));

/** Counts events, and values by column: in the log where it has the nulls of every file, else in the rows. */
async function countedIn(table: FileTable): Promise<Omit<TargetReport, 'state' | 'sizeBytes' | 'runs'>> {
  const { columns } = table.snapshot.state;
  const fetch = async (wanted: readonly StoredColumn[]) => {
    const names = new Set(['_key', '_rescued', ...wanted.map(({ name }) => name)]);
    return withUnloggedColumns(table.engine, await table.fetch(table.filesOf('events'), names), columns);
  };
  const system = columns.filter(({ group }) => group === 'system');
  const files = await fetch(system);
  const filled = filledIn(files);
  const read = filled === undefined ? columns : system;
  const local = filled === undefined ? await fetch(columns) : files;
  const events = eventRows(local, read, table.zone);
  if (events === undefined) return { ...NO_EVENTS, columns: reportedColumns(columns) };
  return {
    ...(await countEvents(table.engine, { events, columns: read, zone: table.zone })),
    columns:
      filled === undefined
        ? await countColumns(table.engine, { events, columns })
        : reportedColumns(columns, filled, await rescuedCells(table.engine, events)),
  };
}

/** Number of rows with a value by column; undefined if the log does not count those of every column of a file. */
function filledIn(files: readonly DataFile[]): Map<string, number> | undefined {
  const filled = new Map<string, number>();
  for (const { rows, nulls, columns } of files) {
    if (nulls === undefined || [...columns].some((name) => !nulls.has(name))) return undefined;
    for (const [name, absent] of nulls) filled.set(name, (filled.get(name) ?? 0) + rows - absent);
  }
  return filled;
}
