import { configError } from '../base/errors.ts';
import { count } from '../base/quantities.ts';
import type { RunContext } from '../base/runtime.ts';
import type { HashKey } from '../cells/columns/hash-key.ts';
import { joinPeople, type PeopleById, type PeopleFound, type PeopleQuery, personOf } from '../engine/people/query.ts';
import { differenceOf } from '../engine/people/spelling.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { ProfileService } from '../service/export/profiles.ts';
import type { StatefulTarget } from '../targets/contract.ts';
import type { PlaceOptions } from '../targets/place-options.ts';
import { type ListedId, rowsText } from './list.ts';
import { readMapping } from './list-file.ts';
import { type ProfilesOfIds, profilesOfIds } from './profiles-of-ids.ts';

// The ways in which the people of a list are found. One is the profiles of the service, or a mapping in their place.
// The other is the rows of places whose column holds an id. The union is meant.

/** A place as a user names it. */
export interface StoredPlace {
  readonly target: StatefulTarget;
  readonly path: string;
}

/** The name of a place in the ledger and in hashes, whatever working folder and links lead to it. */
export function placeName({ target, path }: StoredPlace): string {
  return `${target.name} ${schemeOf(path) === undefined ? realPath(path) : path.replace(/\/+$/, '')}`;
}

/** The places, and the ways in which people are looked for. */
export interface PeopleSearch {
  readonly places: readonly StoredPlace[];
  /** The export of profiles; undefined if it is not asked. */
  readonly profiles: ProfileService | undefined;
  /** Column of the places with the external ids. */
  readonly column: string | undefined;
  /** File with the columns external_id and df_unified_id, in place of the profiles. */
  readonly mapping: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly options: PlaceOptions;
}

/** The people of a list, as they were found before anything is changed. */
export interface ListedPeople {
  readonly peopleOf: PeopleById;
  /** The ids that some way found, also those whose rows name nobody. */
  readonly foundIds: ReadonlySet<string>;
  /** Number of ids with a profile at the service; null if it was not asked. */
  readonly withProfile: number | null;
  /** The people whom rows name, and whose profile has another external id: the id changed hands. */
  readonly peopleWithOtherIds: ReadonlySet<string>;
  /** True if the profiles that places hold tell whose the ids are. */
  readonly searchesProfiles: boolean;
  /** The ways in which they were looked for, in words. */
  readonly usedWays: readonly string[];
  /** The pairs of a mapping, which the confirmation covers. */
  readonly mapped: readonly (readonly [id: string, unifiedId: string])[];
  readonly warnings: readonly string[];
}

export const NOBODY_LISTED: ListedPeople = {
  peopleOf: new Map(),
  foundIds: new Set(),
  withProfile: null,
  peopleWithOtherIds: new Set(),
  searchesProfiles: false,
  usedWays: [],
  mapped: [],
  warnings: [],
};

const NO_WAY =
  'Nothing says how people are found in the places. Let erasure.profiles be true and set export_token ' +
  '(DFINERY_EXPORT_TOKEN). Or load user profiles (user_profiles). Or name the column that holds the external ID ' +
  '(--by-column, erasure.by_column). Or give --mapping FILE.';

/** Looks for the people in every way. Changes nothing. Throws UserError where people could be missed. */
export async function findInAllWays(
  entries: readonly ListedId[],
  search: PeopleSearch,
  io: RunContext,
): Promise<ListedPeople> {
  const { column, profiles: service, hashKey } = search;
  const ids = new Set(entries.map(({ id }) => id));

  // 1. A mapping, in place of profiles.
  const mapping = search.mapping === undefined ? undefined : await readMapping(search.mapping, ids);

  // 2. The rows of all places. They come first: an id changed hands if the profile of a person in rows has another id.
  let searchesProfiles = service === undefined && mapping === undefined;
  let lookups = await searchRows([...ids], searchesProfiles, search);
  const peopleInRows = new Set(lookups.flatMap(({ peopleOf }) => personsOf(peopleOf, hashKey)));

  // 3. The profiles of the service. If it does not export them, those that the places hold.
  const isAsked = service !== undefined && mapping === undefined;
  const answer = isAsked ? await profilesOfIds({ ids, peopleInRows, hashKey }, service, io) : undefined;
  if (answer?.kind === 'unavailable') {
    searchesProfiles = true;
    lookups = await searchRows([...ids], searchesProfiles, search);
  }
  const profiles = answer?.kind === 'profiles' ? answer.profiles : undefined;
  const why = answer?.kind === 'unavailable' ? answer.why : undefined;
  if (searchesProfiles && !lookups.some(({ place }) => place.column !== undefined || place.searchedProfiles)) {
    const missing = why ?? (column === undefined ? '' : `No place has a column ${column}.`);
    throw configError(`${missing} ${NO_WAY} Nothing was done.`.trimStart());
  }

  const peopleOf = joinPeople(profiles?.peopleOf, mapping, ...lookups.map((lookup) => lookup.peopleOf));
  const foundIds = new Set([...peopleOf.keys(), ...lookups.flatMap(({ rowsOf }) => [...rowsOf.keys()])]);
  return {
    peopleOf,
    foundIds,
    withProfile: profiles?.peopleOf.size ?? null,
    peopleWithOtherIds: profiles?.peopleWithOtherIds ?? new Set(),
    searchesProfiles,
    usedWays: [
      ...(mapping === undefined ? [] : ['a mapping']),
      ...(profiles === undefined ? [] : ['the profiles of the service']),
      ...(lookups.some(({ place }) => place.searchedProfiles) ? ['the table user_profiles'] : []),
      ...(lookups.some(({ place }) => place.column !== undefined) ? [`the column ${column}`] : []),
    ],
    mapped: [...(mapping ?? [])].flatMap(([id, texts]) => texts.map((text) => [id, text] as const)),
    warnings: [
      ...(why === undefined ? [] : [`${why} People are found in the places alone.`]),
      ...lookups.flatMap((lookup) => [...lookup.warnings, ...columnSentences(lookup, column)]),
      ...missedSentences(entries, foundIds, [profiles, ...lookups]),
    ],
  };
}

const personsOf = (peopleOf: PeopleById, hashKey: HashKey | undefined): string[] =>
  [...peopleOf.values()].flat().map((text) => personOf(text, hashKey));

const columnSentences = ({ name, place }: NamedLookup, column: string | undefined): string[] =>
  column === undefined || place.column !== undefined
    ? []
    : [`${name} has no column ${column}: people are found there in the other ways alone.`];

type NamedLookup = PeopleFound & { readonly name: string };

/** What rows of each place say of the ids, by the column and by the profiles. */
async function searchRows(
  ids: readonly string[],
  searchesProfiles: boolean,
  search: PeopleSearch,
): Promise<NamedLookup[]> {
  const { places, column, options } = search;
  const lookups: NamedLookup[] = [];
  if (column === undefined && !searchesProfiles) return lookups;
  for (const place of places) {
    const name = placeName(place);
    options.logger.info('people.find', `Looking for the IDs in ${name} …`);
    const query = queryOf(ids, search, { searchesProfiles });
    lookups.push({ ...(await (await place.target.people()).find(place.path, query, options)), name });
  }
  return lookups;
}

/** The query of a search for one place. `people`: as they were found before. */
export const queryOf = (
  ids: readonly string[],
  { column, hashKey }: PeopleSearch,
  { searchesProfiles, peopleOf }: Pick<ListedPeople, 'searchesProfiles'> & Partial<ListedPeople>,
): PeopleQuery => ({ ids, column, searchesProfiles, knownPeople: peopleOf, hashKey });

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
