import { configError, defectText, EXIT, systemError, transientError, UserError } from '../base/errors.ts';
import { count, withSeparators } from '../base/quantities.ts';
import type { RunContext } from '../base/runtime.ts';
import { type PeopleFound, type PeopleQuery, personOf, type UnifiedId } from '../engine/people/query.ts';
import { serviceFingerprint } from '../extract/export-request.ts';
import { sweepRunFolders } from '../extract/spool.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import type { PurgeOptions, PurgePreview, PurgeResult } from '../targets/contract.ts';
import type { Ledger, ServiceName } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
import { requireSuppression, type SuppressionFile, SuppressionList } from './suppression.ts';
import { findInAllWays, type ListedPeople, NOBODY_LISTED, placeName, type StoredPlace, type Ways } from './ways.ts';

export interface PurgeRequest {
  readonly ways: Ways;
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
  readonly listed: ListedPeople;
  readonly #request: PurgeRequest;
  readonly #ids: readonly ListedId[];
  readonly #places: CasePlace[] = [];
  readonly #suppression: SuppressionList;
  readonly #warnings: Set<string>;

  private constructor(
    request: PurgeRequest,
    ids: readonly ListedId[],
    listed: ListedPeople,
    suppression: SuppressionList,
  ) {
    this.#request = request;
    this.#ids = ids;
    this.listed = listed;
    this.#suppression = suppression;
    this.#warnings = new Set(listed.warnings);
  }

  /**
   * Finds the people in every way, then looks into each place. It does all that their removal does but its last step.
   * Throws UserError for what the execution would stumble over.
   */
  static async plan(
    request: PurgeRequest,
    ids: readonly ListedId[],
    service: ServiceName,
    io: RunContext,
  ): Promise<Purge> {
    const { ways, isSuppressed } = request;
    const suppression = await SuppressionList.open(request.suppression);
    const listed = isSuppressed ? NOBODY_LISTED : await findInAllWays(ids, ways, io);
    const purge = new Purge(request, ids, listed, suppression);
    for (const [i, place] of ways.places.entries()) {
      io.logger.info('purge.plan', `Looking into ${placeName(place)} (${i + 1} of ${ways.places.length}) …`);
      await purge.#preview(place, serviceFingerprint(service));
    }
    purge.#warn();
    return purge;
  }

  /** The limit that the people exceed, as a sentence; undefined if they exceed none. */
  get problem(): string | undefined {
    const { maxPeople, allowsShared, ways } = this.#request;
    const most = maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * this.#ids.length);
    const persons = new Set(this.#unifiedIds().map(({ text }) => personOf(text, ways.hashKey))).size;
    if (persons > most) {
      const limit = maxPeople === undefined ? 'usual' : '--max-people allows';
      return (
        `${count(persons, 'person has', 'people have')} these IDs, more than ${limit} (${withSeparators(most)}). ` +
        `If that is meant, give --max-people ${persons}.`
      );
    }
    const sharing = new Set(
      [this.listed, ...this.#places.map(({ people }) => people)].flatMap(({ shared }) => [...shared]),
    );
    if (sharing.size === 0 || allowsShared) return undefined;
    return (
      `${count(sharing.size, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: ` +
      'the ID changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
    );
  }

  /** Number of people on the suppression list. */
  get suppressionLength(): number {
    return this.#suppression.length;
  }

  get reports() {
    return this.#places.map((place) => place.report(this.#ids));
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
    const { options } = this.#request.ways;
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
    const { left, inUse } = await sweepRunFolders(options.spoolDir, options.clock.now());
    this.#warnOfRuns(inUse);
    if (left.length === 0) return failures;
    const stays = `Downloads of dead runs may name the people, and stay: ${shortened(left)}. Remove them.`;
    return [...failures, transientError(stays)];
  }

  /** Finds the people of a place, and does all that their removal does but its last step. */
  async #preview(stored: StoredPlace, service: string): Promise<void> {
    const { target, path } = stored;
    const preview = await (await target.people()).previewPurge(path, this.#query(), this.#request.ways.options);
    const place = new CasePlace(stored, preview);
    this.#places.push(place);
    const { people, foreign } = preview;
    if (people.service !== undefined && people.service !== service) {
      throw configError(
        `${place.name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    this.#requireSuppression(place);
    for (const warning of people.warnings) this.#warnings.add(warning);
    if (foreign.length === 0) return;
    const more = foreign.length > MAX_NAMED ? ' and more' : '';
    this.#warnings.add(
      `${place.name} also has ${shortened(foreign)}${more}, not made here: they stay, and may name the people.`,
    );
  }

  /** Removes the people from a place. */
  async #purgePlace(place: CasePlace, ledger: Ledger): Promise<void> {
    const { options } = this.#request.ways;
    // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list.
    const onFound = async (people: PeopleFound) => {
      const { problem } = this;
      if (problem !== undefined) {
        throw configError(`${place.name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
      }
      this.#requireSuppression(place);
      await ledger.writeAll(place.purgeLines(this.#ids, ledger));
      await this.#suppression.add(people.unifiedIds, options);
      return this.#suppression.length;
    };
    const { rowsRemoved: rows, unreached, inUse = [] } = await place.purge(this.#query(), { ...options, onFound });
    const stays = place.foreign.slice(0, MAX_NAMED);
    const remains = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
    const listed = this.#suppression.length;
    await ledger.write({ kind: 'purged', place: place.name, rows, listed, ...remains });
    if (unreached.length > 0) place.fail(transientError(unreached.join(' ')));
    this.#warnOfRuns(inUse);
  }

  /** Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people. */
  #failureOf({ name }: CasePlace, thrown: unknown): UserError {
    const error = diskErrorByItsPath(thrown);
    if (error instanceof UserError) return error;
    this.#request.ways.options.logger.error('purge.defect', `${name}: ${defectText(error)}`);
    return systemError(`${name} could not be purged by a defect of dfinery-elt: please report it.`, { cause: error });
  }

  #query(): PeopleQuery {
    const { column, hashKey } = this.#request.ways;
    const ids = this.#ids.map(({ id }) => id);
    const { peopleOf, asksProfiles } = this.listed;
    return { ids, column, asksProfiles, peopleOf, hashKey, suppressed: this.#suppression.people };
  }

  /** Every form of the people's unified ids: as the ways have them, and as rows of the places do. */
  #unifiedIds(): UnifiedId[] {
    const inWays = [...this.listed.peopleOf.values()].flat().map((text) => ({ text, hashKey: undefined }));
    // A place knows under which key its form is a hash.
    const inRows = this.#places.flatMap(({ people }) => people.unifiedIds);
    return [...new Map([...inWays, ...inRows].map((unifiedId) => [unifiedId.text, unifiedId])).values()];
  }

  /** Refuses a place that knows more people on the suppression list than the list has, or warns of it. */
  #requireSuppression({ name, people: { suppressionLength } }: CasePlace): void {
    if (suppressionLength > this.suppressionLength) this.#suppression.reload();
    if (!this.#request.isNewList) requireSuppression(name, suppressionLength, this.#suppression);
    if (suppressionLength <= this.suppressionLength) return;
    this.#warnings.add(
      `${name} knew ${count(suppressionLength, 'person', 'people')} on the suppression list, and the list has ` +
        `${withSeparators(this.suppressionLength)}: those who are missing return while the service exports them.`,
    );
  }

  #warn(): void {
    const { isSuppressed, isNewList } = this.#request;
    if (isSuppressed && this.suppressionLength === 0 && !isNewList) {
      throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');
    }
    if (this.#places.every(({ people }) => people.rows + people.others.rows === 0)) {
      this.#warnings.add(isSuppressed ? 'No place holds anybody of the list.' : 'No place holds any of these IDs.');
    }
    if (!isSuppressed && this.#ids.some(({ id }) => !this.listed.foundIds.has(id))) {
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

/** A place of a case: who was found there last, and what became of them. Its methods alone change its fields. */
class CasePlace {
  readonly name: string;
  people: PeopleFound;
  /** Names of tables and files that others made there: they stay. */
  readonly foreign: readonly string[];
  /** Why the people are, or may be, still there. */
  failure: UserError | undefined;
  readonly #stored: StoredPlace;
  /** Present once all rows that can be read are removed. */
  #result: PurgeResult | undefined;

  constructor(stored: StoredPlace, { people, foreign }: PurgePreview) {
    this.#stored = stored;
    this.name = placeName(stored);
    this.people = people;
    this.foreign = foreign;
  }

  get isPurged(): boolean {
    return this.#result !== undefined;
  }

  async purge(query: PeopleQuery, { onFound, ...options }: PurgeOptions): Promise<PurgeResult> {
    const { target, path } = this.#stored;
    const noteFound = (people: PeopleFound) => {
      this.people = people;
      return onFound(people);
    };
    this.#result = await (await target.people()).purge(path, query, { ...options, onFound: noteFound });
    this.people = this.#result.people;
    return this.#result;
  }

  fail(failure: UserError): void {
    this.failure = failure;
  }

  /** A line for each id of the list, and one for the others on the suppression list together. */
  purgeLines(ids: readonly ListedId[], { key }: Ledger) {
    const { rowsOf, others } = this.people;
    const line = (id: string | null, rows: number) => ({ kind: 'purge', id, place: this.name, rows }) as const;
    const ofIds = ids.map(({ id }) => line(key.idHash(id), rowsOf.get(id) ?? 0));
    return others.rows > 0 || ofIds.length === 0 ? [...ofIds, line(null, others.rows)] : ofIds;
  }

  report(ids: readonly ListedId[]) {
    const { persons, rows, shared, rowsOf, others } = this.people;
    const withoutRows = ids.filter(({ id }) => !rowsOf.has(id));
    return {
      target: this.#stored.target.name,
      place: this.#stored.path,
      people: persons,
      rows,
      /** The people of the suppression list, who leave with those of the case. */
      other_people: others.persons,
      other_rows: others.rows,
      shared: shared.size,
      ids_without_rows: withoutRows.length,
      /** The rows of the list whose ids have no row in the place; a hundred at most. */
      row_numbers: withoutRows.slice(0, MAX_NAMED).map(({ row }) => row),
      /** Null: nothing was removed, or a failure leaves open how many were. */
      rows_removed: this.#result?.rowsRemoved ?? null,
      bytes_before: this.#result?.bytesBefore ?? null,
      bytes_after: this.#result?.bytesAfter ?? null,
      /** A hundred at most. */
      foreign: this.foreign.slice(0, MAX_NAMED),
      error: this.failure?.message ?? null,
    };
  }
}

/** What the purge found and removed in one place; with the names of the report. */
export type PlaceReport = ReturnType<CasePlace['report']>;
