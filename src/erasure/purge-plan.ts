import { configError } from '../base/errors.ts';
import { formatCount, withSeparators } from '../base/quantities.ts';
import { joinNames, MAX_NAMED_IN_RECORD } from '../base/text.ts';
import { personIdOf } from '../engine/people/people.ts';
import type { PurgePreview } from '../targets/contract.ts';
import type { Ledger } from './ledger/ledger.ts';
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
  /** True to have the places remember the suppression list as it is, also if they knew a longer one. */
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
  readonly listedPeople: ListedPeople;
  readonly places: readonly PlannedPlace[];
  /** What an officer should know before a consent. */
  readonly warnings: readonly string[];
}

/** A place, and who is to leave it. */
export type PlannedPlace = NamedPlace & PurgePreview;

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
): Promise<PurgePlan> {
  const { suppressionList, isSuppressedOnly, runtime } = settings;

  // 1. The people of the list, in every way.
  const soughtIds = plannedIds.filter(({ isSought }) => isSought);
  const listedPeople = await findListedPeople(soughtIds, settings, plannedIds);

  // 2. Each place: whom it holds of them, and of everybody else on the suppression list.
  const query = { ...listedPeople.query, suppressionHmacs: suppressionList.readHmacs(settings.hashKey) };
  const places: PlannedPlace[] = [];
  for (const [i, place] of settings.places.entries()) {
    runtime.logger.info('purge.plan', `Looking into ${place.name} (${i + 1} of ${settings.places.length}) …`);
    const preview = await (await place.target.peopleOperations(place)).previewPurge(query);
    refusePlaceOfOtherService(place, preview.findings, settings.serviceId);
    places.push({ ...place, ...preview });
  }

  // 3. Refusals. The list is read anew: a purge that ended meanwhile has made it longer.
  const suppressionLength = suppressionList.readLength();
  if (!settings.beginsNewList)
    for (const { name, findings } of places) refuseOlderList(name, findings.state.suppressionLength, suppressionLength);
  if (isSuppressedOnly && !settings.beginsNewList && suppressionLength === 0)
    throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');

  const plan = { settings, ledger, soughtIds, listedPeople, places };
  return { ...plan, warnings: planWarnings(plan, plannedIds.length - soughtIds.length, suppressionLength) };
}

/** What an officer should know before a consent. `leftCount`: number of ids that are not looked for. */
function planWarnings(plan: Omit<PurgePlan, 'warnings'>, leftCount: number, suppressionLength: number): string[] {
  const { settings, ledger, soughtIds, listedPeople, places } = plan;
  const { isSuppressedOnly, beginsNewList } = settings;
  const isEmpty = places.every(({ findings }) => findings.rowCount + findings.suppressedOthers.rowCount === 0);
  return [
    leftCount > 0
      ? `${formatCount(leftCount, 'of these IDs has', 'of these IDs have')} left all places, and will not be looked for: ` +
        'the person may have come back. To look for them alone, give --purge-only; to request them, too, --again.'
      : [],
    listedPeople.warnings,
    beginsNewList
      ? places.flatMap(({ name, findings }) =>
          olderListWarnings(name, findings.state.suppressionLength, suppressionLength),
        )
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

function placeWarnings({ name, findings, foreignNames }: PlannedPlace): string[] {
  const namelessRows = formatCount(findings.namelessRowCount, 'row of these IDs names', 'rows of these IDs name');
  return [
    findings.warnings,
    findings.namelessRowCount > 0
      ? `${name}: ${namelessRows} no person, and a suppression list cannot keep such rows away. ` +
        'Purge again (--purge-only) once the service no longer exports their days.'
      : [],
    foreignNames.length > 0
      ? `${name} also has ${joinNames(foreignNames, MAX_NAMED_IN_RECORD)}, not made here: they stay, and may name the people.`
      : [],
  ].flat();
}

/** How the people of the ways and of the places break a guard, as a sentence; undefined if they do not. */
export function purgeGuardProblem(plan: PurgePlan, places: readonly PlannedPlace[] = plan.places): string | undefined {
  const { settings, soughtIds, listedPeople } = plan;
  const { maxPeople, allowsShared, hashKey } = settings;
  const limit = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * soughtIds.length);
  const personCount = new Set(unifiedIdsOf(plan, places).map((unifiedId) => personIdOf(unifiedId, hashKey))).size;
  if (personCount > limit) {
    const allowed = maxPeople === undefined ? 'usual' : '--max-people allows';
    return (
      `${formatCount(personCount, 'person has', 'people have')} these IDs, more than ${allowed} (${withSeparators(limit)}). ` +
      `If that is meant, give --max-people ${personCount}.`
    );
  }
  const sources = [listedPeople, ...places.map(({ findings }) => findings)];
  const sharedPersonIds = new Set(sources.flatMap((source) => [...source.sharedPersonIds]));
  if (sharedPersonIds.size === 0 || allowsShared) return undefined;
  return (
    `${formatCount(sharedPersonIds.size, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: ` +
    'the ID changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
  );
}

/** The unified ids of everybody of the ways and of the rows of places. */
export const unifiedIdsOf = ({ listedPeople }: PurgePlan, places: readonly PlannedPlace[]): string[] => [
  ...[...listedPeople.query.knownUnifiedIdsById.values()].flat(),
  ...places.flatMap(({ findings }) => [...findings.unifiedIds]),
];
