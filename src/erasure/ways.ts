import { configError } from '../base/errors.ts';
import { count } from '../base/quantities.ts';
import type { RunContext } from '../base/runtime.ts';
import type { HashKey } from '../cells/columns/hash-key.ts';
import { joinUnifiedIds, type PeopleFound, type PeopleQuery, personOf } from '../engine/people/query.ts';
import { differenceOf } from '../engine/people/spelling.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { ProfileService } from '../service/export/profiles.ts';
import type { Place, StatefulTarget } from '../targets/contract.ts';
import type { PlaceOptions } from '../targets/place-options.ts';
import { type ListedId, rowsText } from './list.ts';
import { readMapping } from './list-file.ts';
import { type ProfilesAnswer, type ProfilesOfIds, profilesOfIds } from './profiles-of-ids.ts';

// The ways in which the people of a list are found. One is the profiles: of the service, else of the places
// (`user_profiles`), or a mapping in place of both. The other is the rows of places whose column holds an id. The union
// is meant.

/** The name of a place in the ledger and in hashes, whatever working folder and links lead to it. */
export function placeName({ target, path }: Place): string {
  return `${target.name} ${schemeOf(path) === undefined ? realPath(path) : path.replace(/\/+$/, '')}`;
}

/** The places, and the ways in which people are looked for. */
export interface PeopleSearch {
  readonly places: readonly Place<StatefulTarget>[];
  /** The export of profiles; undefined if it is not asked. */
  readonly profiles: ProfileService | undefined;
  /** Column of the places with the external ids. */
  readonly column: string | undefined;
  /** File with the columns external_id and df_unified_id, in place of the profiles. */
  readonly mapping: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly options: PlaceOptions & RunContext;
}

/** The people of a list, as they were found before anything is changed. */
export interface ListedPeople {
  /** Asks a place for the rows of these people. */
  readonly query: PeopleQuery;
  /** The ids that some way found, also those whose rows name nobody. */
  readonly foundIds: ReadonlySet<string>;
  /** Number of ids with a profile at the service; null if it was not asked. */
  readonly withProfile: number | null;
  /** The people whom rows name, and whose profile has another external id: the id changed hands. */
  readonly peopleWithOtherIds: ReadonlySet<string>;
  /** The ways in which they were looked for, in words. */
  readonly usedWays: readonly string[];
  /** The pairs of a mapping, which the confirmation covers. */
  readonly mapped: readonly (readonly [id: string, unifiedId: string])[];
  readonly warnings: readonly string[];
}

/** The people of a list without ids. */
const NOBODY_LISTED: Omit<ListedPeople, 'query'> = {
  foundIds: new Set(),
  withProfile: null,
  peopleWithOtherIds: new Set(),
  usedWays: [],
  mapped: [],
  warnings: [],
};

const NO_WAY =
  'Nothing says how people are found in the places. Let erasure.profiles be true and set export_token ' +
  '(DFINERY_EXPORT_TOKEN). Or load user profiles (user_profiles). Or name the column that holds the external ID ' +
  '(--by-column, erasure.by_column). Or give --mapping FILE.';

/** Looks for the people in every way. Changes nothing. Throws UserError where people could be missed. */
export async function findInAllWays(entries: readonly ListedId[], search: PeopleSearch): Promise<ListedPeople> {
  const { column, profiles: service, hashKey, options } = search;
  if (entries.length === 0) return { ...NOBODY_LISTED, query: { ids: [], hashKey } };
  const ids = entries.map(({ id }) => id);
  const idSet = new Set(ids);

  // 1. A mapping, in place of profiles.
  const mapping = search.mapping === undefined ? undefined : await readMapping(search.mapping, idSet);

  // 2. The rows of all places. They come first: an id changed hands if the profile of a person in rows has another id.
  const query = { ids, column, hashKey };
  let searchesProfiles = service === undefined && mapping === undefined;
  let lookups = await searchRows({ ...query, searchesProfiles }, search);
  const unifiedIdsInRows = lookups.flatMap((lookup) => [...lookup.unifiedIdsOf.values()].flat());
  const peopleInRows = new Set(unifiedIdsInRows.map((text) => personOf(text, hashKey)));

  // 3. The profiles of the service. If it does not export them, those that the places hold.
  const isAsked = service !== undefined && mapping === undefined;
  const { profiles, whyNot }: ProfilesAnswer = isAsked
    ? await profilesOfIds({ ids: idSet, peopleInRows, hashKey }, service, options)
    : {};
  if (whyNot !== undefined) {
    searchesProfiles = true;
    lookups = await searchRows({ ...query, searchesProfiles }, search);
  }
  const hasColumn = lookups.some((lookup) => lookup.hasColumn);
  const hasProfiles = searchesProfiles && lookups.some(({ state }) => state.profiles !== undefined);
  if (searchesProfiles && !hasColumn && !hasProfiles) {
    const missing = whyNot ?? (column === undefined ? '' : `No place has a column ${column}.`);
    throw configError(`${missing} ${NO_WAY} Nothing was done.`.trimStart());
  }

  const unifiedIdsOf = joinUnifiedIds(profiles?.unifiedIdsOf, mapping, ...lookups.map((lookup) => lookup.unifiedIdsOf));
  const foundIds = new Set([...unifiedIdsOf.keys(), ...lookups.flatMap(({ rowsOf }) => [...rowsOf.keys()])]);
  return {
    query: { ...query, searchesProfiles, knownUnifiedIds: unifiedIdsOf },
    foundIds,
    withProfile: profiles?.unifiedIdsOf.size ?? null,
    peopleWithOtherIds: profiles?.peopleWithOtherIds ?? new Set(),
    usedWays: [
      ...(mapping === undefined ? [] : ['a mapping']),
      ...(profiles === undefined ? [] : ['the profiles of the service']),
      ...(hasProfiles ? ['the table user_profiles'] : []),
      ...(hasColumn ? [`the column ${column}`] : []),
    ],
    mapped: [...(mapping ?? [])].flatMap(([id, texts]) => texts.map((text) => [id, text] as const)),
    warnings: [
      ...(whyNot === undefined ? [] : [`${whyNot} People are found in the places alone.`]),
      ...lookups.flatMap((lookup) => [...lookup.warnings, ...columnSentences(lookup, column)]),
      ...missedSentences(entries, foundIds, [profiles, ...lookups]),
    ],
  };
}

const columnSentences = ({ name, hasColumn }: NamedLookup, column: string | undefined): string[] =>
  column === undefined || hasColumn
    ? []
    : [`${name} has no column ${column}: people are found there in the other ways alone.`];

type NamedLookup = PeopleFound & { readonly name: string };

/** What rows of each place say of the ids, by the column and by the profiles. */
async function searchRows(query: PeopleQuery, { places, options }: PeopleSearch): Promise<NamedLookup[]> {
  const lookups: NamedLookup[] = [];
  if (query.column === undefined && !query.searchesProfiles) return lookups;
  for (const place of places) {
    const name = placeName(place);
    options.logger.info('people.find', `Looking for the IDs in ${name} …`);
    lookups.push({ ...(await (await place.target.people()).find(place.path, query, options)), name });
  }
  return lookups;
}

/** Sentences about the ids that no way found, by the rows of the list; never with their texts. */
function missedSentences(
  entries: readonly ListedId[],
  foundIds: ReadonlySet<string>,
  sources: readonly (Pick<ProfilesOfIds, 'alikeTexts'> | undefined)[],
): string[] {
  const missed = entries.filter(({ id }) => !foundIds.has(id));
  if (missed.length === 0) return [];
  const alikeTexts = new Map(sources.flatMap((source) => [...(source?.alikeTexts ?? [])]));
  const byDifference = new Map<string, ListedId[]>();
  for (const entry of missed) {
    const other = alikeTexts.get(entry.id);
    if (other === undefined) continue;
    const difference = differenceOf(entry.id, other);
    byDifference.set(difference, [...(byDifference.get(difference) ?? []), entry]);
  }
  const what = missed.length === 1 ? 'this ID was' : 'these IDs were';
  return [
    `${rowsText(missed)}: ${what} found in no way (${count(missed.length, 'ID')}).`,
    ...[...byDifference].map(
      ([difference, alikes]) =>
        `${rowsText(alikes)}: there is an ID that differs only in ${difference}. Is this one spelt right?`,
    ),
  ];
}
