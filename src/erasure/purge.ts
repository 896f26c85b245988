import { configError, transientError, UserError } from '../base/errors.ts';
import { count, grouped } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import { type PeopleFound, type PeopleQuery, personOf, type UnifiedId } from '../engine/people/query.ts';
import { serviceHash } from '../extract/export-request.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import type { Ledger, ServiceName } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
import { guardError, PlacePurge } from './place.ts';
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
/** Most folders that a message names. */
const MAX_NAMES = 100;

const NOBODY_LISTED: PeopleOfList = {
  people: new Map(),
  foundIds: new Set(),
  withProfile: null,
  changedHands: 0,
  asksProfiles: false,
  mapped: [],
  warnings: [],
};

interface Planned {
  readonly people: PeopleOfList;
  readonly list: SuppressionList;
}

/** The purge of all places: `plan` looks and tries, `run` removes. */
export class Purge {
  readonly people: PeopleOfList;
  readonly #request: PurgeRequest;
  readonly #ids: readonly ListedId[];
  readonly #places: readonly PlacePurge[];
  readonly #warnings: string[] = [];
  readonly #maxPeople: number;
  #list: SuppressionList;

  private constructor(request: PurgeRequest, ids: readonly ListedId[], { people, list }: Planned) {
    const { ways } = request;
    this.#request = request;
    this.#ids = ids;
    this.people = people;
    this.#list = list;
    this.#places = ways.places.map((place) => new PlacePurge(place, ids, ways.options));
    this.#maxPeople = request.maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * ids.length);
  }

  /**
   * Finds the people in every way, then looks into each place, and does all that their removal does but its last step.
   * Throws UserError for what the execution would stumble over.
   */
  static async plan(
    request: PurgeRequest,
    ids: readonly ListedId[],
    service: ServiceName,
    io: Omit<Runtime, 'env'>,
  ): Promise<Purge> {
    const { ways, suppression, isSuppressed } = request;
    await tryToSuppress(suppression);
    const list = suppressionToAppend(suppression);
    const people = isSuppressed ? NOBODY_LISTED : await findInAllWays(ids, ways, io);
    const purge = new Purge(request, ids, { people, list });
    for (const [i, place] of purge.#places.entries()) {
      io.logger.info('purge.plan', `Looking into ${place.name} (${i + 1} of ${purge.#places.length}) …`);
      const check = (name: string, found: PeopleFound) => purge.#requireList(name, found);
      await place.plan({ query: purge.#query(), service: serviceHash(service), check });
    }
    purge.#warn();
    if (!isSuppressed && ids.some(({ id }) => !people.foundIds.has(id))) {
      purge.#warnings.push(
        'IDs that no way finds are not put on the suppression list, and rows of theirs stay: run again after the next sync.',
      );
    }
    return purge;
  }

  /** The limit that the people exceed, as a sentence; undefined if they exceed none. */
  get problem(): string | undefined {
    return this.#problemWith([]);
  }

  /** Number of people on the suppression list. */
  get listLength(): number {
    return this.#list.length;
  }

  get names(): readonly string[] {
    return this.#places.map(({ name }) => name);
  }

  get reports() {
    return this.#places.map((place) => place.report());
  }

  /** What the officer should know before anybody is deleted. */
  get warnings(): readonly string[] {
    return [...this.people.warnings, ...this.#warnings, ...this.#places.flatMap(({ warnings }) => warnings)];
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
    const { ways, suppression, sweep } = this.#request;
    const { logger, signal } = ways.options;
    try {
      this.#list = await suppress(suppression, this.#forms(), ways.options);
    } catch (error) {
      const failure = unnamedDiskError(error);
      if (failure instanceof UserError) return [failure];
      throw failure;
    }
    const guard = {
      check: (name: string, found: PeopleFound) => this.#check(name, found),
      suppress: async ({ unifiedIds }: PeopleFound) => {
        this.#list = await suppress(suppression, unifiedIds, ways.options);
        return this.#list.length;
      },
    };
    const failures: UserError[] = [];
    for (const [i, place] of this.#places.entries()) {
      signal?.throwIfAborted();
      logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${this.#places.length}) …`);
      failures.push(...(await place.run(this.#query(), guard, ledger)));
    }
    const { left, inUse } = await sweep();
    if (inUse.length > 0) {
      this.#warnings.push(`Other runs are under way. Until they end, they hold downloads in ${namesOf(inUse)}.`);
    }
    if (left.length === 0) return failures;
    return [
      ...failures,
      transientError(`Downloads of dead runs may name the people, and stay: ${namesOf(left)}. Remove them.`),
    ];
  }

  #query(): PeopleQuery {
    const { column, hashKey } = this.#request.ways;
    const ids = this.#ids.map(({ id }) => id);
    const { people, asksProfiles } = this.people;
    return { ids, column, asksProfiles, people, hashKey, suppressed: this.#list.people };
  }

  /** Every form of the people's unified ids: as the ways have them, and as rows of the places do. */
  #forms(): UnifiedId[] {
    const forms = new Map<string, UnifiedId>();
    for (const { found } of this.#places) for (const form of found.unifiedIds) forms.set(form.text, form);
    for (const text of [...this.people.people.values()].flat()) {
      if (!forms.has(text)) forms.set(text, { text, hashKey: undefined });
    }
    return [...forms.values()];
  }

  /** `more`: who was found under the lock of a place. */
  #problemWith(more: readonly UnifiedId[]): string | undefined {
    const { maxPeople: given, allowsShared, ways } = this.#request;
    const people = new Set([...this.#forms(), ...more].map(({ text }) => personOf(text, ways.hashKey))).size;
    if (people > this.#maxPeople) {
      return (
        `${count(people, 'person has', 'people have')} these IDs, more than ${given === undefined ? 'usual' : '--max-people allows'} ` +
        `(${grouped(this.#maxPeople)}). If that is meant, give --max-people ${people}.`
      );
    }
    const shared = this.people.changedHands + Math.max(0, ...this.#places.map(({ found }) => found.shared));
    if (shared === 0 || allowsShared) return undefined;
    return (
      `${count(shared, 'of these people has', 'of these people have')} other IDs, too, in rows or in the profile: the ID ` +
      'changed hands, and all rows of the person would leave. If that is meant, give --allow-shared.'
    );
  }

  #check(place: string, found: PeopleFound): void {
    const problem = this.#problemWith(found.unifiedIds);
    if (problem !== undefined) throw guardError(`${place}: ${problem}`);
    this.#requireList(place, found);
  }

  #requireList(place: string, { suppressionLength }: PeopleFound): void {
    // Another purge may have put people on the list since it was read.
    if (suppressionLength > this.#list.length) this.#list = suppressionToAppend(this.#request.suppression);
    if (!this.#request.isNewList) requireSuppression(place, suppressionLength, this.#list);
    const lost = suppressionLength - this.#list.length;
    if (lost <= 0) return;
    const text =
      `${place} knew ${count(suppressionLength, 'person', 'people')} on the suppression list, and the list has ` +
      `${grouped(this.#list.length)}: those who are missing return while the service exports them.`;
    if (!this.#warnings.includes(text)) this.#warnings.push(text);
  }

  #warn(): void {
    const { isSuppressed, isNewList } = this.#request;
    if (isSuppressed && this.#list.length === 0 && !isNewList) {
      throw configError('--suppressed needs people on the suppression list, and it is empty. Nothing was done.');
    }
    if (this.#places.every(({ found }) => found.rows + found.others.rows === 0)) {
      this.#warnings.push(isSuppressed ? 'No place holds anybody of the list.' : 'No place holds any of these IDs.');
    }
  }
}

const namesOf = (folders: readonly string[]): string => folders.slice(0, MAX_NAMES).join(', ');
