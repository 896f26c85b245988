import { hashedIn } from '../../extract/state.ts';
import { Zone } from '../../types/zone.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { type EventRows, findPeople, jsonOfRows } from '../sql/people.ts';
import type { PeopleFound, PeopleQuery, PersonRow } from '../target.ts';
import { type DatasetOptions, openExisting } from './dataset/dataset.ts';
import { eventFiles } from './dataset/manifest.ts';
import { type Existing, withExisting } from './rewrite.ts';

/** The rows of an open folder, for a look-up of people. */
export function eventRowsOf(dataset: Existing, place: string): EventRows {
  const { engine, manifest } = dataset;
  const paths = eventFiles(manifest).map(({ path }) => dataset.pathOf(path));
  const { columns, timezone } = manifest;
  return {
    engine,
    from: paths.length === 0 ? undefined : readFiles(paths),
    columns,
    hashed: hashedIn(manifest.state),
    zone: timezone === null ? undefined : new Zone(timezone),
    place,
  };
}

/** Who is found in a folder. Opens it as its writer. */
export function peopleInParquet(options: DatasetOptions, query: PeopleQuery): Promise<PeopleFound> {
  return withExisting(options, async (dataset) => (await findPeople(eventRowsOf(dataset, options.dir), query)).found);
}

/** The rows of the people found, of `events`: the other datasets hold nothing else. */
export async function* rowsInParquet(options: DatasetOptions, query: PeopleQuery): AsyncGenerator<PersonRow> {
  const dataset = await openExisting(options);
  try {
    const rows = eventRowsOf(dataset, options.dir);
    const { condition } = await findPeople(rows, query);
    for await (const row of jsonOfRows(rows, condition)) yield { table: 'events', row };
  } finally {
    await dataset.close();
  }
}
