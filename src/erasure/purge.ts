import { configError, defectText, EXIT, systemError, transientError, UserError } from '../base/errors.ts';
import { count, withSeparators } from '../base/quantities.ts';
import { type PeopleFound, personOf, type SuppressedPeople, type UnifiedIds } from '../engine/people/query.ts';
import { serviceFingerprint } from '../extract/export-request.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import type { Place, StatefulTarget } from '../targets/contract.ts';
import type { PurgePreview, PurgeResult } from '../targets/people-contract.ts';
import type { ServiceAddress } from './ledger/chain.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
import {
  addPeople,
  olderListSentences,
  readForPurge,
  requireSuppression,
  requireWritableList,
  type SuppressionFile,
} from './suppression.ts';
import { findInAllWays, type ListedPeople, type PeopleSearch, placeName } from './ways.ts';

export interface PurgeSettings extends PeopleSearch {
  /** Where the people are kept, so that they stay away. */
  readonly suppression: SuppressionFile;
  /** True to purge the people of the suppression list alone, in place of a list of ids. */
  readonly isSuppressed: boolean;
  /** True to have the places remember the suppression list as it is, also if they knew more people on it. */
  readonly isNewList: boolean;
  /** Undefined for three for each id, ten at least. */
  readonly maxPeople: number | undefined;
  readonly allowsShared: boolean;
}

/** One place: who was found there last, and what became of them. */
export interface PlacePurge extends Place<StatefulTarget>, PurgePreview {
  readonly name: string;
  /** Present once all rows that can be read are removed. */
  readonly result?: PurgeResult;
  /** Why the people are, or may be, still there. */
  readonly failure?: UserError;
}

/** Who is to leave which places. */
interface Purge {
  readonly settings: PurgeSettings;
  /** Empty to purge the people of the suppression list alone. */
  readonly entries: readonly ListedId[];
  readonly listedPeople: ListedPeople;
  readonly places: readonly PlacePurge[];
}

export interface PurgePlan extends Purge {
  /** The limit that the people exceed, as a sentence. */
  readonly limitProblem: string | undefined;
  /** What the officer should know before anybody is deleted. */
  readonly warnings: readonly string[];
}

/** What became of a plan. */
export interface Purged {
  readonly places: readonly PlacePurge[];
  readonly failures: readonly UserError[];
  readonly warnings: readonly string[];
}

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;
/** Maximum number of rows of the list, and of foreign tables and files, that reports and the ledger name. */
export const MAX_NAMED = 100;

/**
 * Finds the people in every way, then looks into each place. It does all that their removal does but its last step.
 * Throws UserError for what the execution would stumble over.
 */
export async function planPurge(
  settings: PurgeSettings,
  entries: readonly ListedId[],
  service: ServiceAddress,
  ledger: Ledger,
): Promise<PurgePlan> {
  const { suppression: file, isNewList, options } = settings;
  await requireWritableList(file);
  const listedPeople = await findInAllWays(entries, settings);
  const query = { ...listedPeople.query, suppressed: readForPurge(file) };
  const places: PlacePurge[] = [];
  for (const [i, { target, path }] of settings.places.entries()) {
    const name = placeName({ target, path });
    options.logger.info('purge.plan', `Looking into ${name} (${i + 1} of ${settings.places.length}) …`);
    const place = { target, path, name, ...(await (await target.people()).previewPurge(path, query, options)) };
    const placeService = place.people.state.exportState?.service;
    if (placeService !== undefined && placeService !== serviceFingerprint(service)) {
      throw configError(
        `${name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    places.push(place);
  }
  // Anew: a purge that ended meanwhile has made list and places longer.
  const list = readForPurge(file);
  if (!isNewList) {
    for (const { name, people } of places) requireSuppression(name, people.state.suppressionLength, list.hmacs.length);
    if (entries.length === 0 && list.hmacs.length === 0) {
      throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');
    }
  }
  const purge = { settings, entries, listedPeople, places };
  const warnings = [
    ...listedPeople.warnings,
    ...(isNewList ? [] : olderListSentences('The ledger', ledger.history.suppressionLength, list)),
    ...places.flatMap((place) => placeSentences(place, list)),
    ...missingSentences(purge),
  ];
  return { ...purge, limitProblem: peopleLimitProblem(purge), warnings };
}

/**
 * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
 * failure in one place leaves the others to be purged. Rejects if it is stopped before or in a place.
 */
export async function purgePlaces(plan: PurgePlan, ledger: Ledger): Promise<Purged> {
  const { options, suppression: file } = plan.settings;
  const places = [...plan.places];
  try {
    await addPeople(unifiedIdsOf(plan), file, options);
  } catch (error) {
    const failure = diskErrorByItsPath(error);
    if (failure instanceof UserError) return { places, failures: [failure], warnings: [] };
    throw failure;
  }
  for (const [i, { name }] of places.entries()) {
    options.signal.throwIfAborted();
    options.logger.info('purge.begin', `Purging ${name} (${i + 1} of ${places.length}) …`);
    places[i] = await purgePlace(i, { ...plan, places }, ledger);
  }
  const { unremovable, liveFolders } = await sweepRunFolders(options.spoolDir, options.clock.now());
  const stays = `Downloads of dead runs may name the people, and stay: ${shortened(unremovable)}. Remove them.`;
  return {
    places,
    failures: [
      ...places.flatMap(({ failure }) => failure ?? []),
      ...(unremovable.length > 0 ? [transientError(stays)] : []),
    ],
    warnings: [...places.map(({ result }) => result?.inUse ?? []), liveFolders].flatMap(runSentences),
  };
}

/** Removes the people from the place `places[i]`. Returns it with who was found and what became of them. */
async function purgePlace(i: number, purge: Purge, ledger: Ledger): Promise<PlacePurge> {
  const { settings, entries, listedPeople, places } = purge;
  const { options, suppression: file, isNewList } = settings;
  let place = places[i];
  const { target, path, name, foreign } = place;
  // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list.
  const onFound = async (people: PeopleFound): Promise<number> => {
    place = { ...place, people };
    const problem = peopleLimitProblem({ ...purge, places: places.with(i, place) });
    if (problem !== undefined) throw configError(`${name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
    if (!isNewList) requireSuppression(name, people.state.suppressionLength, readForPurge(file).hmacs.length);
    await ledger.writeAll(purgeLines(place, entries, ledger));
    return await addPeople(people.unifiedIds, file, options);
  };
  try {
    const query = { ...listedPeople.query, suppressed: readForPurge(file) };
    const result = await (await target.people()).purge(path, query, { ...options, onFound });
    place = { ...place, result };
    const { rowsRemoved: rows, suppressionLength: listed, unreached } = result;
    const stays = foreign.slice(0, MAX_NAMED);
    const remains = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
    await ledger.write({ kind: 'purged', place: name, rows, listed, ...remains });
    return unreached.length > 0 ? { ...place, failure: transientError(unreached.join(' ')) } : place;
  } catch (thrown) {
    options.signal.throwIfAborted();
    const error = diskErrorByItsPath(thrown);
    if (error instanceof UserError) return { ...place, failure: error };
    // Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people.
    options.logger.error('purge.defect', `${name}: ${defectText(error)}`);
    const message = `${name} could not be purged by a defect of dfinery-elt: please report it.`;
    return { ...place, failure: systemError(message, { cause: error }) };
  }
}

/** The limit that the people exceed, as a sentence; undefined for none. */
function peopleLimitProblem(purge: Purge): string | undefined {
  const { settings, entries, listedPeople, places } = purge;
  const { maxPeople, allowsShared, hashKey } = settings;
  const limit = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * entries.length);
  const personCount = new Set([...unifiedIdsOf(purge).keys()].map((text) => personOf(text, hashKey))).size;
  if (personCount > limit) {
    const whose = maxPeople === undefined ? 'usual' : '--max-people allows';
    return (
      `${count(personCount, 'person has', 'people have')} these IDs, more than ${whose} (${withSeparators(limit)}). ` +
      `If that is meant, give --max-people ${personCount}.`
    );
  }
  const lookups = [listedPeople, ...places.map(({ people }) => people)];
  const withOtherIds = new Set(lookups.flatMap(({ peopleWithOtherIds }) => [...peopleWithOtherIds]));
  if (withOtherIds.size === 0 || allowsShared) return undefined;
  return (
    `${count(withOtherIds.size, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: ` +
    'the ID changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
  );
}

/** Every form of the people's unified ids: as the ways have them, and as rows of the places do. */
function unifiedIdsOf({ listedPeople, places }: Purge): UnifiedIds {
  const textsOfWays = [...(listedPeople.query.knownUnifiedIds?.values() ?? [])].flat();
  // Last those of rows: a place knows under which key its form is a hash.
  return new Map<string, string | undefined>([
    ...textsOfWays.map((text) => [text, undefined] as const),
    ...places.flatMap(({ people }) => [...people.unifiedIds]),
  ]);
}

/** What the officer should know of a place. */
function placeSentences({ name, people, foreign }: PlacePurge, list: SuppressedPeople): string[] {
  const stays = `${name} also has ${shortened(foreign)}, not made here: they stay, and may name the people.`;
  return [
    ...people.warnings,
    ...olderListSentences(name, people.state.suppressionLength, list),
    ...(foreign.length > 0 ? [stays] : []),
  ];
}

/** Why people stay whom the officer may believe gone, as sentences. */
function missingSentences({ entries, listedPeople, places }: Purge): string[] {
  const nobody = entries.length === 0 ? 'No place holds anybody of the list.' : 'No place holds any of these IDs.';
  const isEmpty = places.every(({ people }) => people.rowCount + people.suppressedOthers.rowCount === 0);
  const isAnyMissed = entries.some(({ id }) => !listedPeople.foundIds.has(id));
  const missed =
    'IDs that no way finds are not put on the suppression list, and their rows stay. Run again after the next sync.';
  return [...(isEmpty ? [nobody] : []), ...(isAnyMissed ? [missed] : [])];
}

const runSentences = (folders: readonly string[]): string[] =>
  folders.length === 0
    ? []
    : [`Other runs are under way. Until they end, they hold downloads in ${shortened(folders)}.`];

const shortened = (names: readonly string[]): string =>
  `${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? ' and more' : ''}`;

/** A line for each id of the list, and one for the others on the suppression list together. */
function purgeLines({ name: place, people }: PlacePurge, entries: readonly ListedId[], { key }: Ledger) {
  const line = (id: string | null, rows: number) => ({ kind: 'purge', id, place, rows }) as const;
  const linesOfIds = entries.map(({ id }) => line(key.idHash(id), people.rowsOf.get(id) ?? 0));
  const { rowCount: otherRows } = people.suppressedOthers;
  return otherRows > 0 || entries.length === 0 ? [...linesOfIds, line(null, otherRows)] : linesOfIds;
}
