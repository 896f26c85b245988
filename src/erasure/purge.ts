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
  const { isSuppressed, isNewList, options } = settings;
  await requireWritableList(settings.suppression);
  let suppression = readForPurge(settings.suppression);
  const people = await findInAllWays(ids, settings);
  const places: PlacePurge[] = [];
  const placeWarnings: string[] = [];
  for (const [i, stored] of settings.places.entries()) {
    const name = placeName(stored);
    options.logger.info('purge.plan', `Looking into ${name} (${i + 1} of ${settings.places.length}) …`);
    const { target, path } = stored;
    const query = { ...people.query, suppressed: suppression };
    const place = { stored, name, ...(await (await target.people()).previewPurge(path, query, options)) };
    const { service: placeService, suppressionLength } = place.people.place;
    if (placeService !== undefined && placeService !== serviceFingerprint(service)) {
      throw configError(
        `${name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    suppression = suppressionFor(place, suppression, settings);
    placeWarnings.push(...place.people.warnings);
    if (suppressionLength > suppression.length) {
      placeWarnings.push(
        `${name} knew ${count(suppressionLength, 'person', 'people')} on the suppression list, and the list has ` +
          `${withSeparators(suppression.length)}: those who are missing return while the service exports them.`,
      );
    }
    if (place.foreign.length > 0) {
      const more = place.foreign.length > MAX_NAMED ? ' and more' : '';
      placeWarnings.push(
        `${name} also has ${shortened(place.foreign)}${more}, not made here: they stay, and may name the people.`,
      );
    }
    places.push(place);
  }
  if (isSuppressed && suppression.length === 0 && !isNewList) {
    throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');
  }
  const plan = { settings, ids, people, suppressionLength: suppression.length, places };
  const warnings = [...people.warnings, ...placeWarnings, ...missingSentences(plan)];
  return { ...plan, guardProblem: guardProblem(plan, places), warnings };
}

/**
 * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
 * failure in one place leaves the others to be purged. Rejects if it is stopped.
 */
export async function purgePlaces(plan: PurgePlan, ledger: Ledger): Promise<Purged> {
  const { options, suppression: listFile } = plan.settings;
  const places = [...plan.places];
  const warnings: string[] = [];
  let suppression: SuppressionList;
  try {
    suppression = await addPeople(unifiedIdsOf(plan.people, places), listFile, options);
  } catch (error) {
    const failure = diskErrorByItsPath(error);
    if (failure instanceof UserError) return { places, failures: [failure], warnings };
    throw failure;
  }
  for (const [i, place] of plan.places.entries()) {
    options.signal.throwIfAborted();
    options.logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${places.length}) …`);
    // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list.
    const onFound = async (people: PeopleFound): Promise<number> => {
      places[i] = { ...place, people };
      const problem = guardProblem(plan, places);
      if (problem !== undefined) {
        throw configError(`${place.name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
      }
      suppressionFor(places[i], suppression, plan.settings);
      await ledger.writeAll(purgeLines(places[i], plan.ids, ledger));
      suppression = await addPeople(people.unifiedIds, listFile, options);
      return suppression.length;
    };
    try {
      const { target, path } = place.stored;
      const query = { ...plan.people.query, suppressed: suppression };
      const result = await (await target.people()).purge(path, query, { ...options, onFound });
      const { people, rowsRemoved: rows, unreached, inUse = [] } = result;
      places[i] = { ...place, people, result };
      const stays = place.foreign.slice(0, MAX_NAMED);
      const remains = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
      await ledger.write({ kind: 'purged', place: place.name, rows, listed: suppression.length, ...remains });
      if (unreached.length > 0) places[i] = { ...places[i], failure: transientError(unreached.join(' ')) };
      warnings.push(...runSentences(inUse));
    } catch (error) {
      options.signal.throwIfAborted();
      places[i] = { ...places[i], failure: placeFailure(place, error, plan.settings) };
    }
  }
  const { unremovable, liveFolders } = await sweepRunFolders(options.spoolDir, options.clock.now());
  warnings.push(...runSentences(liveFolders));
  const failures = places.flatMap(({ failure }) => failure ?? []);
  if (unremovable.length > 0) {
    const stays = `Downloads of dead runs may name the people, and stay: ${shortened(unremovable)}. Remove them.`;
    failures.push(transientError(stays));
  }
  return { places, failures, warnings };
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

/**
 * The suppression list for a place. It is read again if the place knows more people: another purge may have put them
 * there. Refuses a place that still knows more, unless a new list is begun.
 */
function suppressionFor(
  { name, people }: PlacePurge,
  suppression: SuppressionList,
  { suppression: file, isNewList }: PurgeSettings,
): SuppressionList {
  const { suppressionLength } = people.place;
  const newest = suppressionLength > suppression.length ? readForPurge(file) : suppression;
  if (!isNewList) requireSuppression(name, suppressionLength, newest);
  return newest;
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
  const isEmpty = places.every((place) => place.people.rows + place.people.suppressedOthers.rows === 0);
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
  const { rows: otherRows } = people.suppressedOthers;
  return otherRows > 0 || ids.length === 0 ? [...linesOfIds, line(null, otherRows)] : linesOfIds;
}

/** Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people. */
function placeFailure({ name }: PlacePurge, thrown: unknown, { options }: PurgeSettings): UserError {
  const error = diskErrorByItsPath(thrown);
  if (error instanceof UserError) return error;
  options.logger.error('purge.defect', `${name}: ${defectText(error)}`);
  return systemError(`${name} could not be purged by a defect of dfinery-elt: please report it.`, { cause: error });
}
