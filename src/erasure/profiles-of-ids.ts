import { configError, transientError, UserError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import type { HashKey } from '../base/hash-key.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import type { Runtime } from '../base/runtime.ts';
import { sentenceOf } from '../base/text.ts';
import { RowReader } from '../cells/csv/row-reader.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../cells/header.ts';
import { personIdOf } from '../engine/people/people.ts';
import { foldedSpelling } from '../engine/people/spelling.ts';
import type { ExportService, ProfileRequest } from '../service/export/export-service.ts';
import { ALL_PROPERTIES, downloadProfiles, IDS_ALONE, type ProfileOptions } from '../service/export/profiles.ts';

interface ProfileQuery {
  /** The external ids of the list. */
  readonly ids: ReadonlySet<string>;
  /** The person ids of those whom rows with these ids name. */
  readonly personIdsInRows: ReadonlySet<string>;
  readonly hashKey: HashKey | undefined;
}

const REMEDY =
  'Without it people could be missed. Or give --mapping FILE, or set erasure.profiles to false. Nothing was done.';

/**
 * Asks the service for all profiles, and keeps what belongs to the list, in memory alone. Throws UserError where people
 * could be missed: the service is busy, or refuses the token. `whyNoProfiles`: it exports none with external ids.
 */
export async function findProfilesOfIds(
  query: ProfileQuery,
  service: ExportService,
  runtime: Omit<Runtime, 'env'>,
): Promise<{ readonly profiles?: ProfilesOfIds; readonly whyNoProfiles?: string }> {
  const options = { ...runtime, service, openOutput: () => new ProfilesOfIds(query) };
  let answer = await download(IDS_ALONE, options);
  if (answer.kind === 'invalid') answer = await download(ALL_PROPERTIES, options);
  if (answer.kind !== 'checked') {
    const sentence = sentenceOf(answer.clause);
    if (answer.kind === 'later') throw transientError(`${sentence} ${REMEDY}`);
    const isMissing = answer.kind === 'gone' || answer.kind === 'invalid';
    if (!isMissing) throw configError(`${sentence} Nothing was done.`);
    return { whyNoProfiles: `The service does not export profiles: ${sentence}` };
  }
  const { scan, output: profiles } = answer;
  if (!scan.columns.some(({ headerName }) => headerName === EXTERNAL_ID))
    return { whyNoProfiles: `The profiles of the service have no column ${EXTERNAL_ID}.` };
  if (!profiles.hasExternalIds) return { whyNoProfiles: `No profile of the service has a ${EXTERNAL_ID}.` };
  return { profiles };
}

/** A wait for the quota that is too long is an answer like a service that is busy. */
async function download(request: ProfileRequest, options: ProfileOptions<ProfilesOfIds>) {
  try {
    return await downloadProfiles(request, options);
  } catch (error) {
    if (!(error instanceof UserError) || error.kind !== 'transient') throw error;
    return { kind: 'later' as const, clause: error.message };
  }
}

/** What the profiles say of the ids, read from checked CSV as it arrives. Memory: the profiles of the list. */
class ProfilesOfIds {
  readonly unifiedIdsById = new Map<string, string[]>();
  /** An id, and the external id of a profile that differs from it only in its spelling. */
  readonly similarIds: (readonly [id: string, similarIds: readonly [string]])[] = [];
  /** Those whom rows name, and whose profile has an external id that is not on the list. */
  readonly sharedPersonIds = new Set<string>();
  hasExternalIds = false;
  readonly #query: ProfileQuery;
  readonly #idsBySpelling: Map<string, string[]>;
  readonly #reader = new RowReader();
  #unifiedIdIndex = -1;
  #externalIdIndex = -1;

  constructor(query: ProfileQuery) {
    this.#query = query;
    this.#idsBySpelling = groupBy(query.ids, foldedSpelling);
    // An id of zeros alone is like no other.
    this.#idsBySpelling.delete('');
  }

  write(bytes: Uint8Array): void {
    this.#reader.push(bytes);
    this.#readRows();
  }

  async close(): Promise<void> {
    this.#reader.finish();
    this.#readRows();
  }

  #readRows(): void {
    while (this.#reader.next()) {
      const cells = this.#reader.row.texts();
      if (this.#reader.rowNumber === 1)
        [this.#unifiedIdIndex, this.#externalIdIndex] = [cells.indexOf(UNIFIED_ID), cells.indexOf(EXTERNAL_ID)];
      else this.#add(cells[this.#unifiedIdIndex] ?? '', cells[this.#externalIdIndex] ?? '');
    }
  }

  #add(unifiedId: string, externalId: string): void {
    if (isPlaceholder(externalId) || isPlaceholder(unifiedId)) return;
    this.hasExternalIds = true;
    const { ids, personIdsInRows, hashKey } = this.#query;
    for (const id of this.#idsBySpelling.get(foldedSpelling(externalId)) ?? [])
      if (id !== externalId) this.similarIds.push([id, [externalId]]);
    if (ids.has(externalId)) {
      this.unifiedIdsById.set(externalId, [...(this.unifiedIdsById.get(externalId) ?? []), unifiedId]);
      return;
    }
    const personId = personIdOf(unifiedId, hashKey);
    if (personIdsInRows.has(personId)) this.sharedPersonIds.add(personId);
  }
}
