import { hashedIn } from '../../extract/state.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { Zone } from '../../types/zone.ts';
import { typedNull } from '../sql/columns/typed.ts';
import { identifier } from '../sql/engine/quote.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { type EventRows, findPeople, jsonOfRows, peopleColumns } from '../sql/people.ts';
import type { PeopleFound, PeopleQuery, PersonRow } from '../target.ts';
import type { DataFile } from './files/data-file.ts';
import type { Lake, LakeOptions } from './lake.ts';
import { withLake } from './rewrite.ts';

/** Who is found in the tables. Opens the place as a writer does, so that what cannot be purged shows before anything is deleted. */
export function peopleInDelta(options: LakeOptions, query: PeopleQuery): Promise<PeopleFound> {
  return withLake(options, async (lake) => (await findPeople(await eventRowsOf(lake, query), query)).found);
}

/** The rows of the people found, of `events`: the other tables hold nothing else. */
export async function* rowsInDelta(options: LakeOptions, query: PeopleQuery): AsyncGenerator<PersonRow> {
  const found = await withLake(options, async (lake) => {
    const { condition } = await findPeople(await eventRowsOf(lake, query), query);
    const rows: string[] = [];
    for (const file of lake.events.files()) {
      const from = relationOf(lake, query, [...(await lake.fetch('events', [file])).values()], file);
      for await (const row of jsonOfRows({ engine: lake.engine, from }, condition)) rows.push(row);
    }
    return rows;
  });
  for (const row of found) yield { table: 'events', row };
}

/** The rows of open tables, for a look-up of people: of each file the columns that it reads. */
export async function eventRowsOf(lake: Lake, query: PeopleQuery): Promise<EventRows> {
  const { domains } = lake.events;
  const columns = domains.columns() ?? [];
  const wanted = peopleColumns(columns, query).map(({ name }) => name);
  const isThere = columns.some(({ source, type }) => source === (query.column ?? UNIFIED_ID) && type !== null);
  const files = isThere ? lake.events.files() : [];
  const locals = await lake.fetchColumns('events', files, new Set(['_rescued', ...wanted]));
  const selected = ['_rescued', ...wanted.map(identifier)].join(', ');
  const parts = [...groupsOf(files, wanted)].map(
    (group) =>
      `SELECT ${selected} FROM ${relationOf(
        lake,
        query,
        group.map(({ path }) => locals.get(path) ?? ''),
        group[0],
      )}`,
  );
  return {
    engine: lake.engine,
    from: parts.length === 0 ? undefined : `(${parts.join(' UNION ALL ')})`,
    columns,
    hashed: hashedIn(domains.state()),
    zone: zoneOf(lake),
    place: lake.address,
  };
}

/** Files that lack the same of these columns. */
function groupsOf(files: readonly DataFile[], names: readonly string[]): Iterable<DataFile[]> {
  const groups = new Map<string, DataFile[]>();
  for (const file of files) {
    const lacking = names.filter((name) => !file.columns.has(name)).join('\0');
    groups.set(lacking, [...(groups.get(lacking) ?? []), file]);
  }
  return groups.values();
}

/** Local copies of files that have the columns of `file`, with NULL for those of a look-up that they lack. */
export function relationOf(
  lake: Lake,
  query: PeopleQuery,
  locals: readonly string[],
  { columns }: Pick<DataFile, 'columns'>,
): string {
  const lacking = peopleColumns(lake.events.domains.columns() ?? [], query).filter(({ name }) => !columns.has(name));
  const nulls = lacking.map(({ name, type }) => `${typedNull(type, zoneOf(lake))} AS ${identifier(name)}`);
  return `(SELECT ${['*', ...nulls].join(', ')} FROM ${readFiles(locals)})`;
}

function zoneOf(lake: Lake): Zone | undefined {
  const { timezone } = lake.events.domains.table() ?? {};
  return typeof timezone === 'string' ? new Zone(timezone) : undefined;
}
