import { hashedIn } from '../../extract/state.ts';
import { Zone } from '../../types/zone.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { type EventRows, findPeople, jsonOfRows } from '../sql/people.ts';
import type { PeopleFound, PeopleQuery, PersonRow } from '../target.ts';
import { checkStore, readingStore, readState } from './store.ts';

type Options = Omit<EngineOptions, 'readOnly'>;

/** The rows of an open file, for a look-up of people. */
export async function eventRowsOf(engine: Engine): Promise<EventRows> {
  const { timezone, columns, cursor } = await readState(engine);
  const zone = timezone === null ? undefined : new Zone(timezone);
  return { engine, from: 'events', columns, hashed: hashedIn(cursor), zone, place: engine.file };
}

/** Who is found in a file. Opens it for reading alone. */
export function peopleInDuckDb(options: Options, query: PeopleQuery): Promise<PeopleFound> {
  return readingStore(options, async (engine) => (await findPeople(await eventRowsOf(engine), query)).found);
}

/** The rows of the people found, of `events`: the views hold nothing else. */
export async function* rowsInDuckDb(options: Options, query: PeopleQuery): AsyncGenerator<PersonRow> {
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    await checkStore(engine);
    const rows = await eventRowsOf(engine);
    const { condition } = await findPeople(rows, query);
    for await (const row of jsonOfRows(rows, condition)) {
      options.signal?.throwIfAborted();
      yield { table: 'events', row };
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}
