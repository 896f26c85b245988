import { configError, defectText, EXIT, systemError, transientError, UserError } from '../base/errors.ts';
import { count, withSeparators } from '../base/quantities.ts';
import type { RunContext } from '../base/runtime.ts';
import { type PeopleFound, type PeopleQuery, personOf, type UnifiedId } from '../engine/people/query.ts';
import { serviceFingerprint } from '../extract/export-request.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import type { PurgeOptions, PurgePreview, PurgeResult } from '../targets/people-contract.ts';
import type { ServiceAddress } from './ledger/chain.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
import { requireSuppression, type SuppressionFile, SuppressionList } from './suppression.ts';
import {
  findInAllWays,
  type ListedPeople,
  NOBODY_LISTED,
  type PeopleSearch,
  placeName,
  queryOf,
  type StoredPlace,
} from './ways.ts';

export interface ErasurePurgeOptions {
  readonly search: PeopleSearch;
  /** Where the people are kept, so that they stay away. */
  readonly suppression: SuppressionFile;
  /** True to purge the people of the suppression list alone, in place of a list of ids. */
  readonly isSuppressed: boolean;
  /** True to have the places remember the suppression list as it is, also if they knew more people on it. */
  readonly isNewList: boolean;
  /** Undefined for three for each id, ten at least. */
  readonly maxPeople: number | undefined;
  readonly allowsShared: boolean;
}

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;
/** Maximum number of rows of the list, and of foreign tables and files, that reports and the ledger name. */
const MAX_NAMED = 100;

/** The purge of all places: `plan` looks and tries, `run` removes. */
export class Purge {
  readonly people: ListedPeople;
  readonly #options: ErasurePurgeOptions;
  readonly #entries: readonly ListedId[];
  readonly #places: PlacePurge[] = [];
  readonly #suppression: SuppressionList;
  readonly #warnings: Set<string>;

  private constructor(
    options: ErasurePurgeOptions,
    entries: readonly ListedId[],
    people: ListedPeople,
    suppression: SuppressionList,
  ) {
    this.#options = options;
    this.#entries = entries;
    this.people = people;
    this.#suppression = suppression;
    this.#warnings = new Set(people.warnings);
  }

  /**
   * Finds the people in every way, then looks into each place. It does all that their removal does but its last step.
   * Throws UserError for what the execution would stumble over.
   */
  static async plan(
    options: ErasurePurgeOptions,
    entries: readonly ListedId[],
    service: ServiceAddress,
    io: RunContext,
  ): Promise<Purge> {
    const { search, isSuppressed } = options;
    const suppression = await SuppressionList.open(options.suppression);
    const people = isSuppressed ? NOBODY_LISTED : await findInAllWays(entries, search, io);
    const purge = new Purge(options, entries, people, suppression);
    for (const [i, place] of search.places.entries()) {
      io.logger.info('purge.plan', `Looking into ${placeName(place)} (${i + 1} of ${search.places.length}) …`);
      await purge.#preview(place, serviceFingerprint(service));
    }
    purge.#requireSuppressedPeople();
    purge.#warnOfMissingPeople();
    return purge;
  }

  /** The limit that the people exceed, as a sentence; undefined if they exceed none. */
  get guardProblem(): string | undefined {
    const { maxPeople, allowsShared, search } = this.#options;
    const limit = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * this.#entries.length);
    const personCount = new Set(this.#unifiedIds().map(({ text }) => personOf(text, search.hashKey))).size;
    if (personCount > limit) {
      const whose = maxPeople === undefined ? 'usual' : '--max-people allows';
      return (
        `${count(personCount, 'person has', 'people have')} these IDs, more than ${whose} (${withSeparators(limit)}). ` +
        `If that is meant, give --max-people ${personCount}.`
      );
    }
    const lookups = [this.people, ...this.#places.map(({ people }) => people)];
    const withOtherIds = new Set(lookups.flatMap(({ peopleWithOtherIds }) => [...peopleWithOtherIds]));
    if (withOtherIds.size === 0 || allowsShared) return undefined;
    return (
      `${count(withOtherIds.size, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: ` +
      'the ID changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
    );
  }

  /** Number of people on the suppression list. */
  get suppressionLength(): number {
    return this.#suppression.length;
  }

  get reports() {
    return this.#places.map((place) => place.report(this.#entries));
  }

  /** What the officer should know before anybody is deleted. */
  get warnings(): readonly string[] {
    return [...this.#warnings];
  }

  /** True once every place has lost all rows of the people that can be read. */
  get isPurged(): boolean {
    return this.#places.every(({ isPurged }) => isPurged);
  }

  /**
   * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
   * failure in one place leaves the others to be purged. Returns the failures.
   */
  async run(ledger: Ledger): Promise<UserError[]> {
    const { options } = this.#options.search;
    try {
      await this.#suppression.add(this.#unifiedIds(), options);
    } catch (error) {
      const failure = diskErrorByItsPath(error);
      if (failure instanceof UserError) return [failure];
      throw failure;
    }
    const failures: UserError[] = [];
    for (const [i, place] of this.#places.entries()) {
      options.signal?.throwIfAborted();
      options.logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${this.#places.length}) …`);
      try {
        await this.#purgePlace(place, ledger);
      } catch (error) {
        options.signal?.throwIfAborted();
        place.fail(this.#failureOf(place, error));
      }
      if (place.failure !== undefined) failures.push(place.failure);
    }
    const { unremovable, liveFolders } = await sweepRunFolders(options.spoolDir, options.clock.now());
    this.#warnOfRuns(liveFolders);
    if (unremovable.length === 0) return failures;
    const stays = `Downloads of dead runs may name the people, and stay: ${shortened(unremovable)}. Remove them.`;
    return [...failures, transientError(stays)];
  }

  /** Finds the people of a place, and does all that their removal does but its last step. */
  async #preview(stored: StoredPlace, service: string): Promise<void> {
    const { target, path } = stored;
    const preview = await (await target.people()).previewPurge(path, this.#query(), this.#options.search.options);
    const place = new PlacePurge(stored, preview);
    this.#places.push(place);
    const { people, foreign } = preview;
    if (people.place.service !== undefined && people.place.service !== service) {
      throw configError(
        `${place.name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    this.#checkSuppression(place);
    for (const warning of people.warnings) this.#warnings.add(warning);
    if (foreign.length === 0) return;
    const more = foreign.length > MAX_NAMED ? ' and more' : '';
    this.#warnings.add(
      `${place.name} also has ${shortened(foreign)}${more}, not made here: they stay, and may name the people.`,
    );
  }

  /** Removes the people from a place. */
  async #purgePlace(place: PlacePurge, ledger: Ledger): Promise<void> {
    const { options } = this.#options.search;
    // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list.
    const onFound = async (people: PeopleFound) => {
      const { guardProblem } = this;
      if (guardProblem !== undefined) {
        throw configError(`${place.name}: ${guardProblem} Nothing was removed.`, { exitCode: EXIT.guard });
      }
      this.#checkSuppression(place);
      await ledger.writeAll(place.purgeLines(this.#entries, ledger));
      await this.#suppression.add(people.unifiedIds, options);
      return this.#suppression.length;
    };
    const { rowsRemoved: rows, unreached, inUse = [] } = await place.purge(this.#query(), { ...options, onFound });
    const stays = place.foreign.slice(0, MAX_NAMED);
    const remains = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
    await ledger.write({ kind: 'purged', place: place.name, rows, listed: this.suppressionLength, ...remains });
    if (unreached.length > 0) place.fail(transientError(unreached.join(' ')));
    this.#warnOfRuns(inUse);
  }

  /** Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people. */
  #failureOf({ name }: PlacePurge, thrown: unknown): UserError {
    const error = diskErrorByItsPath(thrown);
    if (error instanceof UserError) return error;
    this.#options.search.options.logger.error('purge.defect', `${name}: ${defectText(error)}`);
    return systemError(`${name} could not be purged by a defect of dfinery-elt: please report it.`, { cause: error });
  }

  #query(): PeopleQuery {
    const ids = this.#entries.map(({ id }) => id);
    return { ...queryOf(ids, this.#options.search, this.people), suppressed: this.#suppression.people };
  }

  /** Every form of the people's unified ids: as the ways have them, and as rows of the places do. */
  #unifiedIds(): UnifiedId[] {
    const textsOfWays = [...this.people.peopleOf.values()].flat().map((text) => ({ text, keyCheck: undefined }));
    // A place knows under which key its form is a hash.
    const idsInRows = this.#places.flatMap(({ people }) => people.unifiedIds);
    return [...new Map([...textsOfWays, ...idsInRows].map((unifiedId) => [unifiedId.text, unifiedId])).values()];
  }

  /** Refuses a place that knows more people on the suppression list than the list has. A new list is warned of. */
  #checkSuppression({ name, people }: PlacePurge): void {
    const { suppressionLength } = people.place;
    // Another purge may have put people on the list.
    if (suppressionLength > this.suppressionLength) this.#suppression.reload();
    if (!this.#options.isNewList) requireSuppression(name, suppressionLength, this.#suppression);
    if (suppressionLength <= this.suppressionLength) return;
    this.#warnings.add(
      `${name} knew ${count(suppressionLength, 'person', 'people')} on the suppression list, and the list has ` +
        `${withSeparators(this.suppressionLength)}: those who are missing return while the service exports them.`,
    );
  }

  #requireSuppressedPeople(): void {
    const { isSuppressed, isNewList } = this.#options;
    if (!isSuppressed || this.suppressionLength > 0 || isNewList) return;
    throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');
  }

  #warnOfMissingPeople(): void {
    const { isSuppressed } = this.#options;
    if (this.#places.every(({ people }) => people.rows + people.suppressedOthers.rows === 0)) {
      this.#warnings.add(isSuppressed ? 'No place holds anybody of the list.' : 'No place holds any of these IDs.');
    }
    if (!isSuppressed && this.#entries.some(({ id }) => !this.people.foundIds.has(id))) {
      this.#warnings.add(
        'IDs that no way finds are not put on the suppression list, and their rows stay. Run again after the next sync.',
      );
    }
  }

  #warnOfRuns(folders: readonly string[]): void {
    if (folders.length === 0) return;
    this.#warnings.add(`Other runs are under way. Until they end, they hold downloads in ${shortened(folders)}.`);
  }
}

const shortened = (names: readonly string[]): string => names.slice(0, MAX_NAMED).join(', ');

/** The purge of one place: who was found there last, and what became of them. */
class PlacePurge {
  readonly name: string;
  /** Names of tables and files that others made there: they stay. */
  readonly foreign: readonly string[];
  readonly #stored: StoredPlace;
  #people: PeopleFound;
  #failure: UserError | undefined;
  /** Present once all rows that can be read are removed. */
  #result: PurgeResult | undefined;

  constructor(stored: StoredPlace, { people, foreign }: PurgePreview) {
    this.#stored = stored;
    this.name = placeName(stored);
    this.#people = people;
    this.foreign = foreign;
  }

  get people(): PeopleFound {
    return this.#people;
  }

  /** Why the people are, or may be, still there. */
  get failure(): UserError | undefined {
    return this.#failure;
  }

  get isPurged(): boolean {
    return this.#result !== undefined;
  }

  async purge(query: PeopleQuery, { onFound, ...options }: PurgeOptions): Promise<PurgeResult> {
    const { target, path } = this.#stored;
    const noteFound = (people: PeopleFound) => {
      this.#people = people;
      return onFound(people);
    };
    this.#result = await (await target.people()).purge(path, query, { ...options, onFound: noteFound });
    this.#people = this.#result.people;
    return this.#result;
  }

  fail(failure: UserError): void {
    this.#failure = failure;
  }

  /** A line for each id of the list, and one for the others on the suppression list together. */
  purgeLines(entries: readonly ListedId[], { key }: Ledger) {
    const { rowsOf, suppressedOthers } = this.#people;
    const line = (id: string | null, rows: number) => ({ kind: 'purge', id, place: this.name, rows }) as const;
    const linesOfIds = entries.map(({ id }) => line(key.idHash(id), rowsOf.get(id) ?? 0));
    const hasOthers = suppressedOthers.rows > 0 || linesOfIds.length === 0;
    return hasOthers ? [...linesOfIds, line(null, suppressedOthers.rows)] : linesOfIds;
  }

  report(entries: readonly ListedId[]) {
    const { personCount, rows, peopleWithOtherIds, rowsOf, suppressedOthers } = this.#people;
    const withoutRows = entries.filter(({ id }) => !rowsOf.has(id));
    return {
      target: this.#stored.target.name,
      place: this.#stored.path,
      people: personCount,
      rows,
      /** The people of the suppression list, who leave with those of the case. */
      other_people: suppressedOthers.personCount,
      other_rows: suppressedOthers.rows,
      shared: peopleWithOtherIds.size,
      ids_without_rows: withoutRows.length,
      /** The rows of the list whose ids have no row in the place; a hundred at most. */
      row_numbers: withoutRows.slice(0, MAX_NAMED).map(({ row }) => row),
      /** Null: nothing was removed, or a failure leaves open how many were. */
      rows_removed: this.#result?.rowsRemoved ?? null,
      bytes_before: this.#result?.bytesBefore ?? null,
      bytes_after: this.#result?.bytesAfter ?? null,
      /** A hundred at most. */
      foreign: this.foreign.slice(0, MAX_NAMED),
      error: this.#failure?.message ?? null,
    };
  }
}

/** What the purge found and removed in one place; with the names of the report. */
export type PlaceReport = ReturnType<PlacePurge['report']>;
