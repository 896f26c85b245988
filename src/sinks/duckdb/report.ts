import { statSync } from 'node:fs';
import { configFailure } from '../../base/errors.ts';
import { REPORTED_RECORDS, type ReportedWindow, type TargetReport } from '../report.ts';
import { fileExists } from '../sql/engine/database-file.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { countColumns, countEvents } from '../sql/report.ts';
import { readChanges } from './tables/changes.ts';
import { readColumns } from './tables/columns.ts';
import { readRuns } from './tables/runs.ts';
import { checkStore, readState, readTimezone } from './tables/state.ts';

/** All that a report says of a DuckDB file, which is opened for reading alone. Throws Failure. */
export async function reportDuckDb(options: Omit<EngineOptions, 'readOnly'>): Promise<TargetReport> {
  if (!fileExists(options.file)) throw configFailure(`${options.file} does not exist: load it with sync duckdb first.`);
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    await checkStore(engine);
    const timezone = await readTimezone(engine);
    const source = { events: 'events', columns: await readColumns(engine), timezone };
    return {
      ...(await countEvents(engine, source)),
      columns: await countColumns(engine, source),
      sizeBytes: statSync(engine.file).size,
      state: await readState(engine),
      timezone,
      windows: await readWindows(engine),
      runs: await readRuns(engine, REPORTED_RECORDS),
      changes: await readChanges(engine, REPORTED_RECORDS),
    };
  } catch (error) {
    options.signal?.throwIfAborted();
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}

async function readWindows(engine: Engine): Promise<ReportedWindow[]> {
  const rows = await engine.rows(
    `SELECT CAST(from_date AS VARCHAR) AS first, CAST(to_date AS VARCHAR) AS last, CAST(covers_from AS VARCHAR) AS "coversFrom",
      CAST(covers_to AS VARCHAR) AS "coversTo", rows, bytes, exports,
      strftime(timezone('UTC', verified_at), '%Y-%m-%dT%H:%M:%S.%gZ') AS "verifiedAt"
    FROM _dfinery_windows ORDER BY number`,
  );
  return rows.map((row) => ({
    from: String(row.first),
    to: String(row.last),
    coversFrom: String(row.coversFrom),
    coversTo: typeof row.coversTo === 'string' ? row.coversTo : null,
    rows: Number(row.rows),
    bytes: Number(row.bytes),
    exports: Number(row.exports),
    verifiedAt: String(row.verifiedAt),
  }));
}
