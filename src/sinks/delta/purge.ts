import { defect } from '../../base/errors.ts';
import type { TableName } from '../../table/columns.ts';
import { eventColumns } from '../sql/files/columns.ts';
import { linkFailure, secondNameFailure } from '../sql/files/second-name.ts';
import { findPeople, peopleColumns } from '../sql/people.ts';
import type { PeopleFound, PeopleQuery, Purged, PurgeTrial } from '../target.ts';
import {
  commitChange,
  type EventsChange,
  type NewEventFile,
  type PreparedChange,
  prepareChange,
  type Settings,
} from './commit/change.ts';
import { columnsIn } from './commit/columns.ts';
import type { DataFile } from './files/data-file.ts';
import type { Lake, LakeOptions } from './lake.ts';
import { LOG_FOLDER } from './log/paths.ts';
import { eventRowsOf, relationOf } from './people.ts';
import { changeOf, rewriting, withLake, writeRows } from './rewrite.ts';
import type { Stored } from './storage/storage.ts';

/**
 * Looks the people up, rewrites every file that has rows of theirs, then removes everything that no longer belongs to the tables: older files
 * and, in a bucket, their earlier versions, so that no byte of the rows remains. It always commits, so that a writer that
 * began before cannot commit any more; the files of such a writer are removed too. Throws Failure.
 */
export async function purgeDelta(
  options: LakeOptions,
  query: PeopleQuery,
  onFound: (found: PeopleFound) => Promise<void> = async () => {},
): Promise<Purged> {
  let found: PeopleFound | undefined;
  const rewritten = await rewriting(options, async (lake, settings) => {
    const lookup = await findPeople(await eventRowsOf(lake, query), query);
    found = lookup.found;
    await onFound(found);
    const prepared = await preparePurge(lake, settings, { query, condition: lookup.condition, signal: options.signal });
    await refuseOtherNames(lake, prepared);
    await commitChange(lake, prepared, settings);
    for (const { name } of lake.tables.values()) await eraseOld(lake, name);
    return prepared.change.removed;
  });
  if (found === undefined) throw defect('A purge looked for nobody.');
  return { ...rewritten, found, unreached: [] };
}

/** Does the same without storing, committing and removing, but checks the permission to remove with an object of its own. */
export function checkPurgeDelta(options: LakeOptions, query: PeopleQuery): Promise<PurgeTrial> {
  return withLake(options, async (lake, settings) => {
    const { found, condition } = await findPeople(await eventRowsOf(lake, query), query);
    const prepared = await preparePurge(lake, settings, { query, condition, signal: options.signal });
    await refuseOtherNames(lake, prepared);
    await lake.storage.tryErase(prepared.change.removed.map(({ path }) => `events/${path}`));
    return { found, foreignTables: [] };
  });
}

interface Removal {
  readonly query: PeopleQuery;
  readonly condition: string;
  readonly signal: AbortSignal | undefined;
}

async function preparePurge(lake: Lake, settings: Settings, removal: Removal): Promise<PreparedChange> {
  const work = async () => prepareChange(lake, await purged(lake, removal, settings), settings);
  return await lake.prepare(work, removal.signal);
}

async function purged(lake: Lake, { query, condition }: Removal, settings: Settings): Promise<EventsChange> {
  const columns = lake.events.domains.columns() ?? [];
  const files = lake.events.files();
  const wanted = new Set(['_rescued', ...peopleColumns(columns, query).map(({ name }) => name)]);
  const locals = await lake.fetchColumns('events', files, wanted);
  const removed: DataFile[] = [];
  const added: NewEventFile[] = [];
  for (const file of files) {
    const from = relationOf(lake, query, [locals.get(file.path) ?? ''], file);
    const gone = Number((await lake.engine.row(`SELECT count(*) AS n FROM ${from} WHERE ${condition}`)).n);
    if (gone === 0) continue;
    removed.push(file);
    const rows = file.rows - gone;
    const all = relationOf(lake, query, [...(await lake.fetch('events', [file])).values()], file);
    const selected = `SELECT ${eventColumns(columnsIn(columns, file.columns))} FROM ${all} WHERE NOT ${condition}`;
    const what = { query: selected, rows, names: file.columns, date: file.date };
    if (rows > 0) added.push(await writeRows(lake, what, file.isSorted));
  }
  return changeOf(lake, { operation: 'DELETE', removed, added, isChange: true }, columns, settings);
}

/** Throws Failure if a file to remove has another hard link, under which its bytes would remain. */
async function refuseOtherNames(lake: Lake, { change, derived }: PreparedChange): Promise<void> {
  const removed = new Map<TableName, readonly DataFile[]>([
    ['events', change.removed],
    ...derived.map(({ name, removed: own }) => [name, own] as const),
  ]);
  for (const { name } of lake.tables.values()) {
    const gone = new Set((removed.get(name) ?? []).map(({ path }) => path));
    for await (const { path: full, names } of lake.storage.list(name)) {
      const path = full.slice(name.length + 1);
      const goes = gone.delete(path) || !(path.startsWith(`${LOG_FOLDER}/`) || lake.table(name).has(path));
      if (goes && names > 1) throw secondNameFailure(`${lake.address}/${full}`, names);
    }
    for (const path of gone) throw linkFailure(`${lake.address}/${name}/${path}`);
  }
}

/**
 * Removes files that are not part of a table. A file that is younger than the purge's commit may belong to a writer that began
 * after it and will commit it; an older one belongs to no writer that can still commit.
 */
async function eraseOld(lake: Lake, name: TableName): Promise<void> {
  const table = lake.table(name);
  if (!table.exists) return;
  const gone = table.tombstones();
  const since = await table.committedAt();
  const isKept = ({ path: full, modified }: Pick<Stored, 'path' | 'modified'>) => {
    const path = full.slice(name.length + 1);
    if (path.startsWith(`${LOG_FOLDER}/`) || table.has(path)) return true;
    return modified >= since && !gone.has(path);
  };
  await lake.storage.eraseAllBut(name, isKept, since);
}
