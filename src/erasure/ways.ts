import { configError } from '../base/errors.ts';
import { count } from '../base/quantities.ts';
import type { RunContext } from '../base/runtime.ts';
import type { HashKey } from '../cells/columns/hash-key.ts';
import { joinPeople, type PeopleById, type PeopleFound, personOf } from '../engine/people/query.ts';
import { differenceOf } from '../engine/people/spelling.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { ProfileService } from '../service/export/profiles.ts';
import type { PlaceOptions, StatefulTarget } from '../targets/contract.ts';
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

export interface Ways {
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
  readonly shared: ReadonlySet<string>;
  /** True if the profiles that places hold tell whose the ids are. */
  readonly asksProfiles: boolean;
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
  shared: new Set(),
  asksProfiles: false,
  usedWays: [],
  mapped: [],
  warnings: [],
};

const NO_WAY =
  'Nothing says how people are found in the places. Let erasure.profiles be true and set export_token ' +
  '(DFINERY_EXPORT_TOKEN). Or load user profiles (user_profiles). Or name the column that holds the external ID ' +
  '(--by-column, erasure.by_column). Or give --mapping FILE.';

/** Looks for the people in every way. Changes nothing. Throws UserError where people could be missed. */
export async function findInAllWays(listed: readonly ListedId[], ways: Ways, io: RunContext): Promise<ListedPeople> {
  const { column, profiles: service, hashKey } = ways;
  const ids = new Set(listed.map(({ id }) => id));

  // 1. A mapping, in place of profiles.
  const mapping = ways.mapping === undefined ? undefined : await readMapping(ways.mapping, ids);

  // 2. The rows of all places. They come first: an id changed hands if the profile of a person in rows has another id.
  let asksProfiles = service === undefined && mapping === undefined;
  let inRows = await searchRows([...ids], asksProfiles, ways);
  const persons = new Set(inRows.flatMap((place) => personsOf(place.peopleOf, hashKey)));

  // 3. The profiles of the service. If it does not export them, those that the places hold.
  const isAsked = service !== undefined && mapping === undefined;
  const answer = isAsked ? await profilesOfIds({ ids, persons, hashKey }, service, io) : undefined;
  if (answer?.kind === 'unavailable') {
    asksProfiles = true;
    inRows = await searchRows([...ids], asksProfiles, ways);
  }
  const profiles = answer?.kind === 'profiles' ? answer.profiles : undefined;
  const why = answer?.kind === 'unavailable' ? answer.why : undefined;
  if (asksProfiles && !inRows.some((place) => place.column !== undefined || place.askedProfiles)) {
    const missing = why ?? (column === undefined ? '' : `No place has a column ${column}.`);
    throw configError(`${missing} ${NO_WAY} Nothing was done.`.trimStart());
  }

  const peopleOf = joinPeople(profiles?.peopleOf, mapping, ...inRows.map((place) => place.peopleOf));
  const foundIds = new Set([...peopleOf.keys(), ...inRows.flatMap(({ rowsOf }) => [...rowsOf.keys()])]);
  return {
    peopleOf,
    foundIds,
    withProfile: profiles?.peopleOf.size ?? null,
    shared: profiles?.shared ?? new Set(),
    asksProfiles,
    usedWays: [
      ...(mapping === undefined ? [] : ['a mapping']),
      ...(profiles === undefined ? [] : ['the profiles of the service']),
      ...(inRows.some((place) => place.askedProfiles) ? ['the table user_profiles'] : []),
      ...(inRows.some((place) => place.column !== undefined) ? [`the column ${column}`] : []),
    ],
    mapped: [...(mapping ?? [])].flatMap(([id, texts]) => texts.map((text) => [id, text] as const)),
    warnings: [
      ...(why === undefined ? [] : [`${why} People are found in the places alone.`]),
      ...inRows.flatMap((place) => [...place.warnings, ...columnSentences(place, column)]),
      ...missedSentences(listed, foundIds, [profiles, ...inRows]),
    ],
  };
}

const personsOf = (peopleOf: PeopleById, hashKey: HashKey | undefined): string[] =>
  [...peopleOf.values()].flat().map((text) => personOf(text, hashKey));

const columnSentences = (place: PlaceRows, column: string | undefined): string[] =>
  column === undefined || place.column !== undefined
    ? []
    : [`${place.name} has no column ${column}: people are found there in the other ways alone.`];

type PlaceRows = PeopleFound & { readonly name: string };

/** What rows of each place say of the ids, by the column and by the profiles. */
async function searchRows(
  ids: readonly string[],
  asksProfiles: boolean,
  { places, column, hashKey, options }: Ways,
): Promise<PlaceRows[]> {
  const inRows: PlaceRows[] = [];
  if (column === undefined && !asksProfiles) return inRows;
  for (const place of places) {
    const name = placeName(place);
    options.logger.info('people.find', `Looking for the IDs in ${name} …`);
    const query = { ids, column, asksProfiles, hashKey };
    inRows.push({ ...(await (await place.target.people()).find(place.path, query, options)), name });
  }
  return inRows;
}

/** Sentences about the ids that no way found, by the rows of the list; never with their texts. */
function missedSentences(
  listed: readonly ListedId[],
  foundIds: ReadonlySet<string>,
  sources: readonly (Pick<ProfilesOfIds, 'near'> | undefined)[],
): string[] {
  const missed = listed.filter(({ id }) => !foundIds.has(id));
  if (missed.length === 0) return [];
  const near = new Map(sources.flatMap((source) => [...(source?.near ?? [])]));
  const byDifference = new Map<string, ListedId[]>();
  for (const entry of missed) {
    const other = near.get(entry.id);
    if (other === undefined) continue;
    const difference = differenceOf(entry.id, other);
    byDifference.set(difference, [...(byDifference.get(difference) ?? []), entry]);
  }
  const what = missed.length === 1 ? 'this ID was' : 'these IDs were';
  return [
    `${rowsText(missed)}: ${what} found in no way (${count(missed.length, 'ID')}).`,
    ...[...byDifference].map(
      ([difference, entries]) =>
        `${rowsText(entries)}: there is an ID that differs only in ${difference}. Is this one spelt right?`,
    ),
  ];
}
