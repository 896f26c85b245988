import { configError } from '../base/errors.ts';
import { count } from '../base/quantities.ts';
import type { RunIo } from '../base/runtime.ts';
import type { HashKey } from '../cells/columns/hash-key.ts';
import { joinPeople, type PeopleFound, type PeopleOfIds, personOf } from '../engine/people/query.ts';
import { differenceOf } from '../engine/people/spelling.ts';
import type { ProfileService } from '../service/export/profiles.ts';
import type { PlaceOptions } from '../targets/contract.ts';
import { type ListedId, rowsText } from './list.ts';
import { readMapping } from './list-file.ts';
import { placeName, type StoredPlace } from './place.ts';
import { type ProfilesOfIds, profilesOfIds } from './profiles-of-ids.ts';

// The ways in which the people of a list are found. One is the profiles of the service, or a mapping in their place. The
// other is the rows of places whose column holds an id. The union is meant.

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

/** The people of a list, before anything is changed. */
export interface PeopleOfList {
  /** Unified ids by external id, in every form that a way has. */
  readonly people: PeopleOfIds;
  /** The ids that some way found, also those whose rows name nobody. */
  readonly foundIds: ReadonlySet<string>;
  /** Number of ids with a profile at the service; null if it was not asked. */
  readonly withProfile: number | null;
  /** Number of people whom rows name, and whose profile has another external id. */
  readonly changedHands: number;
  /** True if the profiles that places hold tell whose the ids are. */
  readonly asksProfiles: boolean;
  /** The pairs of a mapping, which the confirmation covers. */
  readonly mapped: readonly (readonly [id: string, unifiedId: string])[];
  readonly warnings: string[];
}

const NO_WAY =
  'Nothing says how people are found in the places. Let erasure.profiles be true and set export_token ' +
  '(DFINERY_EXPORT_TOKEN). Or load user profiles (user_profiles). Or name the column that holds the external ID ' +
  '(--by-column, erasure.by_column). Or give --mapping FILE.';

/** The ways as words for the ledger, which tell where somebody was looked for. */
export const waysOf = ({ profiles, column, mapping }: Ways): string[] => [
  ...(mapping === undefined ? [] : ['a mapping']),
  ...(mapping === undefined && profiles !== undefined ? ['the profiles of the service'] : []),
  ...(asksTables({ profiles, mapping }) ? ['the table user_profiles'] : []),
  ...(column === undefined ? [] : [`the column ${column}`]),
];

/** True if the profiles that places hold are asked in place of those of the service. */
const asksTables = ({ profiles, mapping }: Pick<Ways, 'profiles' | 'mapping'>): boolean =>
  profiles === undefined && mapping === undefined;

/** Looks for the people in every way. Changes nothing. Throws UserError where people could be missed. */
export async function findInAllWays(listed: readonly ListedId[], ways: Ways, io: RunIo): Promise<PeopleOfList> {
  const { hashKey, column } = ways;
  const ids = new Set(listed.map(({ id }) => id));
  const mapping = ways.mapping === undefined ? undefined : await readMapping(ways.mapping, ids);
  let asksProfiles = asksTables(ways);
  let inRows = await searchRows([...ids], asksProfiles, ways);
  const named = new Set(
    inRows.flatMap(({ peopleOf }) => [...peopleOf.values()].flat()).map((text) => personOf(text, hashKey)),
  );
  const query = { ids, isNamed: (text: string) => named.has(personOf(text, hashKey)) };
  const asked = mapping === undefined && ways.profiles ? await profilesOfIds(query, ways.profiles, io) : undefined;
  const [profiles, why] = typeof asked === 'string' ? [undefined, asked] : [asked, undefined];
  const warnings: string[] = [];
  if (why !== undefined) {
    asksProfiles = true;
    inRows = await searchRows([...ids], asksProfiles, ways);
    warnings.push(`${why} People are found in the places alone.`);
  }
  if (asksProfiles && !inRows.some((place) => place.column !== undefined || place.hasProfiles)) {
    const lacking = why ?? (column === undefined ? '' : `No place has a column ${column}.`);
    throw configError(`${lacking} ${NO_WAY} Nothing was done.`.trimStart());
  }
  for (const place of inRows) {
    warnings.push(...place.warnings);
    if (column !== undefined && place.column === undefined) {
      warnings.push(`${place.name} has no column ${column}: people are found there in the other ways alone.`);
    }
  }
  const people = joinPeople(profiles?.people, mapping, ...inRows.map(({ peopleOf }) => peopleOf));
  const foundIds = new Set([...people.keys(), ...inRows.flatMap(({ rowsOf }) => [...rowsOf.keys()])]);
  return {
    people,
    foundIds,
    withProfile: profiles?.people.size ?? null,
    changedHands: profiles?.ofOthers.size ?? 0,
    asksProfiles,
    mapped: [...(mapping ?? [])].flatMap(([id, texts]) => texts.map((text) => [id, text] as const)),
    warnings: [...warnings, ...missedSentences(listed, foundIds, [profiles, ...inRows])],
  };
}

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
    const people = await place.target.people();
    inRows.push({ ...(await people.find(place.path, { ids, column, asksProfiles, hashKey }, options)), name });
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
  const kinds = new Map<string, ListedId[]>();
  for (const entry of missed) {
    const other = near.get(entry.id);
    if (other === undefined) continue;
    const difference = differenceOf(entry.id, other);
    kinds.set(difference, [...(kinds.get(difference) ?? []), entry]);
  }
  const what = missed.length === 1 ? 'this ID was' : 'these IDs were';
  return [
    `${rowsText(missed)}: ${what} found in no way (${count(missed.length, 'ID')}).`,
    ...[...kinds].map(
      ([difference, entries]) =>
        `${rowsText(entries)}: there is an ID that differs only in ${difference}. Is this one spelt right?`,
    ),
  ];
}
