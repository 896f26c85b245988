import { REPORTED_RECORDS, type TargetReport } from '../report.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { countEvents } from '../sql/report.ts';
import type { DatasetOptions } from './dataset/dataset.ts';
import { eventFiles, type LiveReceipt } from './dataset/manifest.ts';
import { readDataset, type Snapshot } from './dataset/snapshot.ts';
import { historyPath, readHistory } from './history.ts';

/** All that a report says of a folder of Parquet datasets. Throws Failure. */
export function reportParquet(options: DatasetOptions): Promise<TargetReport> {
  return readDataset(options, reportOf, () => false);
}

async function reportOf(snapshot: Snapshot): Promise<TargetReport> {
  const { engine, manifest } = snapshot;
  const history = await readHistory(historyPath(snapshot.places.own));
  const paths = eventFiles(manifest).map(({ path }) => snapshot.pathOf(path));
  const { columns, timezone, state, receipts } = manifest;
  const unfilled = columns.map(({ name, source, group, type }) => ({
    name,
    source,
    group,
    type,
    filled: 0,
    rescued: 0,
  }));
  const nothing = { rows: 0, lastEventAt: null, events: [], hours: Array(24).fill(0), columns: unfilled };
  return {
    ...(paths.length === 0 ? nothing : await countEvents(engine, { events: readFiles(paths), columns, timezone })),
    sizeBytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0),
    state: state ?? undefined,
    timezone,
    windows: receipts.map(windowOf),
    runs: history.runs.slice(-REPORTED_RECORDS),
    changes: history.changes.slice(-REPORTED_RECORDS),
  };
}

const windowOf = (receipt: LiveReceipt) => ({
  from: receipt.from,
  to: receipt.to,
  coversFrom: receipt.covers_from,
  coversTo: receipt.covers_to,
  rows: receipt.rows,
  bytes: receipt.bytes,
  exports: receipt.exports,
  verifiedAt: receipt.verified_at,
});
