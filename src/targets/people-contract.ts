import type { PeopleFound, PeopleQuery } from '../engine/people/people.ts';
import type { PlaceOptions } from './place-options.ts';

/**
 * Finds people in a place that was loaded, and removes them. All targets look them up with `findPeople` of
 * `engine/people/find-people.ts`. Each call opens the place and closes it. Where nothing was loaded yet it throws a
 * configuration failure (exit 2). An erasure calls `previewPurge` of every place, then `purge` of one place after
 * the other. `person` calls `find` and `rows`.
 */
export interface People {
  /** The people as they are now: a forecast, since their removal looks them up again. Read-only. */
  find(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PeopleFound>;
  /**
   * The rows that a purge would remove, as JSON objects with the members `table` and `row`. A row is an object without
   * the columns that are null. All are of one version of the place, whatever is written meanwhile. Read-only.
   */
  rows(place: string, query: PeopleQuery, options: PlaceOptions): AsyncIterable<string>;
  /**
   * Runs all steps of a purge except the last, which puts the result in place. It throws what `purge` would throw. So a
   * purge that cannot succeed is noticed before anything is deleted.
   */
  previewPurge(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PurgePreview>;
  /**
   * Takes the lock of the place, looks the people up anew, and calls `onFound`. Then it removes all their rows in one
   * commit. After it no file of the place has the bytes of values that only these rows had. That holds for data, log,
   * checkpoint, statistics, write-ahead log, temporary folder and earlier versions of objects. What cannot be reached
   * is named in `unreached`. A kill leaves of each table either all rows or none, of a Parquet folder those of some
   * days. The same purge, run again, finishes it. If `onFound` throws, nothing is removed.
   */
  purge(place: string, query: PeopleQuery, options: PurgeOptions): Promise<PurgeResult>;
}

export interface PurgePreview {
  readonly people: PeopleFound;
  /** Tables and files in the place that are not this program's: they stay, and may name the people. */
  readonly foreign: readonly string[];
}

export interface PurgeOptions extends PlaceOptions {
  /**
   * Called with those who are found, under the lock, before anything is changed. The ledger and the suppression list
   * get their lines here. It returns the length of the list, which the place remembers.
   */
  readonly onFound: (people: PeopleFound) => Promise<number>;
}

export interface PurgeResult {
  /** What `onFound` returned last. */
  readonly suppressionLength: number;
  readonly rowsRemoved: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Sentences about what may still hold the people and could not be reached: the erasure ends with 3. */
  readonly unreached: readonly string[];
  /** Folders of the place with rows of other runs that may be alive; absent if there can be none. */
  readonly inUse?: readonly string[];
}
