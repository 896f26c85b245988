import { configError, defectText, EXIT, internalError, transientError, UserError } from '../base/errors.ts';
import { count, grouped } from '../base/quantities.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { SuppressionVersion } from '../cells/columns/row-filter.ts';
import type {} from '../engine/people/query.ts';
import { NOBODY, type PeopleFound, type PeopleQuery } from '../engine/people/query.ts';
import { serviceHash } from '../extract/export-request.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { PlaceOptions, PurgeResult, StatefulTarget } from '../targets/contract.ts';
import type { Ledger, ServiceName } from './ledger/ledger.ts';
import { type ListedId, rowsText } from './list.ts';
import type { Mapping } from './mapping.ts';
import {
  type Forgotten,
  requireSuppression,
  type SuppressionFile,
  type SuppressionList,
  suppress,
  suppressionToAppend,
} from './suppression.ts';

/** A place as a user names it. */
export interface StoredPlace {
  readonly target: StatefulTarget;
  readonly path: string;
}

/** The name of a place in the ledger and in hashes, whatever working folder and links lead to it. */
export function placeName({ target, path }: StoredPlace): string {
  return `${target.name} ${schemeOf(path) === undefined ? realPath(path) : path.replace(/\/+$/, '')}`;
}

export interface PurgeRequest {
  readonly places: readonly StoredPlace[];
  /** Column of the places with the external ids; undefined if a mapping names the people. */
  readonly column: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly suppression: SuppressionFile | undefined;
  /** True to purge everybody on the suppression list, in place of a list of ids. */
  readonly isSuppressed: boolean;
  /** Undefined for three for each id, ten at least. */
  readonly maxPeople: number | undefined;
  readonly allowsShared: boolean;
  readonly options: PlaceOptions;
  /** Removes the downloads that dead runs left; returns those that it cannot remove. */
  readonly sweep: () => Promise<readonly string[]>;
}

const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;
const MAX_ROWS = 100;

/** What the purge found and removed in one place; with the names of the report. */
export type PlaceReport = ReturnType<PlacePurge['report']>;

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
   * that cannot be read or written, and for another suppression list than a place was purged with.
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
    const names = left.slice(0, MAX_ROWS).join(', ');
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

/** The ids of a list that rows give a person. */
function idsWithPeople({ rowsOf, idsWithoutUnifiedId }: PeopleFound): string[] {
  const unnamed = new Set(idsWithoutUnifiedId);
  return [...rowsOf.keys()].filter((id) => !unnamed.has(id));
}

interface PlaceContext {
  readonly request: PurgeRequest;
  readonly query: PeopleQuery;
  readonly ids: readonly ListedId[];
  readonly list: SuppressionList | undefined;
  readonly maxPeople: number;
  readonly mapping: Mapping | undefined;
}

class PlacePurge {
  readonly name: string;
  readonly warnings: string[] = [];
  readonly #place: StoredPlace;
  readonly #context: PlaceContext;
  #found: PeopleFound = NOBODY;
  #result: PurgeResult | undefined;
  #failure: UserError | undefined;

  constructor(place: StoredPlace, context: PlaceContext) {
    this.#place = place;
    this.#context = context;
    this.name = placeName(place);
  }

  /** The people as they were found last. */
  get found(): PeopleFound {
    return this.#found;
  }

  get problem(): string | undefined {
    const { people, shared } = this.#found;
    const { maxPeople, request } = this.#context;
    if (people > maxPeople) {
      return (
        `${this.name} holds ${count(people, 'person', 'people')} of these IDs, more than --max-people allows ` +
        `(${grouped(maxPeople)}). If that is meant, give --max-people ${people}.`
      );
    }
    if (shared === 0 || request.allowsShared) return undefined;
    return (
      `${this.name} also has other IDs in the rows of ${count(shared, 'of these people', 'of these people')}, and those ` +
      'rows would leave, too. If that is meant, give --allow-shared.'
    );
  }

  async plan(service: string): Promise<void> {
    const { target, path } = this.#place;
    const { request, query, list } = this.#context;
    const people = await target.people();
    const { found, foreignTables } = await people.previewPurge(path, query, request.options);
    this.#found = found;
    if (found.service !== undefined && found.service !== service) {
      throw configError(
        `${this.name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    requireSuppression(this.name, found.suppression, list);
    this.warnings.push(...found.warnings);
    if (foreignTables.length === 0) return;
    this.warnings.push(
      `${this.name} also has ${foreignTables.join(', ')}, not made here: they stay, and may name the people.`,
    );
  }

  /** Removes the people; `somewhere`: the ids that rows of any place give a person. Returns what went wrong. */
  async run(ledger: Ledger, somewhere: ReadonlySet<string>): Promise<UserError[]> {
    const { target, path } = this.#place;
    const { request, query } = this.#context;
    const { options } = request;
    try {
      const people = await target.people();
      const onFound = (found: PeopleFound) => this.#begin(found, ledger, somewhere);
      this.#result = await people.purge(path, query, { ...options, onFound });
      this.#found = this.#result.found;
      const { rowsRemoved: rows, unreached, inUse = [] } = this.#result;
      await ledger.write({ kind: 'purged', place: this.name, rows });
      if (unreached.length > 0) this.#failure = transientError(unreached.join(' '));
      if (inUse.length > 0) {
        this.warnings.push(`Other runs are under way. Until they end, they hold downloads in ${inUse.join(', ')}.`);
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      this.#failure = this.#failureOf(error);
    }
    return this.#failure === undefined ? [] : [this.#failure];
  }

  /** Under the lock of the place: checks the guards anew, writes the ledger's lines and the suppression list. */
  async #begin(
    found: PeopleFound,
    ledger: Ledger,
    somewhere: ReadonlySet<string>,
  ): Promise<SuppressionVersion | undefined> {
    const { request, ids, mapping } = this.#context;
    this.#found = found;
    const { problem, name: place } = this;
    // Another purge may have added people to the list since the plan.
    const list = request.suppression && suppressionToAppend(request.suppression);
    if (problem !== undefined) throw configError(`${problem} Nothing was removed there.`, { exitCode: EXIT.guard });
    requireSuppression(place, found.suppression, list);
    if (request.isSuppressed) await ledger.write({ kind: 'purge', id: null, place, rows: found.rows });
    else {
      const rowsOf = (id: string) => found.rowsOf.get(id) ?? 0;
      await ledger.writeAll(
        ids.map(({ id }) => ({ kind: 'purge', id: ledger.key.idHash(id), place, rows: rowsOf(id) })),
      );
    }
    if (request.suppression === undefined || request.isSuppressed) return list?.version();
    const known = new Set([...somewhere, ...idsWithPeople(found)]);
    const { column } = found;
    const unnamed = ids.filter(({ id }) => !known.has(id) && !mapping?.has(id));
    const people: Forgotten[] = [
      ...found.unifiedIds,
      ...ids.flatMap(({ id }) => mapping?.get(id) ?? []).map((text) => ({ text })),
      ...(column === undefined ? [] : unnamed.map(({ id }) => ({ text: id, column }))),
    ];
    return suppress(request.suppression, people, request.options);
  }

  /** Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people. */
  #failureOf(thrown: unknown): UserError {
    const error = unnamedDiskError(thrown);
    if (error instanceof UserError) return error;
    this.#context.request.options.logger.error('purge.defect', `${this.name}: ${defectText(error)}`);
    return internalError(`${this.name} could not be purged by a defect of dfinery-elt: please report it.`, {
      cause: error,
    });
  }

  report() {
    const { people, rows, shared, rowsOf } = this.#found;
    const lacking = this.#context.ids.filter(({ id }) => !rowsOf.has(id));
    const { rowsRemoved: rows_removed = null, bytesBefore = null, bytesAfter = null } = this.#result ?? {};
    return {
      target: this.#place.target.name,
      place: this.#place.path,
      people,
      rows,
      shared,
      ids_without_rows: lacking.length,
      /** The rows of the list whose ids have no row in the place; a hundred at most. */
      row_numbers: lacking.slice(0, MAX_ROWS).map(({ row }) => row),
      /** Null: nothing was removed, or a failure leaves open how many were. */
      rows_removed,
      bytes_before: bytesBefore,
      bytes_after: bytesAfter,
      /** Why the people are, or may be, still there. */
      error: this.#failure?.message ?? null,
    };
  }
}
