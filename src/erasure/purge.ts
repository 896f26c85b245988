import { configError, defectText, EXIT, internalError, transientError, UserError } from '../base/errors.ts';
import { count, grouped } from '../base/quantities.ts';
import type { RunIo } from '../base/runtime.ts';
import { type PeopleFound, type PeopleQuery, personOf, type UnifiedId } from '../engine/people/query.ts';
import { serviceHash } from '../extract/export-request.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import type { Ledger, ServiceName } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
import { CasePlace, MAX_NAMED } from './place.ts';
import {
  requireSuppression,
  type SuppressionFile,
  type SuppressionList,
  suppress,
  suppressionToAppend,
  tryToSuppress,
} from './suppression.ts';
import { findInAllWays, type PeopleOfList, type Ways } from './ways.ts';

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
  /** Removes the downloads that dead runs left. */
  readonly sweep: () => Promise<{ readonly left: readonly string[]; readonly inUse: readonly string[] }>;
}

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;

const NOBODY_LISTED: PeopleOfList = {
  peopleOf: new Map(),
  foundIds: new Set(),
  withProfile: null,
  changedHands: 0,
  asksProfiles: false,
  mapped: [],
  warnings: [],
};

/** The purge of all places: `plan` looks and tries, `run` removes. */
export class Purge {
  readonly ofList: PeopleOfList;
  readonly #request: PurgeRequest;
  readonly #ids: readonly ListedId[];
  readonly #places: readonly CasePlace[];
  readonly #warnings: Set<string>;
  readonly #maxPeople: number;
  #suppression: SuppressionList;

  private constructor(
    request: PurgeRequest,
    ids: readonly ListedId[],
    ofList: PeopleOfList,
    suppression: SuppressionList,
  ) {
    this.#request = request;
    this.#ids = ids;
    this.ofList = ofList;
    this.#suppression = suppression;
    this.#places = request.ways.places.map((stored) => new CasePlace(stored));
    this.#warnings = new Set(ofList.warnings);
    this.#maxPeople = request.maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * ids.length);
  }

  /**
   * Finds the people in every way, then looks into each place. It does all that their removal does but its last step.
   * Throws UserError for what the execution would stumble over.
   */
  static async plan(request: PurgeRequest, ids: readonly ListedId[], service: ServiceName, io: RunIo): Promise<Purge> {
    const { ways, isSuppressed } = request;
    await tryToSuppress(request.suppression);
    const suppression = suppressionToAppend(request.suppression);
    const ofList = isSuppressed ? NOBODY_LISTED : await findInAllWays(ids, ways, io);
    const purge = new Purge(request, ids, ofList, suppression);
    for (const [i, place] of purge.#places.entries()) {
      io.logger.info('purge.plan', `Looking into ${place.name} (${i + 1} of ${purge.#places.length}) …`);
      await purge.#preview(place, serviceHash(service));
    }
    purge.#warn();
    return purge;
  }

  /** The limit that the people exceed, as a sentence; undefined if they exceed none. */
  get problem(): string | undefined {
    const { maxPeople, allowsShared, ways } = this.#request;
    const persons = new Set(this.#forms().map(({ text }) => personOf(text, ways.hashKey))).size;
    if (persons > this.#maxPeople) {
      const limit = maxPeople === undefined ? 'usual' : '--max-people allows';
      return (
        `${count(persons, 'person has', 'people have')} these IDs, more than ${limit} (${grouped(this.#maxPeople)}). ` +
        `If that is meant, give --max-people ${persons}.`
      );
    }
    const shared = this.ofList.changedHands + Math.max(0, ...this.#places.map(({ people }) => people.shared));
    if (shared === 0 || allowsShared) return undefined;
    return (
      `${count(shared, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: the ID ` +
      'changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
    );
  }

  /** Number of people on the suppression list. */
  get suppressionLength(): number {
    return this.#suppression.length;
  }

  get names(): readonly string[] {
    return this.#places.map(({ name }) => name);
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
    return this.#places.every(({ result }) => result !== undefined);
  }

  /**
   * Puts the people on the suppression list, then removes them, and everybody else on the list, from each place. A
   * failure in one place leaves the others to be purged. Returns the failures.
   */
  async run(ledger: Ledger): Promise<UserError[]> {
    const { ways, suppression, sweep } = this.#request;
    const { logger, signal } = ways.options;
    try {
      this.#suppression = await suppress(suppression, this.#forms(), ways.options);
    } catch (error) {
      const failure = unnamedDiskError(error);
      if (failure instanceof UserError) return [failure];
      throw failure;
    }
    for (const [i, place] of this.#places.entries()) {
      signal?.throwIfAborted();
      logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${this.#places.length}) …`);
      try {
        await this.#purgePlace(place, ledger);
      } catch (error) {
        signal?.throwIfAborted();
        place.failure = this.#failureOf(place, error);
      }
    }
    const failures = this.#places.flatMap(({ failure }) => failure ?? []);
    const { left, inUse } = await sweep();
    this.#warnOfRuns(inUse);
    if (left.length === 0) return failures;
    const stays = `Downloads of dead runs may name the people, and stay: ${namesOf(left)}. Remove them.`;
    return [...failures, transientError(stays)];
  }

  /** Finds the people of a place, and does all that their removal does but its last step. */
  async #preview(place: CasePlace, service: string): Promise<void> {
    const { target, path } = place.stored;
    const { options } = this.#request.ways;
    const { people, foreign } = await (await target.people()).previewPurge(path, this.#query(), options);
    place.people = people;
    place.foreign = foreign;
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
      `${place.name} also has ${namesOf(foreign)}${more}, not made here: they stay, and may name the people.`,
    );
  }

  /** Removes the people from a place. */
  async #purgePlace(place: CasePlace, ledger: Ledger): Promise<void> {
    const { ways, suppression } = this.#request;
    const { target, path } = place.stored;
    let listed = 0;
    // The place is locked, and nothing is changed yet: guards, then the ledger, then the suppression list.
    const onFound = async (people: PeopleFound) => {
      place.people = people;
      const { problem } = this;
      if (problem !== undefined) {
        throw configError(`${place.name}: ${problem} Nothing was removed.`, { exitCode: EXIT.guard });
      }
      this.#requireSuppression(place);
      await ledger.writeAll(place.purgeLines(this.#ids, ledger));
      this.#suppression = await suppress(suppression, people.unifiedIds, ways.options);
      listed = this.#suppression.length;
      return listed;
    };
    place.result = await (await target.people()).purge(path, this.#query(), { ...ways.options, onFound });
    const { people, rowsRemoved: rows, unreached, inUse = [] } = place.result;
    place.people = people;
    const stays = place.foreign.slice(0, MAX_NAMED);
    const remains = { ...(stays.length > 0 && { stays }), ...(unreached.length > 0 && { unreached: true as const }) };
    await ledger.write({ kind: 'purged', place: place.name, rows, listed, ...remains });
    if (unreached.length > 0) place.failure = transientError(unreached.join(' '));
    this.#warnOfRuns(inUse);
  }

  /** Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people. */
  #failureOf({ name }: CasePlace, thrown: unknown): UserError {
    const error = unnamedDiskError(thrown);
    if (error instanceof UserError) return error;
    this.#request.ways.options.logger.error('purge.defect', `${name}: ${defectText(error)}`);
    return internalError(`${name} could not be purged by a defect of dfinery-elt: please report it.`, { cause: error });
  }

  #query(): PeopleQuery {
    const { column, hashKey } = this.#request.ways;
    const ids = this.#ids.map(({ id }) => id);
    const { peopleOf, asksProfiles } = this.ofList;
    return { ids, column, asksProfiles, peopleOf, hashKey, suppressed: this.#suppression.people };
  }

  /** Every form of the people's unified ids: as the ways have them, and as rows of the places do. */
  #forms(): UnifiedId[] {
    const forms = new Map<string, UnifiedId>();
    for (const { people } of this.#places) for (const form of people.unifiedIds) forms.set(form.text, form);
    for (const text of [...this.ofList.peopleOf.values()].flat()) {
      if (!forms.has(text)) forms.set(text, { text, hashKey: undefined });
    }
    return [...forms.values()];
  }

  /** Refuses a place that knows more people on the suppression list than the list has, or warns of it. */
  #requireSuppression({ name, people: { suppressionLength } }: CasePlace): void {
    // Another purge may have put people on the list since it was read.
    if (suppressionLength > this.suppressionLength) this.#suppression = suppressionToAppend(this.#request.suppression);
    if (!this.#request.isNewList) requireSuppression(name, suppressionLength, this.#suppression);
    if (suppressionLength <= this.suppressionLength) return;
    this.#warnings.add(
      `${name} knew ${count(suppressionLength, 'person', 'people')} on the suppression list, and the list has ` +
        `${grouped(this.suppressionLength)}: those who are missing return while the service exports them.`,
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
    if (!isSuppressed && this.#ids.some(({ id }) => !this.ofList.foundIds.has(id))) {
      this.#warnings.add(
        'IDs that no way finds are not put on the suppression list, and rows of theirs stay: run again after the next sync.',
      );
    }
  }

  #warnOfRuns(folders: readonly string[]): void {
    if (folders.length === 0) return;
    this.#warnings.add(`Other runs are under way. Until they end, they hold downloads in ${namesOf(folders)}.`);
  }
}

const namesOf = (names: readonly string[]): string => names.slice(0, MAX_NAMED).join(', ');
