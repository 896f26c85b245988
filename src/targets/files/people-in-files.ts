import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { readLines } from '../../base/byte-streams.ts';
import { formatDays } from '../../base/days.ts';
import { configError, UserError } from '../../base/errors.ts';
import { dayOfRowSql } from '../../engine/column-sql.ts';
import { findPeople, jsonOfRows } from '../../engine/people/find-people.ts';
import type { PeopleQuery } from '../../engine/people/people.ts';
import { countRowsByDay } from '../../engine/rows/row-counts.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import { RunFolder, sweepRunFolders } from '../../fs/run-folder.ts';
import { withoutRows, withTable } from '../../table/place-state.ts';
import { nextChangedAt } from '../../table/receipts.ts';
import { TABLES, USER_PROFILES } from '../../table/tables.ts';
import type { OnFound, PeopleOperations, PlaceOptions, Removal } from '../contract.ts';
import type { FilesFormat, OpenPlace } from './format.ts';
import { readPlace, requireLoaded, withPlace } from './open-place.ts';
import { bytesIn, damageWarnings, type FileChange, type PlaceVersion } from './place-version.ts';
import { relationSqlOf } from './read-files.ts';
import { rewriteFile } from './rewrite-files.ts';

export const peopleOperationsOfFiles = (format: FilesFormat, options: PlaceOptions): PeopleOperations => ({
  find: (query) =>
    readPlace(format, options, async (place, version) => (await findPeopleInFiles(place, version, query)).findings),
  rows: (query) => streamRows(format, options, query),
  previewPurge: (query) =>
    withPlace(format, options, 'purge or prune', async (place, version) => {
      const { findings } = await place.engine.transaction(() => planRemoval(place, version, query));
      const foreignFiles = await format.findForeignFiles(place, version);
      return { findings, foreignNames: foreignFiles.map(({ path }) => path) };
    }),
  purge: (query, onFound) => purge(format, options, query, onFound),
});

async function* streamRows(format: FilesFormat, options: PlaceOptions, query: PeopleQuery) {
  const runFolder = await RunFolder.open(options.spoolDir, options.clock);
  try {
    // Rows wait on the disk until it is known that the files from which they were read belong together.
    const path = `${runFolder.path}/rows`;
    await readPlace(format, options, async (place, version) => {
      const { searchedPlace, conditions } = await findPeopleInFiles(place, version, query);
      const lines = async function* () {
        for await (const row of jsonOfRows(searchedPlace, conditions)) yield `${row}\n`;
      };
      await pipeline(lines, createWriteStream(path, { mode: PRIVATE_FILE_MODE }));
    });
    for await (const lines of readLines(createReadStream(path))) {
      for (const line of lines) yield line.toString('utf8');
    }
  } finally {
    await runFolder.remove();
  }
}

/**
 * Looks the people up in the latest version, calls `onFound`, and removes all of their rows in one commit. Then it
 * removes every byte that is no longer part of the table. A Delta log gets a commit even if nobody is found: a writer
 * that began before can then no longer commit.
 */
function purge(format: FilesFormat, options: PlaceOptions, query: PeopleQuery, onFound: OnFound): Promise<Removal> {
  return withPlace(format, options, 'purge or prune', async (place, versionAtOpen) => {
    const { engine, localFiles } = place;
    const { version: versionAfter, result } = await format.commit(place, versionAtOpen, async (version) => {
      requireLoaded(place, version);
      const { findings, stateAfter, rewrites } = await engine.transaction(() => planRemoval(place, version, query));
      const fileChanges: FileChange[] = [];
      for (const { file, tableAfter, leavingSql } of rewrites) {
        fileChanges.push(await engine.transaction(() => rewriteFile(localFiles, file, tableAfter, leavingSql)));
      }
      const suppressionLength = await onFound(findings);
      return {
        change: { kind: 'purge', state: { ...stateAfter, suppressionLength }, fileChanges },
        result: { findings, bytesBefore: bytesIn(version) },
      };
    });
    const { findings, bytesBefore } = result;
    const eraseSentences = await tryEraseHistory(place, versionAfter);
    const damageSentences = damageWarnings(versionAfter).map((message) => `People may still be there: ${message}`);
    const { liveFolders, sweepSentences } = await sweepRuns(place);
    return {
      rowsRemoved: findings.rowCount + findings.suppressedOthers.rowCount,
      bytesBefore,
      bytesAfter: bytesIn(versionAfter),
      unreached: [...eraseSentences, ...damageSentences, ...sweepSentences],
      liveFolders,
    };
  });
}

/** Removes every byte that is no longer part of the table; a sentence if some are still there. */
async function tryEraseHistory(place: OpenPlace, version: PlaceVersion): Promise<string[]> {
  const { signal, address } = place.options;
  try {
    await place.format.eraseHistory(place, version);
    return [];
  } catch (thrown) {
    signal.throwIfAborted();
    const error = diskError(thrown, { path: address });
    if (!(error instanceof UserError)) throw error;
    const consequence = 'The people are in no table any more, but files that hold them are still there';
    return [`${error.message} ${consequence}: the same command removes these.`];
  }
}

/** Removes what dead runs left in this place. Names what was not removed, and the folders of live runs. */
async function sweepRuns({ storage, runFolder }: OpenPlace) {
  if (storage.workFolder === undefined) return { sweepSentences: [], liveFolders: [] };
  const sweep = await sweepRunFolders(storage.workFolder);
  const sweepSentences = [
    ...sweep.stuckFolders.map(
      (path) => `${path} is that of a dead run, may hold the people, and could not be removed: remove it.`,
    ),
    ...sweep.foreignFolders.map(
      (path) => `${path} may hold the people, and is not of this user alone: remove it once its run is over.`,
    ),
  ];
  return { sweepSentences, liveFolders: sweep.liveFolders.filter((path) => path !== runFolder.path) };
}

async function findPeopleInFiles(place: OpenPlace, version: PlaceVersion, query: PeopleQuery) {
  const { state, files, damagedFiles, removedDays } = version;
  const { address } = place.options;
  const warnings = damageWarnings(version).map((message) => `${address}: ${message}`);
  const lacksProfiles = damagedFiles.some(({ tableName }) => tableName === USER_PROFILES.name);
  if (lacksProfiles && query.searchesProfiles && query.ids.length > 0) {
    throw configError(`People could be missed. ${warnings.join(' ')} Or give --mapping FILE.`);
  }
  if (removedDays.length > 0)
    warnings.push(
      `${address}: the files of ${formatDays(removedDays)} are gone. Wherever they are, people stay in them.`,
    );
  const relations = {
    events: await relationSqlOf(place.localFiles, 'events', state.events, files),
    user_profiles:
      state.user_profiles && (await relationSqlOf(place.localFiles, 'user_profiles', state.user_profiles, files)),
  };
  const searchedPlace = { engine: place.engine, placeName: address, state, relations, warnings };
  return { searchedPlace, ...(await findPeople(searchedPlace, query)) };
}

/**
 * Looks the people up. Gives the state without their rows, and how each file with some is to be rewritten. Throws
 * unless every byte of these files can be removed.
 */
async function planRemoval(place: OpenPlace, version: PlaceVersion, query: PeopleQuery) {
  const { searchedPlace, conditions, findings } = await findPeopleInFiles(place, version, query);
  let stateAfter = version.state;
  const rewrites = [];
  for (const table of TABLES) {
    const relation = searchedPlace.relations[table.name];
    const tableBefore = version.state[table.name];
    if (relation === undefined || tableBefore === undefined) continue;
    const leavingSql = conditions[table.name];
    const daySql = dayOfRowSql(table, tableBefore.receipts.keys());
    const rowsLost = await countRowsByDay(place.engine, `${relation} WHERE ${leavingSql}`, daySql);
    const changedAt = nextChangedAt(tableBefore.receipts, place.engine.clock.now());
    const tableAfter = withoutRows(tableBefore, rowsLost, changedAt);
    stateAfter = withTable(stateAfter, table, tableAfter);
    const filesWithPeople = version.files.filter((file) => file.tableName === table.name && rowsLost.has(file.day));
    rewrites.push(...filesWithPeople.map((file) => ({ file, tableAfter, leavingSql })));
  }
  await place.storage.checkErasable(rewrites.map(({ file }) => file.path));
  return { findings, stateAfter, rewrites };
}
