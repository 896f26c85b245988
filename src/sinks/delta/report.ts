import type { StoredColumn } from '../../table/columns.ts';
import { REPORTED_RECORDS, reportedWindow, type TargetReport } from '../report.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { countEvents, NO_EVENTS, reportedColumns, rescuedCells } from '../sql/report.ts';
import type { DataFile } from './files/data-file.ts';
import { readRuns } from './history.ts';
import { Lake, type LakeOptions } from './lake.ts';

/** The report of Delta tables. From a bucket, only the system columns are copied. Throws Failure. */
export async function reportDelta(options: LakeOptions): Promise<TargetReport> {
  try {
    const lake = await Lake.open(options, 'read');
    try {
      return await reportOf(lake.mustExist());
    } finally {
      await lake.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}

async function reportOf(lake: Lake): Promise<TargetReport> {
  const { domains } = lake.events;
  const changes = [...domains.changes().values()].flat();
  const all = [...lake.tables.values()].flatMap((table) => table.files());
  const timezone = domains.table()?.timezone ?? null;
  return {
    ...(await countedIn(lake, domains.columns() ?? [], timezone)),
    sizeBytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    state: domains.state(),
    timezone,
    windows: domains.receipts().map(reportedWindow),
    runs: await readRuns(lake.storage, REPORTED_RECORDS),
    changes: changes.slice(-REPORTED_RECORDS),
  };
}

type Counted = Pick<TargetReport, 'rows' | 'lastEventAt' | 'events' | 'hours' | 'columns'>;

/** Days and names are counted in the rows, values of columns in the log: it has the nulls of every file. */
async function countedIn(lake: Lake, columns: readonly StoredColumn[], timezone: string | null): Promise<Counted> {
  const files = lake.events.files();
  if (files.length === 0) return { ...NO_EVENTS, columns: reportedColumns(columns) };
  // What days and names are counted by is in every file.
  const system = columns.filter(
    ({ group, name }) => group === 'system' && files.every((file) => file.columns.has(name)),
  );
  const wanted = new Set(['_key', '_rescued', ...system.map(({ name }) => name)]);
  const events = readFiles([...(await lake.fetchColumns('events', files, wanted)).values()]);
  return {
    ...(await countEvents(lake.engine, { events, columns: system, timezone })),
    columns: reportedColumns(columns, filledIn(files), await rescuedCells(lake.engine, events)),
  };
}

/** Rows with a value, by column. */
function filledIn(files: readonly DataFile[]): Map<string, number> {
  const filled = new Map<string, number>();
  for (const { rows, nulls } of files) {
    for (const [name, absent] of nulls) filled.set(name, (filled.get(name) ?? 0) + rows - absent);
  }
  return filled;
}
