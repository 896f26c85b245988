import { hashedIn } from '../../extract/state.ts';
import { Zone } from '../../types/zone.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { type EventRows, findPeople, jsonOfRows } from '../sql/people.ts';
import type { PeopleFound, PeopleQuery, PersonRow } from '../target.ts';
import { checkStore, readState, withStore } from './store.ts';

type Options = Omit<EngineOptions, 'readOnly'>;

/** The rows of an open file, for a look-up of people. */
export async function eventRowsOf(engine: Engine): Promise<EventRows> {
  const { timezone, columns, exportState } = await readState(engine);
  const zone = timezone === null ? undefined : new Zone(timezone);
  return { engine, from: 'events', columns, hashed: hashedIn(exportState), zone, place: engine.file };
}

/** Who is found in a file. Opens it for reading alone. */
export function peopleInDuckDb(options: Options, query: PeopleQuery): Promise<PeopleFound> {
  return withStore(
    { ...options, readOnly: true },
    async (engine) => (await findPeople(await eventRowsOf(engine), query)).found,
  );
}

/** The rows of the people found, of `events`: the views hold nothing else. */
export async function* rowsInDuckDb(options: Options, query: PeopleQuery): AsyncGenerator<PersonRow> {
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    const { rows, condition } = await engine.guarded(async () => {
      await checkStore(engine);
      const source = await eventRowsOf(engine);
      return { rows: source, condition: (await findPeople(source, query)).condition };
    });
    for await (const row of jsonOfRows(rows, condition)) yield { table: 'events', row };
  } finally {
    await engine.close();
  }
}
