import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { internalError } from '../../base/errors.ts';
import { linesOf } from '../../base/lines.ts';
import { EVENT_NAME } from '../../cells/columns/groups.ts';
import { namesOf } from '../../engine/naming-objects.ts';
import { findPeople, jsonOfRows, type Lookup, peopleColumns } from '../../engine/people.ts';
import { eventNamesIn } from '../../engine/rows/counts.ts';
import { RunFolder } from '../../extract/spool/run-folder.ts';
import { OWNER_FILE } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import type { StoredColumn } from '../../table/columns.ts';
import type { PeopleQuery, PurgeOptions, PurgeTrial } from '../people.ts';
import { type DataFile, type NewFile, type ReadableFile, without } from './data-file.ts';
import { columnsIn, eventRows, selectOf, withUnloggedColumns } from './file-columns.ts';
import { copiesOf, type FileTable, readingTable, withTable } from './file-table.ts';
import type { FilesFormat, OpenFilesOptions } from './files-format.ts';
import { countByFile, FILE, readFiles } from './parquet-file.ts';
import { changeOf, resultOf, sizeOf } from './rewrite.ts';
import { type FileChange, LostRace } from './table-log.ts';

/** Attempts at a purge whose commit loses a race against another writer. */
const PURGE_ATTEMPTS = 5;

/** Finds people; finishes what a dead writer left half-way first: a purge that is run again begins here. */
export async function peopleInFiles(format: FilesFormat, options: OpenFilesOptions, query: PeopleQuery) {
  await format.finishChange?.(options);
  return readingTable(format, options, async (table) => (await lookUp(table, query)).lookup.found);
}

export async function* rowsOfPeopleInFiles(format: FilesFormat, options: OpenFilesOptions, query: PeopleQuery) {
  const run = await RunFolder.open(options.spoolDir, options.clock, 'files');
  try {
    // Rows wait on the disk until it is known that the files from which they were read belong together.
    const path = join(run.path, 'rows');
    await readingTable(format, options, async (table) => {
      const { lookup, from } = await lookUp(table, query, { wholeRows: true });
      const stored = from && `(SELECT * EXCLUDE (${FILE}) FROM ${from})`;
      const rows = jsonOfRows({ engine: table.engine, from: stored }, lookup.condition);
      await pipeline(rows, withLineEnds, createWriteStream(path, { mode: OWNER_FILE }));
    });
    for await (const lines of linesOf(createReadStream(path))) {
      for (const line of lines) yield line.toString('utf8');
    }
  } finally {
    await run.remove();
  }
}

async function* withLineEnds(rows: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const row of rows) yield `${row}\n`;
}

const NOT_ERASED =
  'the people are in no table any more, but files that hold them are still there: the same command removes these';

/**
 * Looks the people up in the latest version, calls `onFound`, removes all of their rows in one commit, and then removes
 * all that is no longer part of the tables. It commits even if nobody is found, so that a writer that began before can
 * no longer commit. If another writer commits first, it starts again. Throws UserError.
 */
export function purgeFiles(format: FilesFormat, options: OpenFilesOptions & PurgeOptions, query: PeopleQuery) {
  return withTable(format, options, 'rewrite', async (table) => {
    for (let attempt = 1; ; attempt++) {
      const before = sizeOf(table);
      const { lookup, change } = await findAndRewrite(table, query, options.signal);
      await table.log.tryErase(change.removed);
      await options.onFound(lookup.found);
      try {
        await table.commit(change);
      } catch (error) {
        if (!(error instanceof LostRace) || attempt >= PURGE_ATTEMPTS) throw error;
        await table.log.read();
        continue;
      }
      const unerased = await table.log.erase().catch((error: unknown) => {
        throw diskError(error, { what: table.place, path: table.place, consequence: NOT_ERASED });
      });
      const files = change.removed.filter((file) => file.table === 'events');
      const others = await table.otherFolders();
      const unreached = [...unerased, ...others.dead.map(deadRunSentence)];
      return { ...resultOf(table, before, files), found: lookup.found, unreached, inUse: others.inUse };
    }
  });
}

const deadRunSentence = (folder: string): string =>
  `${folder} is that of a run that is dead, or that cannot be looked for, may hold the people, and could not be ` +
  'removed: see that this user can remove it, and run the purge again.';

/** Runs the steps of a purge without `onFound`, without the commit and without what follows it. Throws UserError. */
export function tryPurgeFiles(format: FilesFormat, options: OpenFilesOptions, query: PeopleQuery): Promise<PurgeTrial> {
  return withTable(format, options, 'rewrite', async (table) => {
    const { lookup, change } = await findAndRewrite(table, query, options.signal);
    await table.log.tryErase(change.removed);
    return {
      found: lookup.found,
      foreignTables: (await table.log.foreign?.(namesOf(query, lookup.found))) ?? [],
    };
  });
}

async function findAndRewrite(table: FileTable, query: PeopleQuery, signal: AbortSignal | undefined) {
  return table.engine.transaction(async () => {
    const search = await lookUp(table, query);
    return { lookup: search.lookup, change: await withoutPeople(table, query, search) };
  }, signal);
}

interface Search {
  readonly lookup: Lookup;
  /** The relation that was searched; it names the file of a row. */
  readonly from: string | undefined;
  /** The files of `events`, with local copies of the columns that it reads. */
  readonly files: readonly ReadableFile[];
}

/** Looks people up. `wholeRows`: all columns are read, and not only those that a look-up needs. */
async function lookUp(table: FileTable, query: PeopleQuery, { wholeRows = false } = {}): Promise<Search> {
  const { engine, place, zone } = table;
  const { state } = table.snapshot;
  const { columns } = state;
  const stored = table.filesOf('events');
  const wanted = peopleColumns(columns, query);
  const names = new Set(['_rescued', ...wanted.map(({ name }) => name)]);
  const fetched = await table.fetch(stored, wholeRows ? undefined : names);
  const files = await withUnloggedColumns(engine, fetched, wholeRows ? columns : wanted);
  const from = wholeRows ? eventRows(files, columns, zone) : eventRows(files, wanted, zone, ['_rescued']);
  return { lookup: await findPeople({ engine, from, place, state }, query), from, files };
}

/** Rewrites every file that has rows of these people without them. */
async function withoutPeople(table: FileTable, query: PeopleQuery, { lookup, from, files }: Search) {
  const { state } = table.snapshot;
  const removed: DataFile[] = [];
  const added: NewFile[] = [];
  const counts = from === undefined ? new Map() : await countByFile(table.engine, from, lookup.condition);
  for (const file of files) {
    const lost = counts.get(file.copy) ?? 0;
    if (lost === 0) continue;
    removed.push(file);
    if (lost === file.rows) continue;
    const [whole] = await withUnloggedColumns(table.engine, await table.fetch([file]), state.columns);
    const columns = columnsIn(state.columns, whole.columns);
    // The condition reads columns that a file may lack; they are NULL there.
    const read = new Set<StoredColumn>([...columns, ...peopleColumns(state.columns, query)]);
    const rowsOf = eventRows([whole], [...read], table.zone);
    const select = `SELECT ${selectOf(columns, whole.columns, table.zone)} FROM ${rowsOf} WHERE NOT ${lookup.condition}`;
    const rows = file.rows - lost;
    const { date, isSorted } = file;
    const written = await table.write({ table: 'events', date, query: select, rows, isSorted });
    if (written.rows !== rows) {
      throw internalError(
        `${file.path} came to ${written.rows} rows without these people instead of ${rows}: nothing was changed.`,
      );
    }
    added.push(written);
  }
  const change = await changeOf(table, 'purge', { removed, added });
  return { ...change, state: { ...change.state, eventNames: await remainingNames(table, change) } };
}

/** The stored event names that remaining rows still have: a name that only removed people had is removed as well. */
async function remainingNames(table: FileTable, { removed, added }: FileChange): Promise<readonly string[]> {
  const { eventNames, columns } = table.snapshot.state;
  if (eventNames.length === 0) return eventNames;
  const own = columns.filter(({ source }) => source === EVENT_NAME);
  const kept = without(table.filesOf('events'), removed);
  const read = await table.fetch(kept, new Set(own.map(({ name }) => name)));
  const newFiles = added.filter((file) => file.table === 'events');
  const paths = [...copiesOf(read), ...newFiles.map(({ local }) => local)];
  if (paths.length === 0) return [];
  const there = new Set(await eventNamesIn(table.engine, readFiles(paths), columns));
  return eventNames.filter((name) => there.has(name));
}
