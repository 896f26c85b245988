import { hashedIn } from '../../extract/state.ts';
import { type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { findPeople } from '../sql/people.ts';
import type { Match, TextsIn } from '../target.ts';
import { readColumns } from './tables/columns.ts';
import { checkStore, readState } from './tables/state.ts';

/** The people of the rows whose column holds one of these texts. Opens the file for reading alone. */
export async function peopleInDuckDb(
  options: Omit<EngineOptions, 'readOnly'>,
  column: string,
  textsIn: TextsIn,
): Promise<Match> {
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    await checkStore(engine);
    const rows = { engine, from: 'events', columns: await readColumns(engine), place: engine.file };
    return await findPeople(rows, column, textsIn(hashedIn(await readState(engine))));
  } catch (error) {
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}
