import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import { linesOf } from '../../base/lines.ts';
import { retryOnError } from '../../base/retry.ts';
import { findPeople, jsonOfRows, type PlaceLookup, type SearchedPlace } from '../../engine/people/find.ts';
import { joinPeople, NOBODY, type PeopleFound, type PeopleQuery } from '../../engine/people/query.ts';
import { rowsByDay } from '../../engine/rows/counts.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { OWNER_FILE_MODE } from '../../fs/permissions.ts';
import { RunFolder, sweepRunFolders } from '../../fs/run-folder.ts';
import { profilesAsTable, profilesWithout } from '../../table/place-state.ts';
import { nextChangedAt, withRows } from '../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import type { People, PurgeOptions, PurgePreview, PurgeResult } from '../people-contract.ts';
import type { FilesPlace } from './files-place.ts';
import {
  bytesIn,
  type Change,
  damageIn,
  type FilesFormat,
  type FilesOptions,
  LostRace,
  type NewFile,
} from './format.ts';
import { readPlace, withPlace } from './with-place.ts';

/** Attempts at a purge whose commit loses a race against another writer. */
const PURGE_ATTEMPTS = 5;

export const peopleIn = (format: FilesFormat): People => ({
  find: (address, query, options) =>
    readPlace(format, { ...options, address }, async (place) => (await lookUp(place, query)).lookup.people),
  rows: (address, query, options) => streamRows(format, { ...options, address }, query),
  previewPurge: (address, query, options) => previewPurge(format, { ...options, address }, query),
  purge: (address, query, options) => purge(format, { ...options, address }, query),
});

async function* streamRows(format: FilesFormat, options: FilesOptions, query: PeopleQuery) {
  const run = await RunFolder.open(options.spoolDir, options.clock, 'files');
  try {
    // Rows wait on the disk until it is known that the files from which they were read belong together.
    const path = `${run.path}/rows`;
    let damaged: string[] = [];
    await readPlace(format, options, async (place) => {
      const { lookup, tables } = await lookUp(place, query);
      const rows = jsonOfRows(tables, lookup.conditions);
      await pipeline(rows, withLineEnds, createWriteStream(path, { mode: OWNER_FILE_MODE }));
      damaged = damageIn(place.version);
    });
    for (const message of damaged) options.logger.warn('files.damaged', `${options.address}: ${message}`);
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

/** Runs the steps of a purge before its commit. Like every run, it first finishes what a killed run left. */
function previewPurge(format: FilesFormat, options: FilesOptions, query: PeopleQuery): Promise<PurgePreview> {
  return withPlace(format, options, 'rewrite', async (place) => {
    const { people, change } = await planRemoval(place, query);
    await checkErasable(place, change);
    return { people, foreign: await place.log.foreign() };
  });
}

const NOT_ERASED =
  'The people are in no table any more, but files that hold them are still there: the same command removes these.';

/**
 * Looks the people up in the latest version, calls `onFound`, and removes all of their rows in one commit. Then it
 * removes every byte that is no longer part of the table. It commits even if nobody is found, so that a writer that
 * began before can no longer commit. If another writer commits first, it starts again.
 */
function purge(format: FilesFormat, options: FilesOptions & PurgeOptions, query: PeopleQuery): Promise<PurgeResult> {
  return withPlace(format, options, 'rewrite', async (place) => {
    const bytesBefore = bytesIn(place.version);
    const removed = await removeRows(place, query, options);
    const unerased = await eraseBytes(place, options.signal);
    const { inUse, unswept } = await sweepRuns(place);
    const damaged = damageIn(place.version).map((message) => `They may hold the people: ${message}`);
    const unreached = [...unerased, ...damaged, ...unswept];
    return { ...removed, bytesBefore, bytesAfter: bytesIn(place.version), unreached, inUse };
  });
}

/**
 * Removes the rows of the people. It tries again if another writer commits first. The result is that of the attempt
 * which found the most rows. An attempt that lost the race for profiles has already removed those of events.
 */
async function removeRows(place: FilesPlace, query: PeopleQuery, { onFound }: PurgeOptions) {
  let removed: { people: PeopleFound; rowsRemoved: number } = { people: NOBODY, rowsRemoved: -1 };
  // Whoever was found once is found in the next attempt, too.
  let { knownPeople } = query;
  const attempt = () =>
    place.commit(async () => {
      const { people, change } = await planRemoval(place, { ...query, knownPeople });
      knownPeople = joinPeople(knownPeople, people.peopleOf);
      const rows = people.rows + people.suppressedOthers.rows;
      if (rows > removed.rowsRemoved) removed = { people, rowsRemoved: rows };
      await checkErasable(place, change);
      const suppressionLength = await onFound(people);
      return { change: { ...change, state: { ...change.state, suppressionLength } }, report: undefined };
    });
  await retryOnError(PURGE_ATTEMPTS, (error) => error instanceof LostRace, attempt);
  return removed;
}

/** Throws unless every byte of the files that leave could be removed. Changes nothing. */
function checkErasable({ storage, version: { files, profiles } }: FilesPlace, change: Change): Promise<void> {
  const ofEvents = (change.events?.removed ?? []).flatMap((day) => files.get(day)?.path ?? []);
  const ofProfiles = change.profiles === undefined || profiles === undefined ? [] : [profiles.path];
  return storage.checkErasable([...ofEvents, ...ofProfiles]);
}

/** Removes every byte that is no longer part of the table; a sentence if some are still there. */
async function eraseBytes(place: FilesPlace, signal: AbortSignal | undefined): Promise<string[]> {
  try {
    await place.log.erase();
    return [];
  } catch (thrown) {
    signal?.throwIfAborted();
    const error = diskError(thrown, { what: place.address, path: place.address });
    if (!(error instanceof UserError)) throw error;
    return [`${error.message} ${NOT_ERASED}`];
  }
}

/** Removes what dead runs left in this place. Names what could not be removed, and the folders of live runs. */
async function sweepRuns({ storage, runFolder, engine }: FilesPlace) {
  if (storage.workFolder === undefined) return { unswept: [], inUse: [] };
  const { unremovable, liveFolders } = await sweepRunFolders(storage.workFolder, engine.options.clock.now());
  const unswept = unremovable.map(
    (path) => `${path} is that of a dead run, may hold the people, and could not be removed: remove it.`,
  );
  return { unswept, inUse: liveFolders.filter((path) => path !== runFolder) };
}

interface Search {
  readonly lookup: PlaceLookup;
  readonly tables: SearchedPlace;
}

async function lookUp(place: FilesPlace, query: PeopleQuery): Promise<Search> {
  const { engine, address } = place;
  const { state } = place.version;
  const events = await place.eventsRelation();
  const profiles = profilesAsTable(state);
  const tables = {
    events: { engine, name: EVENTS.name, relation: events, place: address, state },
    profiles: profiles && {
      engine,
      name: USER_PROFILES.name,
      relation: await place.profilesRelation(),
      place: address,
      state: profiles,
    },
  };
  return { lookup: await findPeople(tables, query), tables };
}

async function planRemoval(place: FilesPlace, query: PeopleQuery) {
  return place.engine.transaction(async () => {
    const search = await lookUp(place, query);
    return { people: search.lookup.people, change: await changeOfRemoval(place, search) };
  });
}

/** Writes every file anew that has rows of these people. */
async function changeOfRemoval(place: FilesPlace, { lookup: { conditions }, tables }: Search): Promise<Change> {
  const { engine, version } = place;
  const { state } = version;
  const { relation: events } = tables.events;
  const changedAt = nextChangedAt(state.receipts, engine.options.clock.now());

  const rowsLost =
    events === undefined ? new Map<Day, number>() : await rowsByDay(engine, `${events} WHERE ${conditions.events}`);
  const files = [...rowsLost.keys()].flatMap((day) => version.files.get(day) ?? []);
  const added: NewFile[] = [];
  const rows = new Map<Day, number>();
  for (const file of files) {
    const leaving = { isLeaving: conditions.events, rowsLost: rowsLost.get(file.day) ?? 0, changedAt };
    const rewritten = await place.rewrite(file, state, leaving);
    if (rewritten !== undefined) added.push(rewritten);
    rows.set(file.day, rewritten?.rows ?? 0);
  }
  const profiles = await profilesWithoutPeople(place, tables.profiles?.relation, conditions.profiles, changedAt);
  const receipts = withRows(state.receipts, rows, changedAt);
  return {
    kind: 'purge',
    state: { ...state, receipts, profiles: profiles?.stored ?? state.profiles },
    events: { removed: files.map(({ day }) => day), added },
    profiles: profiles?.files,
  };
}

/** Writes the file of profiles anew without the rows that meet a condition; undefined if there is none of them. */
async function profilesWithoutPeople(
  place: FilesPlace,
  profiles: string | undefined,
  isLeaving: string,
  changedAt: string,
) {
  const { state, profiles: file } = place.version;
  const table = profilesAsTable(state);
  if (state.profiles === undefined || table === undefined || file === undefined || profiles === undefined)
    return undefined;
  const rowsLost = await place.engine.count(`${profiles} WHERE ${isLeaving}`);
  if (rowsLost === 0) return undefined;
  const stored = profilesWithout(state.profiles, rowsLost, changedAt);
  const rewritten = await place.rewrite(file, table, { isLeaving, rowsLost, changedAt, profiles: stored });
  return { stored, files: { removed: [file.day], added: rewritten === undefined ? [] : [rewritten] } };
}
