import type { UserError } from '../base/errors.ts';
import { NOBODY, type PeopleFound } from '../engine/people/query.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { PurgeResult, StatefulTarget } from '../targets/contract.ts';
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

/** Most rows of the list that a report names, and most foreign tables and files that a line of the ledger names. */
export const MAX_NAMED = 100;

/** A place of a case: who was found there last, and what became of them. `Purge` fills it. */
export class CasePlace {
  readonly name: string;
  readonly stored: StoredPlace;
  people: PeopleFound = NOBODY;
  /** Names of tables and files that others made there: they stay. */
  foreign: readonly string[] = [];
  /** Present once all rows that can be read are removed. */
  result: PurgeResult | undefined;
  /** Why the people are, or may be, still there. */
  failure: UserError | undefined;

  constructor(stored: StoredPlace) {
    this.stored = stored;
    this.name = placeName(stored);
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
    const lacking = ids.filter(({ id }) => !rowsOf.has(id));
    return {
      target: this.stored.target.name,
      place: this.stored.path,
      people: persons,
      rows,
      /** The people of the suppression list, who leave with those of the case. */
      other_people: others.persons,
      other_rows: others.rows,
      shared,
      ids_without_rows: lacking.length,
      /** The rows of the list whose ids have no row in the place; a hundred at most. */
      row_numbers: lacking.slice(0, MAX_NAMED).map(({ row }) => row),
      /** Null: nothing was removed, or a failure leaves open how many were. */
      rows_removed: this.result?.rowsRemoved ?? null,
      bytes_before: this.result?.bytesBefore ?? null,
      bytes_after: this.result?.bytesAfter ?? null,
      /** A hundred at most. */
      foreign: this.foreign.slice(0, MAX_NAMED),
      error: this.failure?.message ?? null,
    };
  }
}

/** What the purge found and removed in one place; with the names of the report. */
export type PlaceReport = ReturnType<CasePlace['report']>;
