import { configError, transientError, type UserError } from '../base/errors.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { SuppressionVersion } from '../cells/columns/row-filter.ts';
import { serviceHash } from '../extract/export-request.ts';
import type { Ledger, ServiceName } from './ledger/ledger.ts';
import { type ListedId, rowsText } from './list.ts';
import type { Mapping } from './mapping.ts';
import { idsWithPeople, PlacePurge, type PurgeRequest } from './place.ts';
import { suppressionToAppend } from './suppression.ts';

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;
/** Most folders that a message names. */
const MAX_NAMES = 100;

/** The purge of all places: `plan` looks and tries, `run` removes. */
export class Purge {
  readonly #request: PurgeRequest;
  readonly #ids: readonly ListedId[];
  readonly #places: readonly PlacePurge[];
  readonly #warnings: string[] = [];

  /** The suppression list whose people are purged in place of a list of ids. */
  readonly suppressed: SuppressionVersion | undefined;

  private constructor(
    request: PurgeRequest,
    ids: readonly ListedId[],
    places: readonly PlacePurge[],
    suppressed: SuppressionVersion | undefined,
  ) {
    this.suppressed = suppressed;
    this.#request = request;
    this.#ids = ids;
    this.#places = places;
  }

  /**
   * Finds the people in each place, and does all that their removal does but its last step. Throws UserError for a place
   * that cannot be read or written. It also refuses another suppression list than a place was purged with.
   */
  static async plan(
    request: PurgeRequest,
    ids: readonly ListedId[],
    mapping: Mapping | undefined,
    service: ServiceName,
  ): Promise<Purge> {
    const { column, hashKey, suppression, options } = request;
    const list = suppression && suppressionToAppend(suppression);
    if (request.isSuppressed && (list === undefined || list.entries.length === 0)) {
      throw configError('--suppressed needs a suppression_file with people on it. Nothing was done.');
    }
    const suppressed = request.isSuppressed && list ? { key: new HashKey(list.key), entries: list.entries } : undefined;
    const query = { ids: ids.map(({ id }) => id), column, mapping, hashKey, suppressed };
    const size = suppressed?.entries.length ?? ids.length;
    const maxPeople = request.maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * size);
    const places = request.places.map(
      (place) => new PlacePurge(place, { request, query, ids, list, maxPeople, mapping }),
    );
    for (const [i, place] of places.entries()) {
      options.logger.info('purge.plan', `Looking into ${place.name} (${i + 1} of ${places.length}) …`);
      await place.plan(serviceHash(service));
    }
    const purge = new Purge(request, ids, places, suppressed && list?.version());
    purge.#warn();
    return purge;
  }

  /** The limit that a place exceeds, of people or of shared rows, as a sentence; undefined if none does. */
  get problem(): string | undefined {
    return this.#places.map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  get names(): readonly string[] {
    return this.#places.map(({ name }) => name);
  }

  get reports() {
    return this.#places.map((place) => place.report());
  }

  /** What the officer should know before anybody is deleted. */
  get warnings(): readonly string[] {
    return [...this.#warnings, ...this.#places.flatMap(({ warnings }) => warnings)];
  }

  /** Removes the people from each place. A failure in one leaves the others to be purged. Returns the failures. */
  async run(ledger: Ledger): Promise<UserError[]> {
    const { options, sweep } = this.#request;
    const somewhere = new Set(this.#places.flatMap(({ found }) => idsWithPeople(found)));
    const failures: UserError[] = [];
    for (const [i, place] of this.#places.entries()) {
      options.signal?.throwIfAborted();
      options.logger.info('purge.begin', `Purging ${place.name} (${i + 1} of ${this.#places.length}) …`);
      failures.push(...(await place.run(ledger, somewhere)));
    }
    const left = await sweep();
    if (left.length === 0) return failures;
    const names = left.slice(0, MAX_NAMES).join(', ');
    return [
      ...failures,
      transientError(`Downloads of dead runs may name the people, and stay: ${names}. Remove them.`),
    ];
  }

  #warn(): void {
    const { suppression, isSuppressed } = this.#request;
    const warnings = this.#warnings;
    if (suppression === undefined) {
      warnings.push(
        'There is no suppression_file: the people return with the next sync while the service still exports them.',
      );
    }
    const found = new Set(this.#places.flatMap((place) => [...place.found.rowsOf.keys()]));
    const near = new Set(this.#places.flatMap((place) => place.found.near));
    const missed = this.#ids.filter(({ id }) => near.has(id) && !found.has(id));
    if (missed.length > 0) {
      warnings.push(
        `${rowsText(missed)}: no place holds this ID, but one that differs only in blanks at its edges, capitals or ` +
          'Unicode form. Is it spelt right?',
      );
    }
    if (this.#places.every((place) => place.found.rows === 0)) {
      warnings.push(isSuppressed ? 'No place holds anybody of the list.' : 'No place holds any of these IDs.');
    }
  }
}
