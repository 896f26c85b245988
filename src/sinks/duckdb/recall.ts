import { type Memory, NO_MEMORY } from '../memory.ts';
import { fileExists } from '../sql/engine/database-file.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { readCoveredDays, rowsOfDays } from './tables/receipts.ts';
import { isPrepared, readEventNames, readState } from './tables/state.ts';

/** What an open file has stored about earlier runs. */
export async function readMemory(engine: Engine): Promise<Memory> {
  return {
    state: await readState(engine),
    covered: await readCoveredDays(engine),
    eventNames: await readEventNames(engine),
    rowsOf: await rowsOfDays(engine),
  };
}

/** Opens a file read-only and reads the same; `NO_MEMORY` if nothing was loaded yet. Throws Failure. */
export async function recallDuckDb(options: Omit<EngineOptions, 'readOnly'>): Promise<Memory> {
  // Before the first run there is no file, and none is created.
  if (!fileExists(options.file)) return NO_MEMORY;
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    return (await isPrepared(engine)) ? await readMemory(engine) : NO_MEMORY;
  } catch (error) {
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}
