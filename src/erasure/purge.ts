import { transientError, type UserError } from '../base/errors.ts';
import { grouped } from '../base/quantities.ts';
import { serviceHash } from '../extract/export-request.ts';
import { sweepRunFolders } from '../extract/spool/run-folder.ts';
import { foreignSpoolFolders, liveFolders, purgeSpools, spoolFolders } from '../extract/spool/spool-folders.ts';
import type { ListedId } from './input/deletion-list.ts';
import { type Mapping, readMapping } from './input/mapping.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Counts } from './ledger/line.ts';
import type { ServiceName } from './ledger/unfinished.ts';
import {
  MAX_NAMED,
  PlacePurge,
  type PlaceReport,
  type PurgeRules,
  placeName,
  type Removed,
  type StoredPlace,
} from './place-purge.ts';
import { PurgeWarnings } from './purge-warnings.ts';
import { suppress } from './suppression/list.ts';

export interface PurgeRequest extends Omit<PurgeRules, 'mapping'> {
  readonly places: readonly StoredPlace[];
  /** File with the columns external_id and df_unified_id. */
  readonly mapping: string | undefined;
  /** Every folder where downloads may lie. */
  readonly spoolDirs: readonly string[];
  /** True if no request is sent. */
  readonly isPurgeOnly: boolean;
}

/** True for the place that the list is read from: once it is purged it gives only the rest of the list. */
export const isListPlace = (place: StoredPlace, { listFile }: PurgeRequest): boolean =>
  listFile !== undefined && placeName(place) === placeName({ ...place, path: listFile });

/** The removal of people from all places: a forecast, which `open` makes, a trial, and the purge itself. */
export class Purge {
  readonly #request: PurgeRequest;
  readonly #mapping: Mapping | undefined;
  readonly #listed: readonly ListedId[];
  readonly #places: readonly PlacePurge[];
  readonly #warnings: PurgeWarnings;
  /** True if nobody is left to be deleted at the service: then a place that fails keeps no other from its purge. */
  readonly #isDeletionDecided: boolean;
  /** Who is looked for: first the whole list, then those who are deleted. */
  #ids: readonly string[];

  private constructor(
    request: PurgeRequest,
    mapping: Mapping | undefined,
    listed: readonly ListedId[],
    service: ServiceName,
    isDeletionDecided: boolean,
  ) {
    this.#request = request;
    this.#mapping = mapping;
    this.#listed = listed;
    this.#isDeletionDecided = isDeletionDecided;
    this.#ids = listed.map(({ id }) => id);
    this.#warnings = new PurgeWarnings(request.options.logger);
    const [rules, warnings] = [{ ...request, mapping }, this.#warnings];
    const context = { rules, listed: listed.length, service: serviceHash(service), warnings };
    this.#places = request.places.map((place) => new PlacePurge(place, context));
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
    const purge = new Purge(request, mapping, listed, service, isDeletionDecided);
    await purge.#forecast();
    return purge;
  }

  async #forecast(): Promise<void> {
    for (const place of this.#places) await this.#beforePurge(place, () => place.forecast(this.#ids));
    const isNobodyThere = this.#places.every(({ found, failure }) => found.rows === 0 && failure === undefined);
    if (this.#ids.length > 0 && isNobodyThere) {
      const how = this.#request.mapping === undefined ? '--purge-column' : '--mapping';
      this.#warnings.warn('purge.nobody', `None of these IDs was found by ${how}: no rows would be removed.`);
    }
    this.#warnOfUnlisted();
  }

  /**
   * The values that a consent covers beside the list: places, column, mapping, and whether nobody is deleted at the
   * service.
   */
  get consent(): readonly unknown[] {
    const { column, isPurgeOnly } = this.#request;
    return [isPurgeOnly, [...this.names].sort(), column ?? null, this.mapped];
  }

  /** What the mapping says of the ids, as sorted texts. */
  get mapped(): readonly string[] {
    const pairs = [...(this.#mapping ?? [])].flatMap(([id, people]) => people.map((person) => [id, person]));
    return pairs.map((pair) => JSON.stringify(pair)).sort();
  }

  /** The limit that a place exceeds, of people or of shared rows, as a sentence; undefined if none does. */
  get problem(): string | undefined {
    return this.#places.map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  /**
   * Tries in each place all that a purge does, and names what it will not reach. Throws UserError before anybody is
   * deleted.
   */
  async trial(): Promise<void> {
    for (const place of this.#places) await this.#beforePurge(place, () => place.try(this.#ids));
    await this.#warnOfForeignSpools();
    const { suppression, options } = this.#request;
    if (suppression !== undefined) await suppress(suppression.file, [], suppression.key, options);
  }

  /** Does work on a place before its purge. Its failure is that of the place once it can stop no deletion any more. */
  async #beforePurge(place: PlacePurge, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#request.options.signal?.throwIfAborted();
      if (!this.#isDeletionDecided) throw error;
      place.fail(error);
    }
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
    const { options } = this.#request;
    const isList = ({ place }: PlacePurge) => isListPlace(place, this.#request);
    for (const place of [...this.#places].sort((a, b) => Number(isList(a)) - Number(isList(b)))) {
      options.signal?.throwIfAborted();
      const isRestOpen = areSpoolsLeft || this.#places.some((one) => one !== place && one.failure !== undefined);
      if (isList(place) && isRestOpen) place.holdBack();
      else await place.run(ids, ledger);
      await place.record(ledger, unfinished.get(place.name));
    }
    this.#warnOfUnlisted();
    // A run that is under way may have verified downloads since.
    const spoolFailure = await this.#purgeSpools();
    return [...this.failures, ...(spoolFailure ? [spoolFailure] : [])];
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
      this.#warnings.warnOfLiveRuns(await liveFolders(root));
    }
    if (unremoved.length === 0) return undefined;
    return transientError(
      'Downloads of earlier runs could not be removed and may name the people: ' +
        `${unremoved.slice(0, MAX_NAMED).join(', ')}. See that this user can remove them, and run again.`,
    );
  }

  /** Warns of spool folders that this user cannot look into. */
  async #warnOfForeignSpools(): Promise<void> {
    const foreign = (await Promise.all(this.#request.spoolDirs.map(foreignSpoolFolders))).flat();
    if (foreign.length === 0) return;
    this.#warnings.warnUnreached(
      `Spool folders of other users, or that cannot be read, are out of reach and may name the people: ${foreign.join(', ')}.`,
    );
  }

  /** Warns of the people who are not on the suppression list afterwards, since nothing says their df_unified_id. */
  #warnOfUnlisted(): void {
    if (this.#request.suppression === undefined || this.failures.length > 0) return;
    const unlisted = this.#idsWithoutRows.filter((id) => !this.#mapping?.has(id)).length;
    if (unlisted === 0) return;
    this.#warnings.warn(
      'purge.unlisted',
      `Nothing here says the df_unified_id of ${grouped(unlisted)} of these IDs, by which alone the ` +
        'suppression list knows people. Unless an earlier run has listed them, a later sync may bring their rows ' +
        'while the service exports them: purge again after it, or name them in a --mapping.',
    );
  }

  /** The places, as the ledger names them. */
  get names(): readonly string[] {
    return this.#places.map(({ name }) => name);
  }

  /** Why places could not be looked into or purged. */
  get failures(): readonly UserError[] {
    return this.#places.flatMap(({ failure }) => failure ?? []);
  }

  /** Sentences about what may still hold the people and is out of reach. */
  get unreached(): readonly string[] {
    return this.#warnings.unreached;
  }

  get reports(): readonly PlaceReport[] {
    const wanted = new Set(this.#ids);
    const listed = this.#listed.filter(({ id }) => wanted.has(id));
    return this.#places.map((place) => place.reportOf(listed));
  }

  /** The sums over all places of what they hold, and of what was removed; with the names of the report. */
  get sums() {
    const isPurged = this.#places.some(({ removed, failure }) => removed !== undefined && failure === undefined);
    const removed = this.#places.flatMap((place) => place.removed ?? []);
    const sum = (of: keyof Removed) => removed.reduce((all, one) => all + one[of], 0);
    const [people, rows, files_rewritten] = [sum('people'), sum('rows'), sum('files_rewritten')];
    const [bytes_before, bytes_after] = [sum('bytes_before'), sum('bytes_after')];
    return {
      people_to_purge: this.#places.reduce((all, { found }) => all + found.people, 0),
      ids_without_match: this.#idsWithoutRows.length,
      ...(isPurged && { purged: { people, rows, files_rewritten, bytes_before, bytes_after } }),
    };
  }

  /** The ids that have a row in no place. */
  get #idsWithoutRows(): readonly string[] {
    const found = new Set(this.#places.flatMap((place) => place.found.ids));
    return this.#ids.filter((id) => !found.has(id));
  }
}
