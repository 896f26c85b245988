import { NO_PRIOR_LOADS, type PriorLoads } from '../../extract/window.ts';
import { fileExists } from '../sql/engine/database-file.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { readCoveredDays, rowsOfDays } from './tables/receipts.ts';
import { isPrepared, readEventNames, readState } from './tables/state.ts';

/** What an open file has stored about earlier runs. */
export async function priorLoadsOf(engine: Engine): Promise<PriorLoads> {
  return {
    state: await readState(engine),
    covered: await readCoveredDays(engine),
    eventNames: await readEventNames(engine),
    rowsOf: await rowsOfDays(engine),
  };
}

/** Opens a file read-only and reads the same; `NO_PRIOR_LOADS` if nothing was loaded yet. Throws Failure. */
export async function readDuckDbPriorLoads(options: Omit<EngineOptions, 'readOnly'>): Promise<PriorLoads> {
  // Before the first run there is no file, and none is created.
  if (!fileExists(options.file)) return NO_PRIOR_LOADS;
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    return (await isPrepared(engine)) ? await priorLoadsOf(engine) : NO_PRIOR_LOADS;
  } catch (error) {
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}
