import { schemeOf } from '../base/address.ts';
import { configError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import type { HashKey } from '../base/hash-key.ts';
import { formatCount } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import { EXTERNAL_ID } from '../cells/header.ts';
import {
  columnsNamed,
  joinIds,
  type PeopleFindings,
  type PeopleQuery,
  personIdOf,
  type UnifiedIdsById,
} from '../engine/people/people.ts';
import { differenceText } from '../engine/people/spelling.ts';
import { serviceFingerprint } from '../extract/export-settings.ts';
import { realOrGivenPath } from '../fs/local-path.ts';
import type { ExportService } from '../service/export/export-service.ts';
import { typedColumns } from '../table/tables.ts';
import type { Place, PlaceOptions, StatefulTarget } from '../targets/contract.ts';
import { type ListedId, rowNumbersOf, rowsText } from './list/id-list.ts';
import { readMapping } from './list/list-file.ts';
import { findProfilesOfIds } from './profiles-of-ids.ts';

// The ways in which the people of a list are found. One is the profiles of the service and of the places
// (`user_profiles`), or a mapping in place of both. The other is the rows of places whose column holds an id. The union
// is meant.

export interface NamedPlace extends Place<StatefulTarget> {
  /** As the ledger and hashes name it, whatever working folder and links lead to it. */
  readonly name: string;
}

/** The places, and the ways in which people are looked for. */
export interface SearchSettings {
  readonly places: readonly NamedPlace[];
  /** The service of the ids. */
  readonly serviceId: string | undefined;
  /** The export of profiles; undefined if it is not asked, as with a mapping. */
  readonly profileService: ExportService | undefined;
  /** Column of the places with the external ids. */
  readonly byColumn: string | undefined;
  /** File with the columns external_id and df_unified_id, in place of the profiles. */
  readonly mapping: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly runtime: Pick<PlaceOptions, 'spoolDir'> & Runtime;
}

/** What all ways together say of the ids of a list. */
export interface ListedPeople {
  /** Asks a place for their rows. An id whose rows name nobody has no unified id, and is looked up itself. */
  readonly query: PeopleQuery & { readonly knownUnifiedIdsById: UnifiedIdsById };
  /** The ids that no way found, but for those that were erased before. */
  readonly missedIds: readonly ListedId[];
  /** Number of ids with a profile at the service; null if it was not asked, or exports no profiles. */
  readonly profiledIdCount: number | null;
  /** Of those whom rows name, and whose profile has another external id: the id changed hands. */
  readonly sharedPersonIds: ReadonlySet<string>;
  /** The ways that were there, in words. */
  readonly usedWays: readonly string[];
  readonly unifiedIdsInMapping: UnifiedIdsById | undefined;
  readonly warnings: readonly string[];
}

const NO_WAY =
  'Nothing says how people are found in the places. Let erasure.profiles be true and set export_token ' +
  '(DFINERY_EXPORT_TOKEN). Or load user profiles (user_profiles). Or name the column that holds the external ID ' +
  '(--by-column, erasure.by_column). Or give --mapping FILE.';

/**
 * Looks for the people in every way. Changes nothing. Throws UserError where people could be missed. One who may be
 * absent is not missed. `listedIds`: the whole list, if only some of its ids are looked for.
 */
export async function findListedPeople(
  soughtIds: readonly (ListedId & { readonly mayBeAbsent?: boolean })[],
  settings: SearchSettings,
  listedIds: readonly ListedId[] = soughtIds,
): Promise<ListedPeople> {
  const { mapping, profileService, byColumn, hashKey, runtime } = settings;
  const ids = new Set(soughtIds.map(({ id }) => id));

  // 1. A mapping, in place of profiles. A consent covers what it says of the whole list.
  const unifiedIdsInMapping =
    mapping === undefined ? undefined : await readMapping(mapping, new Set(listedIds.map(({ id }) => id)));

  // 2. The rows of all places. They come first: an id changed hands if the profile of a person in rows has another id.
  const query: PeopleQuery = { ids: [...ids], byColumn, hashKey, searchesProfiles: mapping === undefined };
  const placeSearch = await searchPlaces({ ...query, searchesSimilarIds: true }, settings);

  // 3. The profiles of the service.
  const personIdsInRows = new Set([...placeSearch.unifiedIdsById.values()].flat().map((id) => personIdOf(id, hashKey)));
  const { profiles, whyNoProfiles } =
    profileService === undefined || ids.size === 0
      ? {}
      : await findProfilesOfIds({ ids, personIdsInRows, hashKey }, profileService, runtime);

  // 4. All ways together.
  const usedWays = [
    ...(unifiedIdsInMapping === undefined ? [] : ['a mapping']),
    ...(profiles === undefined ? [] : ['the profiles of the service']),
    ...placeSearch.usedWays,
  ];
  const mappedIds = [...(unifiedIdsInMapping ?? [])].filter(([id]) => ids.has(id));
  const unifiedIdsById = joinIds(profiles?.unifiedIdsById, mappedIds, placeSearch.unifiedIdsById);
  const missedIds = soughtIds.filter(({ id, mayBeAbsent = false }) => !unifiedIdsById.has(id) && !mayBeAbsent);
  if (usedWays.length === 0 && missedIds.length > 0) {
    const noColumn = byColumn === undefined ? [] : `No place has a column ${byColumn}.`;
    throw configError([whyNoProfiles ?? [], noColumn, NO_WAY, 'Nothing was done.'].flat().join(' '));
  }
  const otherWaysText = usedWays.length === 0 ? '' : ' People are found in the places alone.';
  const similarIdsById = joinIds(profiles?.similarIds, placeSearch.similarIdsById);
  return {
    query: { ...query, knownUnifiedIdsById: unifiedIdsById },
    missedIds,
    profiledIdCount: profiles?.unifiedIdsById.size ?? null,
    sharedPersonIds: profiles?.sharedPersonIds ?? new Set(),
    usedWays,
    unifiedIdsInMapping,
    warnings: [
      ...(whyNoProfiles === undefined ? [] : [`${whyNoProfiles}${otherWaysText}`]),
      ...placeSearch.warnings,
      ...missedSentences(missedIds, similarIdsById),
    ],
  };
}

/** What rows of all places say of the ids, by the column and by the profiles. */
async function searchPlaces(query: PeopleQuery, { places, runtime }: SearchSettings) {
  const { ids, byColumn, searchesProfiles } = query;
  const isSearched = ids.length > 0 && (byColumn !== undefined || searchesProfiles);
  const findingsOfPlaces: PeopleFindings[] = [];
  for (const place of isSearched ? places : []) {
    runtime.logger.info('people.find', `Looking for the IDs in ${place.name} …`);
    findingsOfPlaces.push(await (await place.target.peopleOperations(place)).find(query));
  }
  // The table has the column also if `columns_drop` keeps its values out.
  const profileColumns = findingsOfPlaces.flatMap(({ state }) => state.user_profiles?.columns ?? []);
  const hasExternalIds = profileColumns.some(({ source, forms }) => source === EXTERNAL_ID && forms !== 0);
  return {
    unifiedIdsById: joinIds(...findingsOfPlaces.map(({ unifiedIdsById }) => unifiedIdsById)),
    similarIdsById: joinIds(...findingsOfPlaces.map(({ similarIdsById }) => similarIdsById)),
    usedWays: [
      ...(searchesProfiles && hasExternalIds ? ['the table user_profiles'] : []),
      ...(findingsOfPlaces.some(({ hasByColumn }) => hasByColumn) ? [`the column ${byColumn}`] : []),
    ],
    warnings: [
      ...findingsOfPlaces.flatMap(({ warnings }) => warnings),
      ...findingsOfPlaces.flatMap(({ state }, i) =>
        byColumn === undefined || typedColumns(columnsNamed(state.events, byColumn)).length > 0
          ? []
          : `${places[i].name} has no column ${byColumn}: people are found there in the other ways and in _rescued alone.`,
      ),
    ],
  };
}

/** Sentences about the ids that no way found, by the rows of the list; never with their texts. */
function missedSentences(missedIds: readonly ListedId[], similarIdsById: ReturnType<typeof joinIds>): string[] {
  if (missedIds.length === 0) return [];
  const misspeltIds = missedIds.filter(({ id }) => similarIdsById.has(id));
  const byDifference = groupBy(misspeltIds, ({ id }) => differenceText(id, similarIdsById.get(id) ?? []));
  const subject = missedIds.length === 1 ? 'this ID was' : 'these IDs were';
  return [
    `${rowsText(rowNumbersOf(missedIds))}: ${subject} found in no way (${formatCount(missedIds.length, 'ID')}).`,
    ...Array.from(
      byDifference,
      ([difference, ids]) =>
        `${rowsText(rowNumbersOf(ids))}: there is an ID that differs only in ${difference}. Is this one spelt right?`,
    ),
  ];
}

export function namedPlace(place: Place<StatefulTarget>): NamedPlace {
  const { target, address } = place;
  const path = schemeOf(address) === undefined ? realOrGivenPath(address) : address.replace(/\/+$/, '');
  return { ...place, name: `${target.name} ${path}` };
}

/** Refuses a place that was loaded from another service. Without a `serviceId` nobody knows. */
export function refusePlaceOfOtherService(place: NamedPlace, { state }: PeopleFindings, serviceId?: string): void {
  const placeService = state.events.exportState?.service;
  if (placeService === undefined || serviceId === undefined || placeService === serviceFingerprint({ serviceId }))
    return;
  throw configError(
    `${place.name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
  );
}
