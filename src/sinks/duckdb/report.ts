import { statSync } from 'node:fs';
import { REPORTED_RECORDS, reportedWindow, type TargetReport } from '../report.ts';
import type { EngineOptions } from '../sql/engine/engine.ts';
import { countColumns, countEvents } from '../sql/report.ts';
import { readRuns, readState, withStore } from './store.ts';

/** All that a report says of a DuckDB file, which is opened for reading alone. Throws UserError. */
export function reportDuckDb(options: Omit<EngineOptions, 'readOnly'>): Promise<TargetReport> {
  return withStore({ ...options, readOnly: true }, async (engine) => {
    const { columns, timezone, cursor, receipts, changes } = await readState(engine);
    const source = { events: 'events', columns, timezone };
    return {
      ...(await countEvents(engine, source)),
      columns: await countColumns(engine, source),
      sizeBytes: statSync(engine.file).size,
      state: cursor ?? undefined,
      timezone,
      windows: receipts.map(reportedWindow),
      runs: (await readRuns(engine)).slice(-REPORTED_RECORDS),
      changes: changes.slice(-REPORTED_RECORDS),
    };
  });
}
