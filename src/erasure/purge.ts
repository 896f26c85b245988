import { configError, defectText, EXIT, systemError, transientError, UserError } from '../base/errors.ts';
import { count, withSeparators } from '../base/quantities.ts';
import { type PeopleFound, personOf, type UnifiedId } from '../engine/people/query.ts';
import { serviceFingerprint } from '../extract/export-request.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import type { PurgePreview, PurgeResult } from '../targets/people-contract.ts';
import type { ServiceAddress } from './ledger/chain.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
import {
  addPeople,
  readForPurge,
  requireSuppression,
  requireWritableList,
  type SuppressionFile,
  type SuppressionList,
} from './suppression.ts';
import { findInAllWays, type ListedPeople, type PeopleSearch, placeName, type StoredPlace } from './ways.ts';

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
export interface PlacePurge extends PurgePreview {
  readonly stored: StoredPlace;
  readonly name: string;
  /** Present once all rows that can be read are removed. */
  readonly result?: PurgeResult;
  /** Why the people are, or may be, still there. */
  readonly failure?: UserError;
}

export interface PurgePlan {
  readonly settings: PurgeSettings;
  readonly ids: readonly ListedId[];
  readonly people: ListedPeople;
  /** Number of people on the suppression list. */
  readonly suppressionLength: number;
  readonly places: readonly PlacePurge[];
  /** The limit that the people exceed, as a sentence. */
  readonly guardProblem: string | undefined;
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
  ids: readonly ListedId[],
  service: ServiceAddress,
): Promise<PurgePlan> {
  const { suppression: file, isSuppressed, isNewList, options } = settings;
  await requireWritableList(file);
  const people = await findInAllWays(ids, settings);
  const places: PlacePurge[] = [];
  const placeWarnings: string[] = [];
  for (const [i, stored] of settings.places.entries()) {
    const name = placeName(stored);
    options.logger.info('purge.plan', `Looking into ${name} (${i + 1} of ${settings.places.length}) …`);
    const { target, path } = stored;
    const query = { ...people.query, suppressed: readForPurge(file) };
    const place = { stored, name, ...(await (await target.people()).previewPurge(path, query, options)) };
    const { service: placeService } = place.people.place;
    if (placeService !== undefined && placeService !== serviceFingerprint(service)) {
      throw configError(
        `${name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    placeWarnings.push(...placeSentences(place, listFor(place, settings)));
    places.push(place);
  }
  const { length: suppressionLength } = readForPurge(file);
  if (isSuppressed && suppressionLength === 0 && !isNewList) {
    throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');
  }
  const plan = { settings, ids, people, suppressionLength, places };
  const warnings = [...people.warnings, ...placeWarnings, ...missingSentences(plan)];
  return { ...plan, guardProblem: guardProblem(plan, places), warnings };
}

/**
 * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
 * failure in one place leaves the others to be purged. Rejects if it is stopped.
 */
export async function purgePlaces(plan: PurgePlan, ledger: Ledger): Promise<Purged> {
  const { options, suppression: file } = plan.settings;
  const places = [...plan.places];
  try {
    await addPeople(unifiedIdsOf(plan.people, places), file, options);
  } catch (error) {
    const failure = diskErrorByItsPath(error);
    if (failure instanceof UserError) return { places, failures: [failure], warnings: [] };
    throw failure;
  }
  for (const [i, place] of plan.places.entries()) {
    options.signal.throwIfAborted();
    options.logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${places.length}) …`);
    places[i] = await purgePlace(place, plan, places, ledger);
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

/** Removes the people from a place. `places`: all of them, as they were found last. */
async function purgePlace(
  place: PlacePurge,
  plan: PurgePlan,
  places: readonly PlacePurge[],
  ledger: Ledger,
): Promise<PlacePurge> {
  const { settings, ids, people } = plan;
  const { options, suppression: file } = settings;
  let newest = place;
  let listed = 0;
  // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list.
  const onFound = async (peopleFound: PeopleFound): Promise<number> => {
    newest = { ...place, people: peopleFound };
    const problem = guardProblem(
      plan,
      places.map((other) => (other === place ? newest : other)),
    );
    if (problem !== undefined) {
      throw configError(`${place.name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
    }
    listFor(newest, settings);
    await ledger.writeAll(purgeLines(newest, ids, ledger));
    listed = (await addPeople(peopleFound.unifiedIds, file, options)).length;
    return listed;
  };
  try {
    const { target, path } = place.stored;
    const query = { ...people.query, suppressed: readForPurge(file) };
    const result = await (await target.people()).purge(path, query, { ...options, onFound });
    newest = { ...place, people: result.people, result };
    const { rowsRemoved: rows, unreached } = result;
    const stays = place.foreign.slice(0, MAX_NAMED);
    const remains = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
    await ledger.write({ kind: 'purged', place: place.name, rows, listed, ...remains });
    return unreached.length === 0 ? newest : { ...newest, failure: transientError(unreached.join(' ')) };
  } catch (thrown) {
    options.signal.throwIfAborted();
    const error = diskErrorByItsPath(thrown);
    if (error instanceof UserError) return { ...newest, failure: error };
    // Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people.
    options.logger.error('purge.defect', `${place.name}: ${defectText(error)}`);
    const message = `${place.name} could not be purged by a defect of dfinery-elt: please report it.`;
    return { ...newest, failure: systemError(message, { cause: error }) };
  }
}

/** The guard of the people, as a sentence; undefined if they exceed no limit. */
function guardProblem(
  { settings, ids, people }: Pick<PurgePlan, 'settings' | 'ids' | 'people'>,
  places: readonly PlacePurge[],
): string | undefined {
  const { maxPeople, allowsShared, hashKey } = settings;
  const limit = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * ids.length);
  const personCount = new Set(unifiedIdsOf(people, places).map(({ text }) => personOf(text, hashKey))).size;
  if (personCount > limit) {
    const whose = maxPeople === undefined ? 'usual' : '--max-people allows';
    return (
      `${count(personCount, 'person has', 'people have')} these IDs, more than ${whose} (${withSeparators(limit)}). ` +
      `If that is meant, give --max-people ${personCount}.`
    );
  }
  const lookups = [people, ...places.map((place) => place.people)];
  const withOtherIds = new Set(lookups.flatMap(({ peopleWithOtherIds }) => [...peopleWithOtherIds]));
  if (withOtherIds.size === 0 || allowsShared) return undefined;
  return (
    `${count(withOtherIds.size, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: ` +
    'the ID changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
  );
}

/** Every form of the people's unified ids: as the ways have them, and as rows of the places do. */
function unifiedIdsOf({ query }: ListedPeople, places: readonly PlacePurge[]): UnifiedId[] {
  const textsOfWays = [...(query.knownPeople?.values() ?? [])].flat();
  return [
    ...new Map([
      ...textsOfWays.map((text): [string, UnifiedId] => [text, { text, keyCheck: undefined }]),
      // A place knows under which key its form is a hash.
      ...places.flatMap(({ people }) => people.unifiedIds.map((id): [string, UnifiedId] => [id.text, id])),
    ]).values(),
  ];
}

/** The suppression list as it is now. Refuses a place that knows more people on it, unless a new list is begun. */
function listFor({ name, people }: PlacePurge, { suppression, isNewList }: PurgeSettings): SuppressionList {
  const list = readForPurge(suppression);
  if (!isNewList) requireSuppression(name, people.place.suppressionLength, list);
  return list;
}

/** What the officer should know of a place. */
function placeSentences({ name, people, foreign }: PlacePurge, suppression: SuppressionList): string[] {
  const { suppressionLength } = people.place;
  const lostList =
    `${name} knew ${count(suppressionLength, 'person', 'people')} on the suppression list, and the list has ` +
    `${withSeparators(suppression.length)}: those who are missing return while the service exports them.`;
  const more = foreign.length > MAX_NAMED ? ' and more' : '';
  const stays = `${name} also has ${shortened(foreign)}${more}, not made here: they stay, and may name the people.`;
  return [
    ...people.warnings,
    ...(suppressionLength > suppression.length ? [lostList] : []),
    ...(foreign.length > 0 ? [stays] : []),
  ];
}

/** Why people stay whom the officer may believe gone, as sentences. */
function missingSentences({
  settings,
  ids,
  people,
  places,
}: Pick<PurgePlan, 'settings' | 'ids' | 'people' | 'places'>) {
  const { isSuppressed } = settings;
  const nobody = isSuppressed ? 'No place holds anybody of the list.' : 'No place holds any of these IDs.';
  const isEmpty = places.every((place) => place.people.rowCount + place.people.suppressedOthers.rowCount === 0);
  const isAnyMissed = !isSuppressed && ids.some(({ id }) => !people.foundIds.has(id));
  const missed =
    'IDs that no way finds are not put on the suppression list, and their rows stay. Run again after the next sync.';
  return [...(isEmpty ? [nobody] : []), ...(isAnyMissed ? [missed] : [])];
}

const runSentences = (folders: readonly string[]): string[] =>
  folders.length === 0
    ? []
    : [`Other runs are under way. Until they end, they hold downloads in ${shortened(folders)}.`];

const shortened = (names: readonly string[]): string => names.slice(0, MAX_NAMED).join(', ');

/** A line for each id of the list, and one for the others on the suppression list together. */
function purgeLines({ name: place, people }: PlacePurge, ids: readonly ListedId[], { key }: Ledger) {
  const line = (id: string | null, rows: number) => ({ kind: 'purge', id, place, rows }) as const;
  const linesOfIds = ids.map(({ id }) => line(key.idHash(id), people.rowsOf.get(id) ?? 0));
  const { rowCount: otherRows } = people.suppressedOthers;
  return otherRows > 0 || ids.length === 0 ? [...linesOfIds, line(null, otherRows)] : linesOfIds;
}
