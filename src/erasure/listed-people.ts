import { configError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import type { HashKey } from '../base/hash-key.ts';
import { formatCount } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import {
  columnsNamed,
  joinUnifiedIds,
  type PeopleInPlace,
  type PeopleQuery,
  personOf,
  type UnifiedIdsById,
} from '../engine/people/people.ts';
import { differenceOf } from '../engine/people/spelling.ts';
import { realOrGivenPath, schemeOf } from '../fs/local-path.ts';
import type { ExportService } from '../service/export/export-service.ts';
import type { Place, PlaceOptions, StatefulTarget } from '../targets/contract.ts';
import { type ListedId, rowsText } from './id-list.ts';
import { readMapping } from './list-file.ts';
import { type ProfilesOfIds, profilesOfIds } from './profiles-of-ids.ts';

// The ways in which the people of a list are found. One is the profiles: of the service, else of the places
// (`user_profiles`), or a mapping in place of both. The other is the rows of places whose column holds an id. The union
// is meant.

/** The name of a place in the ledger and in hashes, whatever working folder and links lead to it. */
export function placeName({ target, address }: Pick<Place, 'target' | 'address'>): string {
  return `${target.name} ${schemeOf(address) === undefined ? realOrGivenPath(address) : address.replace(/\/+$/, '')}`;
}

/** The places, and the ways in which people are looked for. */
export interface SearchSettings {
  readonly places: readonly Place<StatefulTarget>[];
  /** The export of profiles; undefined if it is not asked. */
  readonly profileService: ExportService | undefined;
  /** Column of the places with the external ids. */
  readonly byColumn: string | undefined;
  /** File with the columns external_id and df_unified_id, in place of the profiles. */
  readonly mapping: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly io: Pick<PlaceOptions, 'spoolDir'> & Runtime;
}

/** The people of a list, as they were found before anything is changed. */
export interface ListedPeople {
  /** Asks a place for the rows of these people. */
  readonly query: PeopleQuery;
  /** The ids that some way found, also those whose rows name nobody. */
  readonly foundIds: ReadonlySet<string>;
  /** Number of ids with a profile at the service; null if it was not asked. */
  readonly idsWithProfile: number | null;
  /** The people whom rows name, and whose profile has another external id: the id changed hands. */
  readonly peopleWithOtherIds: ReadonlySet<string>;
  /** The ways in which they were looked for, in words. */
  readonly usedWays: readonly string[];
  /** What the mapping says of the ids, which the confirmation covers; undefined without one. */
  readonly unifiedIdsInMapping: UnifiedIdsById | undefined;
  readonly warnings: readonly string[];
}

const NO_WAY =
  'Nothing says how people are found in the places. Let erasure.profiles be true and set export_token ' +
  '(DFINERY_EXPORT_TOKEN). Or load user profiles (user_profiles). Or name the column that holds the external ID ' +
  '(--by-column, erasure.by_column). Or give --mapping FILE.';

/** Looks for the people in every way. Changes nothing. Throws UserError where people could be missed. */
export async function findListedPeople(listedIds: readonly ListedId[], search: SearchSettings): Promise<ListedPeople> {
  const { byColumn, profileService, hashKey, io } = search;
  const ids = new Set(listedIds.map(({ id }) => id));

  // 1. A mapping, in place of profiles.
  const unifiedIdsInMapping = search.mapping === undefined ? undefined : await readMapping(search.mapping, ids);

  // 2. The rows of all places. They come first: an id changed hands if the profile of a person in rows has another id.
  const usesProfiles = unifiedIdsInMapping === undefined && ids.size > 0;
  const asksService = usesProfiles && profileService !== undefined;
  const query = { ids: [...ids], byColumn, hashKey };
  let lookups = await searchRows({ ...query, searchesProfiles: usesProfiles && !asksService }, search);

  // 3. The profiles of the service. If it does not export them, those that the places hold.
  const unifiedIdsInRows = lookups.flatMap(({ unifiedIdsById }) => [...unifiedIdsById.values()].flat());
  const peopleInRows = new Set(unifiedIdsInRows.map((text) => personOf(text, hashKey)));
  const { profiles, whyNoProfiles } = asksService
    ? await profilesOfIds({ ids, peopleInRows, hashKey }, profileService, io)
    : {};
  const searchesProfiles = usesProfiles && profiles === undefined;
  if (asksService && searchesProfiles) lookups = await searchRows({ ...query, searchesProfiles }, search);
  const hasColumn = ({ state }: PeopleInPlace) => columnsNamed(state.events, byColumn).length > 0;
  const usesColumn = lookups.some(hasColumn);
  const hasProfiles = searchesProfiles && lookups.some(({ state }) => state.user_profiles !== undefined);
  if (searchesProfiles && !usesColumn && !hasProfiles) {
    const missing = whyNoProfiles ?? (byColumn === undefined ? '' : `No place has a column ${byColumn}.`);
    throw configError(`${missing} ${NO_WAY} Nothing was done.`.trimStart());
  }

  const unifiedIdsById = joinUnifiedIds(
    profiles?.unifiedIdsById,
    unifiedIdsInMapping,
    ...lookups.map((lookup) => lookup.unifiedIdsById),
  );
  const foundIds = new Set([
    ...unifiedIdsById.keys(),
    ...lookups.flatMap(({ rowCountById }) => [...rowCountById.keys()]),
  ]);
  const placesWithoutColumn = lookups.filter((lookup) => byColumn !== undefined && !hasColumn(lookup));
  return {
    query: { ...query, searchesProfiles, knownUnifiedIds: unifiedIdsById },
    foundIds,
    idsWithProfile: profiles?.unifiedIdsById.size ?? null,
    peopleWithOtherIds: profiles?.peopleWithOtherIds ?? new Set(),
    usedWays: [
      ...(unifiedIdsInMapping === undefined ? [] : ['a mapping']),
      ...(profiles === undefined ? [] : ['the profiles of the service']),
      ...(hasProfiles ? ['the table user_profiles'] : []),
      ...(usesColumn ? [`the column ${byColumn}`] : []),
    ],
    unifiedIdsInMapping,
    warnings: [
      ...(whyNoProfiles === undefined ? [] : [`${whyNoProfiles} People are found in the places alone.`]),
      ...lookups.flatMap(({ warnings }) => warnings),
      ...placesWithoutColumn.map(
        ({ name }) => `${name} has no column ${byColumn}: people are found there in the other ways alone.`,
      ),
      ...missedSentences(listedIds, foundIds, [profiles, ...lookups]),
    ],
  };
}

/** What rows of each place say of the ids, by the column and by the profiles. */
async function searchRows(query: PeopleQuery, { places, io }: SearchSettings) {
  const lookups: (PeopleInPlace & { readonly name: string })[] = [];
  if (query.ids.length === 0 || (query.byColumn === undefined && !query.searchesProfiles)) return lookups;
  for (const place of places) {
    const name = placeName(place);
    io.logger.info('people.find', `Looking for the IDs in ${name} …`);
    lookups.push({ ...(await (await place.target.people(place)).find(query)), name });
  }
  return lookups;
}

/** Sentences about the ids that no way found, by the rows of the list; never with their texts. */
function missedSentences(
  listedIds: readonly ListedId[],
  foundIds: ReadonlySet<string>,
  sources: readonly (Pick<ProfilesOfIds, 'similarIdById'> | undefined)[],
): string[] {
  const missedIds = listedIds.filter(({ id }) => !foundIds.has(id));
  if (missedIds.length === 0) return [];
  const similarIdById = new Map(sources.flatMap((source) => [...(source?.similarIdById ?? [])]));
  const misspeltIds = missedIds.filter(({ id }) => similarIdById.has(id));
  const byDifference = groupBy(misspeltIds, ({ id }) => differenceOf(id, similarIdById.get(id) ?? ''));
  const what = missedIds.length === 1 ? 'this ID was' : 'these IDs were';
  return [
    `${rowsText(missedIds)}: ${what} found in no way (${formatCount(missedIds.length, 'ID')}).`,
    ...Array.from(
      byDifference,
      ([difference, ids]) =>
        `${rowsText(ids)}: there is an ID that differs only in ${difference}. Is this one spelt right?`,
    ),
  ];
}
