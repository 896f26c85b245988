import { resolve } from 'node:path';
import { configError, defectText, EXIT, internalError, transientError, UserError } from '../base/errors.ts';
import { count, grouped } from '../base/quantities.ts';
import type { Secret } from '../base/secrets.ts';
import type { HashKey } from '../cells/columns/hash-key.ts';
import { unnamedDiskError } from '../fs/disk-failure.ts';
import { realPath, schemeOf } from '../fs/local-path.ts';
import type { PlaceOptions, StatefulTarget } from '../targets/contract.ts';
import { NOBODY, type PeopleFound, type PeopleQuery, type PurgeResult } from '../targets/contract.ts';
import type { ListedId } from './input/deletion-list.ts';
import type { Mapping } from './input/mapping.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Counts } from './ledger/line.ts';
import type { PurgeWarnings } from './purge-warnings.ts';
import { suppress } from './suppression/list.ts';

/** A place as a user names it. */
export interface StoredPlace {
  readonly target: StatefulTarget;
  readonly path: string;
}

/** The name of a place in the ledger, in hashes and in messages, whatever working folder and links lead to it. */
export function placeName({ target, path }: StoredPlace): string {
  return `${target.name} ${schemeOf(path) === undefined ? realPath(path) : path.replace(/\/+$/, '')}`;
}

/** How people are found and removed: the same in every place. */
export interface PurgeRules {
  readonly column: string | undefined;
  readonly mapping: Mapping | undefined;
  readonly hashKey: HashKey | undefined;
  readonly suppression: { readonly file: string; readonly key: Secret } | undefined;
  /** Undefined for three for each id, ten at least. */
  readonly maxPeople: number | undefined;
  readonly allowsShared: boolean;
  readonly forgetCopies: readonly string[];
  /** File that the list is read from by a query. If it is one of the places, this one is purged last. */
  readonly listFile: string | undefined;
  readonly options: PlaceOptions;
}

/** What the places of a purge have in common. */
interface PurgeContext {
  readonly rules: PurgeRules;
  /** Number of ids on the list. */
  readonly listed: number;
  /** Hash of the service whose ids these are. */
  readonly service: string;
  readonly warnings: PurgeWarnings;
}

/** Maximum number of rows of a list, sentences in a line of the ledger, and downloads in a message that are named. */
export const MAX_NAMED = 100;
const PEOPLE_PER_ID = 3;
const MIN_PEOPLE = 10;

export type Removed = Readonly<Record<'people' | 'rows' | 'files_rewritten' | 'bytes_before' | 'bytes_after', number>>;

/**
 * The purge of one place: `forecast` what it holds of the people, `try` their removal, then `run` it, and `record` what
 * became of it. `ids` are those who are looked for.
 */
export class PlacePurge {
  readonly place: StoredPlace;
  readonly name: string;
  readonly #context: PurgeContext;
  /** The people as they were found last. */
  #found: PeopleFound = NOBODY;
  /** True once rows may have been removed. */
  #isBegun = false;
  #result: PurgeResult | undefined;
  #failure: UserError | undefined;

  constructor(place: StoredPlace, context: PurgeContext) {
    this.place = place;
    this.name = placeName(place);
    this.#context = context;
  }

  get found(): PeopleFound {
    return this.#found;
  }

  /** Why people are, or may be, still in the place, or why it could not be looked into. */
  get failure(): UserError | undefined {
    return this.#failure;
  }

  /** Counts of what was removed, with the names of the report and of the ledger; undefined before that is known. */
  get removed(): Removed | undefined {
    if (this.#result === undefined) return undefined;
    const { found, rowsRemoved, files, bytesBefore, bytesAfter } = this.#result;
    return {
      people: found.people,
      rows: rowsRemoved,
      files_rewritten: files.length,
      bytes_before: bytesBefore,
      bytes_after: bytesAfter,
    };
  }

  /** Counts the people whom the place holds now. Throws UserError for a place that cannot be looked into. */
  async forecast(ids: readonly string[]): Promise<void> {
    const { target, path } = this.place;
    const { options, listFile } = this.#context.rules;
    const people = await target.people();
    const copies = await people.copies?.(path, options);
    if (listFile !== undefined && copies?.includes(realPath(listFile))) {
      throw configError(
        `${listFile} is a copy for readers of ${path}, whose purge replaces it, so that it would give another list: ` +
          `give --duckdb ${path}. Nothing was done.`,
      );
    }
    this.#found = await people.find(path, this.#queryOf(ids), options);
    this.#checkListable();
    this.#warnOfFindings();
  }

  /**
   * Throws a configuration failure for people whom the suppression list could not hold out: it knows them by the text
   * of the export.
   */
  #checkListable(): void {
    const { unifiedIds, respelledAs: type } = this.#found;
    if (this.#context.rules.suppression === undefined || unifiedIds.length === 0 || type === undefined) return;
    const { target, path } = this.place;
    throw configError(
      `${target.name} ${path} holds df_unified_id as ${type}, which does not keep its spelling, and the suppression list ` +
        'knows people by that alone: give no column_types for df_unified_id and sync with --full-refresh, or purge ' +
        'without --suppression-file. Nothing was removed there.',
    );
  }

  /** The limit that the place exceeds, of people or of shared rows, as a sentence; undefined if none. */
  get problem(): string | undefined {
    const { target, path } = this.place;
    const { rules, listed } = this.#context;
    const { people, shared } = this.#found;
    const max = rules.maxPeople ?? Math.max(MIN_PEOPLE, PEOPLE_PER_ID * listed);
    if (people > max) {
      return (
        `${target.name} ${path} holds ${count(people, 'person', 'people')} of these ids, more than --max-people ` +
        `allows (${max}). If that is meant, give --max-people ${people}.`
      );
    }
    if (shared === 0 || rules.allowsShared) return undefined;
    return (
      `${target.name} ${path} has other ids, too, in the column of ${grouped(shared)} of these people, whose rows ` +
      'would go with theirs. If that is meant, give --allow-shared.'
    );
  }

  /** Does all that a purge does but its last step, and warns of what it will not reach. Throws UserError. */
  async try(ids: readonly string[]): Promise<void> {
    const { target, path } = this.place;
    const { rules, warnings } = this.#context;
    const people = await target.people();
    const { foreignTables, copiesOfOriginal = [] } = await people.tryPurge(path, this.#queryOf(ids), rules.options);
    if (foreignTables.length > 0) {
      warnings.warnUnreached(
        `${path} also has tables, types or views that are not ours (${foreignTables.join(', ')}): they stay as they are, and may name the people.`,
      );
    }
    const forgotten = rules.forgetCopies.map((copy) => resolve(copy));
    const unforgotten = copiesOfOriginal.filter((copy) => !forgotten.includes(copy));
    if (unforgotten.length > 0) {
      warnings.warnUnreached(
        `${path} is or was a plain copy of another file, or was put back from one: the copies for readers of that ` +
          `file (${unforgotten.join(', ')}) stay as they are, and may name the people. Purge the ` +
          'database itself; if this file is in its place, remove them, and give --forget-copy for those still named.',
      );
    }
  }

  /** Removes the people. What keeps them there is `failure` afterwards; throws only if the run is stopped. */
  async run(ids: readonly string[], ledger: Ledger): Promise<void> {
    const { target, path } = this.place;
    const { rules, warnings } = this.#context;
    const { options, forgetCopies } = rules;
    this.#failure = undefined;
    try {
      const people = await target.people();
      const onFound = (found: PeopleFound) => this.#begin(found, ids, ledger);
      const result = await people.purge(path, this.#queryOf(ids), { ...options, forgetCopies, onFound });
      this.#found = result.found;
      this.#result = result;
      if (result.unreached.length > 0) this.#failure = transientError(result.unreached.join(' '));
      this.#warnOfFindings();
      warnings.warnOfLiveRuns(result.inUse ?? []);
    } catch (error) {
      options.signal?.throwIfAborted();
      this.fail(error);
    }
  }

  /** Checks, under the lock of the place, who was found there, and writes down that they are about to be removed. */
  async #begin(found: PeopleFound, ids: readonly string[], ledger: Ledger): Promise<void> {
    this.#found = found;
    this.#checkListable();
    const { problem } = this;
    if (problem !== undefined) throw configError(`${problem} Nothing was removed there.`, { exitCode: EXIT.guard });
    const counts = { people: found.people, rows: found.rows };
    await ledger.write({ kind: 'purging', target: this.name, counts });
    await this.#suppress(ids);
    this.#isBegun = true;
  }

  /**
   * Adds the people to the suppression list: one who is known by a hash alone, by that and the check value of its key.
   */
  async #suppress(ids: readonly string[]): Promise<void> {
    const { suppression, mapping, options } = this.#context.rules;
    if (suppression === undefined) return;
    const mapped = ids.flatMap((id) => mapping?.get(id) ?? []).map((text) => ({ text, hashKey: undefined }));
    await suppress(suppression.file, [...this.#found.unifiedIds, ...mapped], suppression.key, options);
  }

  /**
   * Makes what was thrown the failure of the place. Also a defect ends the purge of its place alone. The report and the
   * ledger get no text of it, which may name people.
   */
  fail(thrown: unknown): void {
    const error = unnamedDiskError(thrown);
    if (error instanceof UserError) this.#failure = error;
    else {
      this.#context.rules.options.logger.error('purge.defect', `${this.name}: ${defectText(error)}`);
      const sentence = `${this.name} could not be purged by a defect of dfinery-elt: please report it.`;
      this.#failure = internalError(sentence, { cause: error });
    }
  }

  /** Leaves the place as it is, since the list is read from it. */
  holdBack(): void {
    const { target, path } = this.place;
    this.#failure = transientError(
      `${target.name} ${path} was left as it is: the list is read from it, and is needed until the rest of the purge ` +
        'is done. Run again with the same list.',
    );
  }

  /**
   * Writes into the ledger what became of the place. `before`: counts that an interrupted run was about to remove
   * there.
   */
  async record(ledger: Ledger, before: Counts | undefined): Promise<void> {
    const { name, removed } = this;
    const [failure, result] = [this.#failure, this.#result];
    const isRemovedBefore = result !== undefined && before !== undefined && result.found.rows < before.rows;
    const missed = result?.unreached ?? (failure === undefined ? [] : [failure.message]);
    const sentences = [...missed, ...this.#context.warnings.unreached].slice(0, MAX_NAMED);
    await ledger.write({
      kind: 'purge',
      target: name,
      outcome: failure === undefined ? 'done' : 'open',
      counts: {
        // Where it failed after its beginning nobody knows what was removed.
        ...(removed ?? (!this.#isBegun && { rows: 0 })),
        // A run that was killed right after its commit had removed them.
        ...(isRemovedBefore && { rows_removed_before: before.rows }),
      },
      ...(sentences.length > 0 && { unreached: sentences }),
    });
  }

  /** What was found and removed, of those who are `listed`; with the names of the report. */
  reportOf(listed: readonly ListedId[]) {
    const { people, rows, shared, ids } = this.#found;
    const has = new Set(ids);
    const lacking = listed.filter(({ id }) => !has.has(id));
    const { rows: rows_removed = null, files_rewritten = 0, bytes_before = 0, bytes_after = 0 } = this.removed ?? {};
    return {
      target: this.place.target.name,
      place: this.place.path,
      people,
      rows,
      shared,
      ids_without_rows: lacking.length,
      /** The first rows of the list whose ids have no row in the place, from 1. */
      row_numbers: lacking.slice(0, MAX_NAMED).map(({ row }) => row),
      /** Null: nothing was removed yet, or a failure leaves open how many were. */
      rows_removed,
      files_rewritten,
      bytes_before,
      bytes_after,
      /** Why the people are still there. */
      error: this.#failure?.message ?? null,
    };
  }

  #queryOf(ids: readonly string[]): PeopleQuery {
    const { column, mapping, hashKey } = this.#context.rules;
    return { ids, column, mapping, hashKey };
  }

  #warnOfFindings(): void {
    const { target, path } = this.place;
    const { rules, service: configured, warnings } = this.#context;
    const { service, warnings: missed, idsWithoutUnifiedId } = this.#found;
    if (service !== undefined && service !== configured) {
      warnings.warn(
        'purge.service',
        `${target.name} ${path} holds the data of another service than the one of this configuration (base_url or ` +
          'service_id differ): the same ID may be another person there.',
      );
    }
    for (const sentence of missed) warnings.warn('purge.missed', sentence);
    if (idsWithoutUnifiedId.length === 0 || rules.suppression === undefined) return;
    warnings.warn(
      'purge.unnamed',
      `${count(idsWithoutUnifiedId.length, 'ID')} of these stand in rows without a df_unified_id, by which alone ` +
        'the suppression list knows people: a later sync may bring such rows back while the service still exports ' +
        'them.',
    );
  }
}

export type PlaceReport = Readonly<ReturnType<PlacePurge['reportOf']>>;
