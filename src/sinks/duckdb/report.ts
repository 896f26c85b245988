import { statSync } from 'node:fs';
import type { TargetReport } from '../report.ts';
import type { EngineOptions } from '../sql/engine/engine.ts';
import { countColumns, countEvents } from '../sql/report.ts';
import { readRuns, readState, withStore } from './store.ts';

/** All that a report says of a DuckDB file, which is opened for reading alone. Throws UserError. */
export function reportDuckDb(options: Omit<EngineOptions, 'readOnly'>): Promise<TargetReport> {
  return withStore({ ...options, readOnly: true }, async (engine) => {
    const state = await readState(engine);
    const source = { events: 'events', columns: state.columns, timezone: state.timezone };
    return {
      state,
      ...(await countEvents(engine, source)),
      columns: await countColumns(engine, source),
      sizeBytes: statSync(engine.file).size,
      runs: await readRuns(engine),
    };
  });
}
