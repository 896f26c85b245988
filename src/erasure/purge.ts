import { configError, EXIT, transientError, UserError } from '../base/errors.ts';
import { formatCount, joinNames, MAX_IN_RECORD, withSeparators } from '../base/quantities.ts';
import { type KeyCheckByUnifiedId, type PeopleInPlace, PLAIN, personIdOf } from '../engine/people/people.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import type { PurgePreview, Removal } from '../targets/contract.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { LineContent } from './ledger/lines.ts';
import {
  findListedPeople,
  type ListedPeople,
  type NamedPlace,
  refusePlaceOfOtherService,
  type SearchSettings,
} from './listed-people.ts';
import type { PlannedId } from './planned-id.ts';
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

/** Who is to leave which places. */
export interface PurgePlan {
  readonly settings: PurgeSettings;
  readonly ledger: Ledger;
  /** Those of the list that are looked for. */
  readonly soughtIds: readonly PlannedId[];
  /** True to request also those whom the ledger knows as deleted, or perhaps deleted. */
  readonly again: boolean;
  readonly listedPeople: ListedPeople;
  readonly places: readonly PlannedPlace[];
  /** What an officer should know before a consent. */
  readonly warnings: readonly string[];
}

/** A place, and who is to leave it. */
type PlannedPlace = NamedPlace & PurgePreview;

/** What a purge has done in the places of its plan. */
export interface PurgeOutcome {
  readonly places: readonly PlaceOutcome[];
  /** Those of the plan are not repeated. */
  readonly warnings: readonly string[];
  /** Why people are, or may be, still there: those of the places, and of folders with downloads. */
  readonly failures: readonly UserError[];
}

/** What became of a place, and who was found there last. */
export interface PlaceOutcome extends PlannedPlace {
  /** Present once all rows that can be read are removed, and the ledger says so. */
  readonly removal?: Removal | undefined;
  /** Why the people are, or may be, still there. */
  readonly failure?: UserError | undefined;
}

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;

/**
 * Finds the people in every way, then looks into each place. It does all that their removal does but its last step.
 * Throws UserError for what the execution would stumble over.
 */
export async function planPurge(
  plannedIds: readonly PlannedId[],
  settings: PurgeSettings,
  ledger: Ledger,
  again: boolean,
): Promise<PurgePlan> {
  const { suppressionList, isSuppressedOnly, runtime } = settings;

  // 1. The people of the list, in every way.
  const soughtIds = plannedIds.filter(({ isSought }) => isSought);
  const listedPeople = await findListedPeople(soughtIds, settings, plannedIds);

  // 2. Each place: whom it holds of them, and of everybody else on the suppression list.
  const query = { ...listedPeople.query, suppressedPeople: suppressionList.readPeople() };
  const places: PlannedPlace[] = [];
  for (const [i, place] of settings.places.entries()) {
    runtime.logger.info('purge.plan', `Looking into ${place.name} (${i + 1} of ${settings.places.length}) …`);
    const preview = await (await place.target.people(place)).previewPurge(query);
    refusePlaceOfOtherService(place, preview.people, settings.serviceId);
    places.push({ ...place, ...preview });
  }

  // 3. Refusals. The list is read anew: a purge that ended meanwhile has made it longer.
  const suppressionLength = suppressionList.readLength();
  if (!settings.beginsNewList)
    for (const { name, people } of places) refuseOlderList(name, people.state.suppressionLength, suppressionLength);
  if (isSuppressedOnly && !settings.beginsNewList && suppressionLength === 0)
    throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');

  const plan = { settings, ledger, soughtIds, again, listedPeople, places };
  return { ...plan, warnings: planWarnings(plan, plannedIds.length - soughtIds.length, suppressionLength) };
}

/** What an officer should know before a consent. `leftCount`: number of ids that are not looked for. */
function planWarnings(plan: Omit<PurgePlan, 'warnings'>, leftCount: number, suppressionLength: number): string[] {
  const { settings, ledger, soughtIds, listedPeople, places } = plan;
  const { isSuppressedOnly, beginsNewList } = settings;
  const isEmpty = places.every(({ people }) => people.rowCount + people.suppressedOthers.rowCount === 0);
  return [
    leftCount > 0
      ? `${formatCount(leftCount, 'of these IDs has', 'of these IDs have')} left all places, and will not be looked for: ` +
        'the person may have come back. To look for them alone, give --purge-only; to request them, too, --again.'
      : [],
    listedPeople.warnings,
    beginsNewList
      ? places.flatMap(({ name, people }) => olderListWarnings(name, people.state.suppressionLength, suppressionLength))
      : olderListWarnings('The ledger', ledger.history.suppressionLength, suppressionLength),
    places.flatMap(placeWarnings),
    isEmpty && (isSuppressedOnly || soughtIds.length > 0)
      ? `No place holds ${isSuppressedOnly ? 'anybody of the suppression list' : 'any of these IDs'}.`
      : [],
    listedPeople.missedIds.length > 0
      ? 'IDs that no way finds are not put on the suppression list, and their rows stay. Run again after the next sync.'
      : [],
  ].flat();
}

function placeWarnings({ name, people, foreignNames }: PlannedPlace): string[] {
  const namelessRows = formatCount(people.namelessRowCount, 'row of these IDs names', 'rows of these IDs name');
  return [
    people.warnings,
    people.namelessRowCount > 0
      ? `${name}: ${namelessRows} no person, and a suppression list cannot keep such rows away. ` +
        'Purge again (--purge-only) once the service no longer exports their days.'
      : [],
    foreignNames.length > 0
      ? `${name} also has ${joinNames(foreignNames, MAX_IN_RECORD)}, not made here: they stay, and may name the people.`
      : [],
  ].flat();
}

/**
 * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
 * failure in one place leaves the others to be purged. Rejects if the list cannot be written, or if it is stopped.
 */
export async function purgePlaces(plan: PurgePlan): Promise<PurgeOutcome> {
  const { runtime, suppressionList, hashKey } = plan.settings;
  await suppressionList.add(peopleOf(plan, plan.places), { ...runtime, hashKey });
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
    warnings.push(
      `Other runs are under way. Until they end, they hold downloads in ${joinNames(foldersInUse, MAX_IN_RECORD)}.`,
    );
  const stayText = (folders: readonly string[]) =>
    `may name the people, and stay: ${joinNames(folders, MAX_IN_RECORD)}.`;
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
  const { runtime, suppressionList, hashKey } = settings;
  const { target, name, foreignNames } = place;
  let { people } = place;
  try {
    // 1. Lock: the target keeps other writers out, and looks the people up anew.
    const query = { ...listedPeople.query, suppressedPeople: suppressionList.readPeople() };
    const removal = await (await target.people(place)).purge(query, async (peopleNow) => {
      people = peopleNow;
      // 2. Guards.
      const problem = purgeGuardProblem(plan, [...otherPlaces, { ...place, people }]);
      if (problem !== undefined)
        throw configError(`${name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
      if (!settings.beginsNewList) refuseOlderList(name, people.state.suppressionLength, suppressionList.readLength());
      // 3. Ledger, 4. suppression list. After a kill between them the same command finds the rows, and writes both again.
      await ledger.write(purgeLines(name, people, plan));
      return await suppressionList.add(people.keyCheckByUnifiedId, { ...runtime, hashKey });
    });
    // 5. The rows are removed. The place counts as purged once the ledger says so.
    const { rowsRemoved: rows, unreached } = removal;
    const stays = foreignNames.slice(0, MAX_IN_RECORD);
    const suppressed = suppressionList.readLength();
    const isUnreached = unreached.length > 0;
    await ledger.write({ kind: 'purged', place: name, rows, suppressed, stays, unreached: isUnreached });
    const failure = isUnreached ? transientError(`${name}: ${unreached.join(' ')}`) : undefined;
    return { ...place, people, removal, failure };
  } catch (thrown) {
    runtime.signal.throwIfAborted();
    const failure = diskErrorByItsPath(thrown);
    if (!(failure instanceof UserError)) throw failure;
    return { ...place, people, failure };
  }
}

/** How the people of the ways and of the places break a guard, as a sentence; undefined if they do not. */
export function purgeGuardProblem(plan: PurgePlan, places: readonly PlannedPlace[] = plan.places): string | undefined {
  const { settings, soughtIds, listedPeople } = plan;
  const { maxPeople, allowsShared, hashKey } = settings;
  const limit = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * soughtIds.length);
  const unifiedIds = [...peopleOf(plan, places).keys()];
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

/** Everybody of the ways and of the rows of places. A place knows under which key an id of its rows is a hash. */
const peopleOf = ({ listedPeople }: PurgePlan, places: readonly PlannedPlace[]): KeyCheckByUnifiedId =>
  new Map([
    ...[...listedPeople.query.unifiedIdsById.values()].flat().map((unifiedId) => [unifiedId, PLAIN] as const),
    ...places.flatMap(({ people }) => [...people.keyCheckByUnifiedId]),
  ]);

/** A line for each id that is looked for, and one for the others on the suppression list together. */
function purgeLines(place: string, people: PeopleInPlace, plan: PurgePlan): LineContent[] {
  const { settings, ledger, soughtIds, listedPeople } = plan;
  const linesOfIds = soughtIds.map(({ id, requestedAt, request }) => {
    const rows = people.rowCountById.get(id) ?? 0;
    const found = rows > 0 || (listedPeople.query.unifiedIdsById.get(id) ?? []).length > 0;
    // Another run may have had its answer since the plan: then no request is to come.
    const isAnswered = ledger.history.of(id).answerTo(requestedAt, plan.again) !== undefined;
    const again = (request === 'again' && !isAnswered) || undefined;
    return { kind: 'purge', id: ledger.keys.idKey.hashOf(id), place, rows, found, again } as const;
  });
  const { rowCount: rows } = people.suppressedOthers;
  return rows > 0 || settings.isSuppressedOnly ? [...linesOfIds, { kind: 'purge', id: null, place, rows }] : linesOfIds;
}
