import { configError, defectText, EXIT, internalError, transientError, UserError } from '../base/errors.ts';
import { NOBODY, type PeopleFound, type PeopleQuery } from '../engine/people/query.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { PlaceOptions, PurgeResult, StatefulTarget } from '../targets/contract.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { ListedId } from './list.ts';

/** A place as a user names it. */
export interface StoredPlace {
  readonly target: StatefulTarget;
  readonly path: string;
}

/** The name of a place in the ledger and in hashes, whatever working folder and links lead to it. */
export function placeName({ target, path }: StoredPlace): string {
  return `${target.name} ${schemeOf(path) === undefined ? realPath(path) : path.replace(/\/+$/, '')}`;
}

/** Most rows of the list that a report names, and most names of others' tables and files that a ledger line has. */
const MAX_NAMED = 100;

/** What the whole purge decides for a place that is locked, before anything is changed. Throws UserError. */
export interface PurgeGuard {
  /** Refuses too many people, and a place that knows more people on the list than the list has. */
  check(place: string, found: PeopleFound): void;
  /** Puts the people on the suppression list, of which it returns the length. */
  suppress(found: PeopleFound): Promise<number>;
}

interface PlanOptions {
  readonly query: PeopleQuery;
  /** Hash of the service whose people are meant. */
  readonly service: string;
  readonly check: PurgeGuard['check'];
}

/** The purge of one place: `plan` looks and tries, `run` removes. */
export class PlacePurge {
  readonly name: string;
  readonly warnings: string[] = [];
  readonly #place: StoredPlace;
  readonly #ids: readonly ListedId[];
  readonly #options: PlaceOptions;
  #found: PeopleFound = NOBODY;
  #foreign: readonly string[] = [];
  #result: PurgeResult | undefined;
  #failure: UserError | undefined;

  constructor(place: StoredPlace, ids: readonly ListedId[], options: PlaceOptions) {
    this.#place = place;
    this.#ids = ids;
    this.#options = options;
    this.name = placeName(place);
  }

  /** The people as they were found last. */
  get found(): PeopleFound {
    return this.#found;
  }

  /** True once all rows that can be read are removed. */
  get isPurged(): boolean {
    return this.#result !== undefined;
  }

  /** Finds the people, and does all that their removal does but its last step. */
  async plan({ query, service, check }: PlanOptions): Promise<void> {
    const { target, path } = this.#place;
    const people = await target.people();
    const { found, foreign } = await people.previewPurge(path, query, this.#options);
    this.#found = found;
    this.#foreign = foreign;
    if (found.service !== undefined && found.service !== service) {
      throw configError(
        `${this.name} holds the data of another service: the same ID may be another person there. Nothing was done.`,
      );
    }
    check(this.name, found);
    this.warnings.push(...found.warnings);
    if (foreign.length === 0) return;
    const more = foreign.length > MAX_NAMED ? ' and more' : '';
    this.warnings.push(
      `${this.name} also has ${foreign.slice(0, MAX_NAMED).join(', ')}${more}, not made here: they stay, and may name the people.`,
    );
  }

  /** Removes the people. Returns what went wrong. */
  async run(query: PeopleQuery, guard: PurgeGuard, ledger: Ledger): Promise<UserError[]> {
    const { target, path } = this.#place;
    const options = this.#options;
    let listed = 0;
    try {
      const people = await target.people();
      const onFound = async (found: PeopleFound) => {
        this.#found = found;
        guard.check(this.name, found);
        await ledger.writeAll(this.#purgeLines(found, ledger));
        listed = await guard.suppress(found);
        return listed;
      };
      this.#result = await people.purge(path, query, { ...options, onFound });
      this.#found = this.#result.found;
      const { rowsRemoved: rows, unreached, inUse = [] } = this.#result;
      const stays = this.#foreign.slice(0, MAX_NAMED);
      await ledger.write({ kind: 'purged', place: this.name, rows, listed, ...(stays.length > 0 && { stays }) });
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

  /** A line for each id of the list, and one for the others on the suppression list together. */
  #purgeLines({ rowsOf, others }: PeopleFound, ledger: Ledger) {
    const line = (id: string | null, rows: number) => ({ kind: 'purge', id, place: this.name, rows }) as const;
    const ofIds = this.#ids.map(({ id }) => line(ledger.key.idHash(id), rowsOf.get(id) ?? 0));
    return others.rows > 0 || ofIds.length === 0 ? [...ofIds, line(null, others.rows)] : ofIds;
  }

  /** Also a defect ends the purge of its place alone. Report and ledger get no text of it, which may name people. */
  #failureOf(thrown: unknown): UserError {
    const error = unnamedDiskError(thrown);
    if (error instanceof UserError) return error;
    this.#options.logger.error('purge.defect', `${this.name}: ${defectText(error)}`);
    return internalError(`${this.name} could not be purged by a defect of dfinery-elt: please report it.`, {
      cause: error,
    });
  }

  report() {
    const { people, rows, shared, rowsOf, others } = this.#found;
    const lacking = this.#ids.filter(({ id }) => !rowsOf.has(id));
    const { rowsRemoved: rows_removed = null, bytesBefore = null, bytesAfter = null } = this.#result ?? {};
    return {
      target: this.#place.target.name,
      place: this.#place.path,
      people,
      rows,
      /** The people of the suppression list, who leave with those of the case. */
      other_people: others.people,
      other_rows: others.rows,
      shared,
      ids_without_rows: lacking.length,
      /** The rows of the list whose ids have no row in the place; a hundred at most. */
      row_numbers: lacking.slice(0, MAX_NAMED).map(({ row }) => row),
      /** Null: nothing was removed, or a failure leaves open how many were. */
      rows_removed,
      bytes_before: bytesBefore,
      bytes_after: bytesAfter,
      /** Names of tables and files that others made there: they stay. A hundred at most. */
      foreign: this.#foreign.slice(0, MAX_NAMED),
      /** Why the people are, or may be, still there. */
      error: this.#failure?.message ?? null,
    };
  }
}

/** What the purge found and removed in one place; with the names of the report. */
export type PlaceReport = ReturnType<PlacePurge['report']>;

/** The failure for a guard of the people. */
export const guardError = (problem: string): UserError =>
  configError(`${problem} Nothing was removed.`, { exitCode: EXIT.guard });
