import { configError, defectText, EXIT, systemError, transientError, UserError } from '../base/errors.ts';
import { formatCount, MAX_IN_RECORD, withSeparators } from '../base/quantities.ts';
import { type PeopleInPlace, personIdOf } from '../engine/people/people.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import type { PurgePreview, Removal } from '../targets/contract.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { LineContent } from './ledger/lines.ts';
import type { ListedId } from './list/id-list.ts';
import { findListedPeople, type NamedPlace, refusePlaceOfOtherService, type SearchSettings } from './listed-people.ts';
import { olderListWarnings, refuseOlderList, type SuppressionList } from './suppression-list.ts';

export interface PurgeSettings extends SearchSettings {
  /** True for a purge of the people of the suppression list alone, without ids. */
  readonly isSuppressedOnly: boolean;
  readonly suppressionList: SuppressionList;
  /** True to have the places remember the suppression list as it is, also if they knew more people on it. */
  readonly beginsNewList: boolean;
  /** Undefined for three for each id, ten at least. */
  readonly maxPeople: number | undefined;
  /** True to remove also the people who have other ids, too. */
  readonly allowsShared: boolean;
}

// |                      | planned        | done           |
// | -------------------- | -------------- | -------------- |
// | all places           | `PurgePlan`    | `PurgeOutcome` |
// | one place            | `PlannedPlace` | `PlaceOutcome` |
// | what its target says | `PurgePreview` | `Removal`      |

/** A place, and who is to leave it. */
type PlannedPlace = NamedPlace & PurgePreview;

/** What became of a place, and who was found there last. */
export interface PlaceOutcome extends PlannedPlace {
  /** Present once all rows that can be read are removed, and the ledger says so. */
  readonly removal?: Removal | undefined;
  /** Why the people are, or may be, still there. */
  readonly failure?: UserError | undefined;
}

/** Who is to leave which places. */
export type PurgePlan = Awaited<ReturnType<typeof planPurge>>;

/** What a purge has done in the places of its plan. `warnings`: those of the plan are not repeated. */
export type PurgeOutcome = Awaited<ReturnType<typeof purgePlaces>>;

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;

/**
 * Finds the people in every way, then looks into each place. It does all that their removal does but its last step.
 * Throws UserError for what the execution would stumble over.
 */
export async function planPurge(scope: {
  readonly settings: PurgeSettings;
  readonly ledger: Ledger;
  readonly listedIds: readonly ListedId[];
  /** True for an id whose deletion was confirmed before, and is requested once more: the person may have come back. */
  isToRequestAgain(listedId: ListedId): boolean;
}) {
  const { settings, ledger, listedIds, isToRequestAgain } = scope;
  const { suppressionList, isSuppressedOnly, beginsNewList, runtime } = settings;

  // 1. The suppression list, where everybody is put first.
  await suppressionList.requireWritable();

  // 2. The people of the list, in every way.
  const isErased = (listedId: ListedId) => ledger.history.wasErased(listedId.id) && !isToRequestAgain(listedId);
  const listedPeople = await findListedPeople(listedIds, settings, isErased);

  // 3. Each place: whom it holds of them, and of everybody else on the suppression list.
  const query = { ...listedPeople.query, suppressedPeople: suppressionList.readPeople() };
  const places: PlannedPlace[] = [];
  for (const [i, place] of settings.places.entries()) {
    runtime.logger.info('purge.plan', `Looking into ${place.name} (${i + 1} of ${settings.places.length}) …`);
    const preview = await (await place.target.people(place)).previewPurge(query);
    refusePlaceOfOtherService(place, preview.people, settings.serviceId);
    places.push({ ...place, ...preview });
  }

  // 4. Refusals. The list is read anew: a purge that ended meanwhile has made it longer.
  const listLength = suppressionList.readPeople().hmacs.length;
  if (!beginsNewList)
    for (const { name, people } of places) refuseOlderList(name, people.state.suppressionLength, listLength);
  if (isSuppressedOnly && !beginsNewList && listLength === 0)
    throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');

  // 5. What the officer should know before a consent.
  const isEmpty = places.every(({ people }) => people.rowCount + people.suppressedOthers.rowCount === 0);
  const warnings = [
    listedPeople.warnings,
    beginsNewList
      ? places.flatMap(({ name, people }) => olderListWarnings(name, people.state.suppressionLength, listLength))
      : olderListWarnings('The ledger', ledger.history.suppressionLength, listLength),
    places.flatMap(placeWarnings),
    isEmpty ? `No place holds ${isSuppressedOnly ? 'anybody of the suppression list' : 'any of these IDs'}.` : [],
    listedPeople.missedIds.length > 0
      ? 'IDs that no way finds are not put on the suppression list, and their rows stay. Run again after the next sync.'
      : [],
  ].flat();
  return { ...scope, listedPeople, places, warnings };
}

function placeWarnings({ name, people, foreignNames }: PlannedPlace): string[] {
  const namelessRows = formatCount(people.namelessRowCount, 'row of these IDs names', 'rows of these IDs name');
  return [
    people.warnings,
    people.namelessRowCount > 0
      ? `${name}: ${namelessRows} no person, and a suppression list cannot keep such rows away. ` +
        'Run again once the service no longer exports their days.'
      : [],
    foreignNames.length > 0
      ? `${name} also has ${namesText(foreignNames)}, not made here: they stay, and may name the people.`
      : [],
  ].flat();
}

/**
 * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
 * failure in one place leaves the others to be purged. Rejects if the list cannot be written, or if it is stopped.
 */
export async function purgePlaces(plan: PurgePlan) {
  const { runtime, suppressionList } = plan.settings;
  await suppressionList.add(keyCheckByUnifiedId(plan, plan.places), runtime);
  const places: PlaceOutcome[] = [];
  for (const [i, place] of plan.places.entries()) {
    runtime.signal.throwIfAborted();
    runtime.logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${plan.places.length}) …`);
    places.push(await purgePlace(place, [...places, ...plan.places.slice(i + 1)], plan));
  }
  const { stuckFolders, liveFolders, foreignFolders } = await sweepRunFolders(runtime.spoolDir);
  const foldersInUse = [...places.flatMap(({ removal }) => removal?.liveFolders ?? []), ...liveFolders];
  const warnings: string[] = [];
  if (foldersInUse.length > 0)
    warnings.push(`Other runs are under way. Until they end, they hold downloads in ${namesText(foldersInUse)}.`);
  const stayText = (folders: readonly string[]) => `may name the people, and stay: ${namesText(folders)}.`;
  if (foreignFolders.length > 0)
    warnings.push(`Downloads in folders that are not of this user alone ${stayText(foreignFolders)}`);
  const failures = places.flatMap(({ failure }) => failure ?? []);
  if (stuckFolders.length > 0)
    failures.push(transientError(`Downloads of dead runs ${stayText(stuckFolders)} Remove them.`));
  return { places, warnings, failures };
}

/** Removes the people from a place. The guards hold for it and the other places together. */
async function purgePlace(
  place: PlannedPlace,
  otherPlaces: readonly PlannedPlace[],
  plan: PurgePlan,
): Promise<PlaceOutcome> {
  const { settings, ledger, listedPeople } = plan;
  const { runtime, suppressionList, beginsNewList } = settings;
  const { target, name, foreignNames } = place;
  // Those of the plan, until the place is looked into again.
  let { people } = place;
  // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list. A kill between
  // the last two does no harm: the same command finds the rows, and writes both again.
  const onFound = async (peopleFound: PeopleInPlace): Promise<number> => {
    people = peopleFound;
    const problem = purgeGuardProblem(plan, [...otherPlaces, { ...place, people }]);
    if (problem !== undefined) throw configError(`${name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
    if (!beginsNewList)
      refuseOlderList(name, people.state.suppressionLength, suppressionList.readPeople().hmacs.length);
    await ledger.writeAll(purgeLines(name, people, plan));
    return await suppressionList.add(people.keyCheckByUnifiedId, runtime);
  };
  try {
    const query = { ...listedPeople.query, suppressedPeople: suppressionList.readPeople() };
    const removal = await (await target.people(place)).purge(query, onFound);
    const { rowsRemoved: rows, suppressionLength, unreached } = removal;
    const stays = foreignNames.slice(0, MAX_IN_RECORD);
    const leftovers = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
    await ledger.write({ kind: 'purged', place: name, rows, listed: suppressionLength, ...leftovers });
    const failure = unreached.length > 0 ? transientError(`${name}: ${unreached.join(' ')}`) : undefined;
    // A place counts as purged once the ledger says so.
    return { ...place, people, removal, failure };
  } catch (thrown) {
    runtime.signal.throwIfAborted();
    const error = diskErrorByItsPath(thrown);
    if (error instanceof UserError) return { ...place, people, failure: error };
    // Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people.
    runtime.logger.error('purge.defect', `${name}: ${defectText(error)}`);
    const sentence = `${name} could not be purged by a defect of dfinery-elt: please report it.`;
    return { ...place, people, failure: systemError(sentence, { cause: error }) };
  }
}

/** How the people of the ways and of the places break a guard, as a sentence; undefined if they do not. */
export function purgeGuardProblem(plan: PurgePlan, places: readonly PlannedPlace[] = plan.places): string | undefined {
  const { settings, listedIds, listedPeople } = plan;
  const { maxPeople, allowsShared, hashKey } = settings;
  const limit = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * listedIds.length);
  const unifiedIds = [...keyCheckByUnifiedId(plan, places).keys()];
  const personCount = new Set(unifiedIds.map((unifiedId) => personIdOf(unifiedId, hashKey))).size;
  if (personCount > limit) {
    const allowed = maxPeople === undefined ? 'usual' : '--max-people allows';
    return (
      `${formatCount(personCount, 'person has', 'people have')} these IDs, more than ${allowed} (${withSeparators(limit)}). ` +
      `If that is meant, give --max-people ${personCount}.`
    );
  }
  const sources = [listedPeople, ...places.map(({ people }) => people)];
  const sharedPeople = new Set(sources.flatMap(({ peopleWithOtherIds }) => [...peopleWithOtherIds]));
  if (sharedPeople.size === 0 || allowsShared) return undefined;
  return (
    `${formatCount(sharedPeople.size, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: ` +
    'the ID changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
  );
}

/**
 * Every form of the people's unified ids, as the ways and the rows of places have them. Undefined: no key is needed.
 * `u7` has undefined, and beside it so has its hash. In rows without `u7` its hash has the check value of its key.
 */
function keyCheckByUnifiedId({ settings, listedPeople }: PurgePlan, places: readonly PlannedPlace[]) {
  // Last those of rows: a place knows under which key its form is a hash.
  const keyChecks = new Map<string, string | undefined>([
    ...[...listedPeople.query.unifiedIdsById.values()].flat().map((unifiedId) => [unifiedId, undefined] as const),
    ...places.flatMap(({ people }) => [...people.keyCheckByUnifiedId]),
  ]);
  for (const unifiedId of keyChecks.keys()) {
    const hash = personIdOf(unifiedId, settings.hashKey);
    if (hash !== unifiedId && keyChecks.has(hash)) keyChecks.set(hash, undefined);
  }
  return keyChecks;
}

/** Tables, files or folders, as a warning names them. */
const namesText = (names: readonly string[]): string =>
  `${names.slice(0, MAX_IN_RECORD).join(', ')}${names.length > MAX_IN_RECORD ? ' and more' : ''}`;

/** A line for each id of the list, and one for the others on the suppression list together. */
function purgeLines(
  place: string,
  people: PeopleInPlace,
  { settings, listedIds, ledger, isToRequestAgain }: PurgePlan,
): LineContent[] {
  const linesOfIds = listedIds.map((listedId) => {
    const rows = people.rowCountById.get(listedId.id) ?? 0;
    const again = isToRequestAgain(listedId) || undefined;
    return { kind: 'purge', id: ledger.keys.idKey.hashOf(listedId.id), place, rows, again } as const;
  });
  const { rowCount: rows } = people.suppressedOthers;
  return rows > 0 || settings.isSuppressedOnly ? [...linesOfIds, { kind: 'purge', id: null, place, rows }] : linesOfIds;
}
