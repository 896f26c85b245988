import { REPORTED_RECORDS, reportedWindow, type TargetReport } from '../report.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { countColumns, countEvents, NO_EVENTS, reportedColumns } from '../sql/report.ts';
import { eventFiles } from './dataset/manifest.ts';
import { type ReadOptions, readDataset, type Snapshot } from './dataset/snapshot.ts';
import { historyPath, readHistory } from './history.ts';

/** All that a report says of a folder of Parquet datasets. Throws Failure. */
export function reportParquet(options: ReadOptions): Promise<TargetReport> {
  return readDataset(options, reportOf, () => false);
}

async function reportOf(snapshot: Snapshot): Promise<TargetReport> {
  const { engine, manifest } = snapshot;
  const history = await readHistory(historyPath(snapshot.places.own));
  const paths = eventFiles(manifest).map(({ path }) => snapshot.pathOf(path));
  const { columns, timezone, state, receipts } = manifest;
  const source = paths.length === 0 ? undefined : { events: readFiles(paths), columns, timezone };
  return {
    ...(source === undefined ? NO_EVENTS : await countEvents(engine, source)),
    columns: source === undefined ? reportedColumns(columns) : await countColumns(engine, source),
    sizeBytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0),
    state: state ?? undefined,
    timezone,
    windows: receipts.map(reportedWindow),
    runs: history.runs.slice(-REPORTED_RECORDS),
    changes: history.changes.slice(-REPORTED_RECORDS),
  };
}
