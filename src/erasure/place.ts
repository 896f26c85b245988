import { configError, defectText, EXIT, internalError, transientError, UserError } from '../base/errors.ts';
import { count, grouped } from '../base/quantities.ts';
import type { HashKey } from '../cells/columns/hash-key.ts';
import type { SuppressionVersion } from '../cells/columns/row-filter.ts';
import { NOBODY, type PeopleFound, type PeopleQuery } from '../engine/people/query.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { PlaceOptions, PurgeResult, StatefulTarget } from '../targets/contract.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';
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

/** Most rows of the list that a report names. */
const MAX_ROWS = 100;

/** What is the same for all places of a purge. */
interface PlaceContext {
  readonly request: PurgeRequest;
  readonly query: PeopleQuery;
  readonly ids: readonly ListedId[];
  readonly list: SuppressionList | undefined;
  readonly maxPeople: number;
  readonly mapping: Mapping | undefined;
}

/** The purge of one place: `plan` looks and tries, `run` removes. */
export class PlacePurge {
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

/** What the purge found and removed in one place; with the names of the report. */
export type PlaceReport = ReturnType<PlacePurge['report']>;

/** The ids of a list that rows give a person. */
export function idsWithPeople({ rowsOf, idsWithoutUnifiedId }: PeopleFound): string[] {
  const unnamed = new Set(idsWithoutUnifiedId);
  return [...rowsOf.keys()].filter((id) => !unnamed.has(id));
}
