import { resolve } from 'node:path';
import { configError, defectText, EXIT, internalError, transientError, UserError } from '../base/errors.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { count, grouped } from '../base/quantities.ts';
import type { Secret } from '../base/secrets.ts';
import { serviceHash } from '../extract/export-request.ts';
import { sweepRunFolders } from '../extract/spool/run-folder.ts';
import { foreignSpoolFolders, liveFolders, purgeSpools, spoolFolders } from '../extract/spool/spool-folders.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import { UNIFIED_ID } from '../schema/groups.ts';
import type { HashKey } from '../schema/hash-key.ts';
import {
  NOBODY,
  type PeopleFound,
  type PeopleQuery,
  type PlaceOptions,
  type PurgeResult,
  type StatefulTarget,
} from '../sinks/target.ts';
import { suppress } from '../suppression/list.ts';
import type { ListedId } from './input/deletion-list.ts';
import { rowsFromFile } from './input/id-list.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { ServiceName } from './ledger/unfinished.ts';

export interface PurgePlace {
  readonly target: StatefulTarget;
  readonly path: string;
}

export interface PurgeRequest {
  readonly places: readonly PurgePlace[];
  readonly column: string | undefined;
  /** File with the columns external_id and df_unified_id. */
  readonly mapping: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly suppression: { readonly file: string; readonly key: Secret } | undefined;
  /** Every folder where downloads may lie. */
  readonly spoolDirs: readonly string[];
  readonly options: PlaceOptions;
  /** True if no request is sent (S56). */
  readonly isPurgeOnly: boolean;
  /** Undefined for three for each id, ten at least (S55). */
  readonly maxPeople: number | undefined;
  readonly allowsShared: boolean;
  readonly forgetCopies: readonly string[];
  /** The one of the places that the list is read from; it is purged last, since a purged place gives the list no more. */
  readonly listPlace: PurgePlace | undefined;
}

type Removed = Readonly<Record<'people' | 'rows' | 'files_rewritten' | 'bytes_before' | 'bytes_after', number>>;

/** Counts of what was removed, with the names of the report and of the ledger. */
const removedBy = ({ found, rowsRemoved, files, bytesBefore, bytesAfter }: PurgeResult): Removed => ({
  people: found.people,
  rows: rowsRemoved,
  files_rewritten: files.length,
  bytes_before: bytesBefore,
  bytes_after: bytesAfter,
});

const MAX_NAMED = 100;
const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;

/** The name of a place in the ledger, in hashes and in messages, whatever working folder and links lead to it. */
export function placeName({ target, path }: PurgePlace): string {
  return `${target.name} ${schemeOf(path) === undefined ? realPath(path) : path.replace(/\/+$/, '')}`;
}

export type Mapping = ReadonlyMap<string, readonly string[]>;

/** The unified ids that a CSV or JSON Lines file with the columns external_id and df_unified_id gives these ids. */
export async function readMapping(path: string, ids: readonly ListedId[]): Promise<Mapping> {
  const wanted = new Set(ids.map(({ id }) => id));
  const mapping = new Map<string, string[]>();
  const columns = ['external_id', UNIFIED_ID];
  const lacking = new Set(columns);
  let row = 0;
  for await (const cells of rowsFromFile(path, columns)) {
    row++;
    for (const [i, column] of columns.entries()) {
      const cell = cells[i];
      if (cell !== undefined) lacking.delete(column);
      // To skip it would leave the person where it is, and to write it as a text might make another id.
      if (cell === undefined || cell === null || typeof cell === 'string') continue;
      throw configError(
        `Row ${row} of ${path} holds a value of ${column} that is no text: put it in quotes. Nothing was done.`,
      );
    }
    const [id, person] = cells;
    if (typeof id !== 'string' || !wanted.has(id) || typeof person !== 'string' || isPlaceholder(person)) continue;
    const known = mapping.get(id) ?? [];
    if (!known.includes(person)) mapping.set(id, [...known, person]);
  }
  const [column] = lacking;
  if (row > 0 && column !== undefined) throw configError(`No row of ${path} has ${column}: nothing was done.`);
  return mapping;
}

interface PlaceState {
  readonly place: PurgePlace;
  readonly found: PeopleFound;
  /** True once rows may have been removed. */
  readonly isBegun?: boolean;
  readonly done?: PurgeResult;
  readonly failure?: UserError | undefined;
}

/** What was found and removed in a place, of those who are listed; with the names of the report. */
function placeReport({ place, found, done, failure }: PlaceState, listed: readonly ListedId[]) {
  const has = new Set(found.ids);
  const lacking = listed.filter(({ id }) => !has.has(id));
  const { rows = null, files_rewritten = 0, bytes_before = 0, bytes_after = 0 } = done ? removedBy(done) : {};
  return {
    target: place.target.name,
    place: place.path,
    people: found.people,
    rows: found.rows,
    shared: found.shared,
    ids_without_rows: lacking.length,
    /** The first rows of the list whose ids have no row in the place, from 1. */
    row_numbers: lacking.slice(0, MAX_NAMED).map(({ row }) => row),
    /** Null: nothing was removed yet, or a failure leaves open how many were. */
    rows_removed: rows,
    files_rewritten,
    bytes_before,
    bytes_after,
    /** Why the people are still there. */
    error: failure?.message ?? null,
  };
}

const heldBackError = ({ target, path }: PurgePlace): UserError =>
  transientError(
    `${target.name} ${path} was left as it is: the list is read from it, and is needed until the rest of the purge ` +
      'is done. Run again with the same list.',
  );

export type PlaceReport = Readonly<ReturnType<typeof placeReport>>;

/** A request whose file of the mapping is read. */
type ReadRequest = Omit<PurgeRequest, 'mapping'> & { readonly mapping: Mapping | undefined };

export class Purge {
  readonly #request: ReadRequest;
  readonly #listed: readonly ListedId[];
  /** Hash of the service whose ids these are. */
  readonly #service: string;
  /** True if nobody is left to be deleted at the service: then a place that fails keeps no other from its purge. */
  readonly #isDeletionDecided: boolean;
  readonly #warned = new Set<string>();
  /** Who is looked for: first the whole list, then those who are deleted. */
  #ids: readonly string[];
  #states: readonly PlaceState[] = [];
  /** Sentences about what may still hold the people and is out of reach. */
  readonly #unreached: string[] = [];

  private constructor(
    request: ReadRequest,
    listed: readonly ListedId[],
    service: ServiceName,
    isDeletionDecided: boolean,
  ) {
    this.#request = request;
    this.#listed = listed;
    this.#service = serviceHash(service);
    this.#isDeletionDecided = isDeletionDecided;
    this.#ids = listed.map(({ id }) => id);
  }

  /**
   * Counts what each place holds now. Throws UserError for a place that cannot be looked into, unless
   * `isDeletionDecided`: an earlier run has decided all ids, or begun to purge them.
   */
  static async open(
    request: PurgeRequest,
    listed: readonly ListedId[],
    service: ServiceName,
    { isDeletionDecided = false } = {},
  ): Promise<Purge> {
    const mapping = request.mapping === undefined ? undefined : await readMapping(request.mapping, listed);
    const purge = new Purge({ ...request, mapping }, listed, service, isDeletionDecided);
    await purge.#forecast();
    return purge;
  }

  /** The places, as the ledger names them. */
  get names(): readonly string[] {
    return this.#request.places.map(placeName);
  }

  get unreached(): readonly string[] {
    return this.#unreached;
  }

  get reports(): readonly PlaceReport[] {
    const wanted = new Set(this.#ids);
    const listed = this.#listed.filter(({ id }) => wanted.has(id));
    return this.#states.map((state) => placeReport(state, listed));
  }

  /** Why places could not be looked into or purged. */
  get failures(): readonly UserError[] {
    return this.#states.flatMap(({ failure }) => failure ?? []);
  }

  get #idsWithoutRows(): readonly string[] {
    const found = new Set(this.#states.flatMap((state) => state.found.ids));
    return this.#ids.filter((id) => !found.has(id));
  }

  /** The sums over all places of what they hold, and of what was removed. */
  get sums() {
    const isPurged = this.#states.some(({ done, failure }) => done !== undefined && failure === undefined);
    const removed = this.#states.flatMap(({ done }) => (done === undefined ? [] : removedBy(done)));
    const sum = (of: keyof Removed) => removed.reduce((all, one) => all + one[of], 0);
    const [people, rows, files_rewritten] = [sum('people'), sum('rows'), sum('files_rewritten')];
    const [bytes_before, bytes_after] = [sum('bytes_before'), sum('bytes_after')];
    return {
      people_to_purge: this.#states.reduce((all, { found: { people } }) => all + people, 0),
      /** Ids that have a row in no place. */
      ids_without_match: this.#idsWithoutRows.length,
      ...(isPurged && { purged: { people, rows, files_rewritten, bytes_before, bytes_after } }),
    };
  }

  /**
   * The values that a consent covers beside the list: places, column, mapping, and whether nobody is deleted at the
   * service (S38).
   */
  get consent(): readonly unknown[] {
    const { column, isPurgeOnly, mapping } = this.#request;
    const pairs = [...(mapping ?? [])].flatMap(([id, people]) => people.map((person) => [id, person]));
    return [isPurgeOnly, [...this.names].sort(), column ?? null, pairs.map((pair) => JSON.stringify(pair)).sort()];
  }

  async #forecast(): Promise<void> {
    for (const place of this.#request.places) this.#states = [...this.#states, await this.#forecastOf(place)];
    const isNobodyThere = this.#states.every(({ found, failure }) => found.rows === 0 && failure === undefined);
    if (this.#ids.length > 0 && isNobodyThere) {
      const how = this.#request.mapping === undefined ? '--purge-column' : '--mapping';
      this.#warn('purge.nobody', `None of these IDs was found by ${how}: no rows would be removed.`);
    }
    this.#warnOfUnlisted();
  }

  /** Warns of the people who are not on the suppression list afterwards, since nothing says their df_unified_id. */
  #warnOfUnlisted(): void {
    const { suppression, mapping } = this.#request;
    if (suppression === undefined || this.failures.length > 0) return;
    const unlisted = this.#idsWithoutRows.filter((id) => !mapping?.has(id)).length;
    if (unlisted === 0) return;
    this.#warn(
      'purge.unlisted',
      `Nothing here says the df_unified_id of ${grouped(unlisted)} of these IDs, by which alone the ` +
        'suppression list knows people. Unless an earlier run has listed them, a later sync may bring their rows ' +
        'while the service exports them: purge again after it, or name them in a --mapping.',
    );
  }

  async #forecastOf(place: PurgePlace): Promise<PlaceState> {
    try {
      const people = await place.target.people();
      await people.checkOriginal?.(place.path, this.#request.options);
      const found = await people.find(place.path, this.#query, this.#request.options);
      this.#warnOfFindings(place, found);
      return { place, found };
    } catch (error) {
      return { place, found: NOBODY, failure: this.#failureBeforePurge(place, error) };
    }
  }

  /** The failure of a place before its purge, which finds it, too; throws it while it can still stop the deletion. */
  #failureBeforePurge(place: PurgePlace, error: unknown): UserError {
    this.#request.options.signal?.throwIfAborted();
    if (!this.#isDeletionDecided) throw error;
    return this.#failureOf(placeName(place), error);
  }

  /** The limit that a place exceeds, of people or of shared rows, as a sentence; undefined if none does (S55). */
  get problem(): string | undefined {
    return this.#states.map(({ place, found }) => this.#problemOf(place, found)).find((one) => one !== undefined);
  }

  /**
   * Tries in each place all that a purge does, and names what it will not reach. Throws UserError before anybody is
   * deleted.
   */
  async trial(): Promise<void> {
    const { options, places, suppression } = this.#request;
    for (const place of places) {
      await this.#tryPlace(place).catch((error: unknown) => void this.#failureBeforePurge(place, error));
    }
    await this.#warnOfForeignSpools();
    if (suppression !== undefined) await suppress(suppression.file, [], suppression.key, options);
  }

  async #tryPlace({ target, path }: PurgePlace): Promise<void> {
    const people = await target.people();
    const trial = await people.tryPurge(path, this.#query, this.#request.options);
    const { foreignTables, copiesOfOriginal = [] } = trial;
    const forgotten = this.#request.forgetCopies.map((copy) => resolve(copy));
    const unforgotten = copiesOfOriginal.filter((copy) => !forgotten.includes(copy));
    if (foreignTables.length > 0) {
      this.#outOfReach(
        `${path} also has tables, types or views that are not ours (${foreignTables.join(', ')}): they stay as they are, and may name the people.`,
      );
    }
    if (unforgotten.length > 0) {
      this.#outOfReach(
        `${path} is or was a plain copy of another file, or was put back from one: the copies for readers of that ` +
          `file (${unforgotten.join(', ')}) stay as they are, and may name the people. Purge the ` +
          'database itself; if this file is in its place, remove them, and give --forget-copy for those still named.',
      );
    }
  }

  /** Warns of spool folders that this user cannot look into. */
  async #warnOfForeignSpools(): Promise<void> {
    const foreign = (await Promise.all(this.#request.spoolDirs.map(foreignSpoolFolders))).flat();
    if (foreign.length === 0) return;
    this.#outOfReach(
      `Spool folders of other users, or that cannot be read, are out of reach and may name the people: ${foreign.join(', ')}.`,
    );
  }

  /**
   * Removes the people of these ids from every place, one after the other; after a failure in one place the others are
   * still purged. Returns the failures that leave people somewhere. Throws UserError when the ledger cannot be written.
   */
  async run(
    ids: readonly string[],
    ledger: Ledger,
    unfinished: ReadonlyMap<string, Counts>,
  ): Promise<readonly UserError[]> {
    this.#ids = ids;
    const areSpoolsLeft = (await this.#purgeSpools()) !== undefined;
    const { options, listPlace } = this.#request;
    const isLast = ({ place }: PlaceState) => Number(place === listPlace);
    for (const [i, state] of [...this.#states.entries()].sort(([, a], [, b]) => isLast(a) - isLast(b))) {
      options.signal?.throwIfAborted();
      const { place, found } = state;
      const isRestOpen = areSpoolsLeft || this.#states.some((one) => one.place !== place && one.failure);
      const purged =
        place === listPlace && isRestOpen
          ? { place, found, failure: heldBackError(place) }
          : await this.#purgePlace(place, found, ledger);
      this.#states = this.#states.with(i, purged);
      await this.#record(purged, ledger, unfinished.get(placeName(place)));
    }
    this.#warnOfUnlisted();
    // A run that is under way may have verified downloads since.
    const spoolFailure = await this.#purgeSpools();
    return [...this.failures, ...(spoolFailure ? [spoolFailure] : [])];
  }

  async #purgePlace(place: PurgePlace, forecast: PeopleFound, ledger: Ledger): Promise<PlaceState> {
    const { options, forgetCopies } = this.#request;
    const target = placeName(place);
    let state: PlaceState = { place, found: forecast };
    const onFound = async (found: PeopleFound) => {
      state = { place, found };
      const problem = this.#problemOf(place, found);
      if (problem !== undefined) throw configError(`${problem} Nothing was removed there.`, { exitCode: EXIT.guard });
      await ledger.write({ kind: 'purging', target, counts: { people: found.people, rows: found.rows } });
      await this.#suppress(found);
      state = { place, found, isBegun: true };
    };
    try {
      const people = await place.target.people();
      const done = await people.purge(place.path, this.#query, { ...options, forgetCopies, onFound });
      const failure = done.unreached.length > 0 ? transientError(done.unreached.join(' ')) : undefined;
      this.#warnOfFindings(place, done.found);
      this.#warnOfLiveRuns(done.inUse ?? []);
      return { place, found: done.found, done, failure };
    } catch (error) {
      options.signal?.throwIfAborted();
      return { ...state, failure: this.#failureOf(target, error) };
    }
  }

  /**
   * Also a defect ends the purge of its place alone. The report and the ledger get no text of it, which may name
   * people.
   */
  #failureOf(target: string, thrown: unknown): UserError {
    const error = unnamedDiskError(thrown);
    if (error instanceof UserError) return error;
    this.#request.options.logger.error('purge.defect', `${target}: ${defectText(error)}`);
    return internalError(`${target} could not be purged by a defect of dfinery-elt: please report it.`, {
      cause: error,
    });
  }

  /** Records what became of a place; `before`: counts that an interrupted run was about to remove there. */
  async #record({ place, isBegun, done, failure }: PlaceState, ledger: Ledger, before?: Counts): Promise<void> {
    const isRemovedBefore = done !== undefined && before !== undefined && done.found.rows < before.rows;
    const missed = done?.unreached ?? (failure === undefined ? [] : [failure.message]);
    const unreached = [...missed, ...this.#unreached].slice(0, MAX_NAMED);
    await ledger.write({
      kind: 'purge',
      target: placeName(place),
      outcome: failure === undefined ? 'done' : 'open',
      counts: {
        // Where it failed after its beginning nobody knows what was removed.
        ...(done === undefined ? !isBegun && { rows: 0 } : removedBy(done)),
        // A run that was killed right after its commit had removed them.
        ...(isRemovedBefore && { rows_removed_before: before.rows }),
      },
      ...(unreached.length > 0 && { unreached }),
    });
  }

  /**
   * Removes the downloads of dead runs, which may hold rows of anybody; those of a live run are its own. Returns the
   * failure to remove some.
   */
  async #purgeSpools(): Promise<UserError | undefined> {
    await this.#warnOfForeignSpools();
    const { spoolDirs, options } = this.#request;
    const now = options.clock.now();
    const unremoved: string[] = [];
    for (const root of spoolDirs) {
      unremoved.push(...(await purgeSpools(await spoolFolders(root))), ...(await sweepRunFolders(root, now)));
      this.#warnOfLiveRuns(await liveFolders(root));
    }
    if (unremoved.length === 0) return undefined;
    return transientError(
      'Downloads of earlier runs could not be removed and may name the people: ' +
        `${unremoved.slice(0, MAX_NAMED).join(', ')}. See that this user can remove them, and run again.`,
    );
  }

  /**
   * Adds the people to the suppression list: one who is known by a hash alone, by that and the check value of its key.
   */
  async #suppress({ unifiedIds }: PeopleFound): Promise<void> {
    const { suppression, mapping, options } = this.#request;
    if (suppression === undefined) return;
    const mapped = this.#ids.flatMap((id) => mapping?.get(id) ?? []).map((text) => ({ text, hashKey: undefined }));
    await suppress(suppression.file, [...unifiedIds, ...mapped], suppression.key, options);
  }

  get #query(): PeopleQuery {
    const { column, mapping, hashKey } = this.#request;
    return { ids: this.#ids, column, mapping, hashKey };
  }

  #problemOf({ target, path }: PurgePlace, { people, shared }: PeopleFound): string | undefined {
    const { maxPeople, allowsShared } = this.#request;
    const max = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * this.#listed.length);
    if (people > max) {
      return (
        `${target.name} ${path} holds ${count(people, 'person', 'people')} of these ids, more than --max-people ` +
        `allows (${max}). If that is meant, give --max-people ${people}.`
      );
    }
    if (shared === 0 || allowsShared) return undefined;
    return (
      `${target.name} ${path} has other ids, too, in the column of ${grouped(shared)} of these people, whose rows ` +
      'would go with theirs. If that is meant, give --allow-shared.'
    );
  }

  #warnOfFindings({ target, path }: PurgePlace, { service, warnings, idsWithoutUnifiedId }: PeopleFound): void {
    if (service !== undefined && service !== this.#service) {
      this.#warn(
        'purge.service',
        `${target.name} ${path} holds the data of another service than the one of this configuration (base_url or ` +
          'service_id differ): the same ID may be another person there.',
      );
    }
    for (const warning of warnings) this.#warn('purge.missed', warning);
    if (idsWithoutUnifiedId.length === 0 || this.#request.suppression === undefined) return;
    this.#warn(
      'purge.unnamed',
      `${count(idsWithoutUnifiedId.length, 'ID')} of these stand in rows without a df_unified_id, by which alone ` +
        'the suppression list knows people: a later sync may bring such rows back while the service still exports ' +
        'them.',
    );
  }

  #warnOfLiveRuns(folders: readonly string[]): void {
    if (folders.length === 0) return;
    this.#outOfReach(
      `Runs that are under way have rows in ${folders.join(', ')}, which may name the people until those runs ` +
        'end. No later run loads what they have verified by now; what one that fails leaves there goes with a ' +
        'purge after it, or after seven days.',
    );
  }

  #outOfReach(sentence: string): void {
    if (!this.#unreached.includes(sentence)) this.#unreached.push(sentence);
    this.#warn('purge.unreached', sentence);
  }

  /** Logs a warning once, since the forecast, the trial and the purge find the same. */
  #warn(event: string, message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#request.options.logger.warn(event, message);
  }
}

type Counts = Readonly<Record<string, number>>;
