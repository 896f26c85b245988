import type { Decision, LineOf } from './lines.ts';

export interface DecidingAnswer extends Pick<LineOf<'after'>, 'at' | 'code'> {
  readonly outcome: Decision;
}

/** The purge of a place: the rows of an id that were counted right before, and by when they were removed. */
interface PlacePurge extends Pick<LineOf<'purge'>, 'at' | 'place'> {
  rows: number;
  /** True if people of the id were found, who are on the suppression list, or rows that name nobody. */
  hasFound: boolean;
  /** By when; null for a purge that is not finished: no line says so. */
  removedAt: string | null;
  /** True if something of the place could not be read or removed. */
  unreached: boolean;
}

/**
 * What the lines say of an id in one word. `open`: a request has no clear answer, or is still to come after a purge.
 * `not_asked`: it was purged alone. `shown`: the command `person` has looked for it, and nothing else is known.
 */
export const ID_STATES = ['confirmed', 'rejected', 'open', 'not_asked', 'shown', 'unknown'] as const;

/**
 * What the lines of a ledger say of one id. Its state follows from them:
 *
 * | line                          | state before       | state after                                       |
 * | ----------------------------- | ------------------ | ------------------------------------------------- |
 * | `access`                      | `unknown`          | `shown`                                           |
 * | `purge` without `request`     | `unknown`, `shown` | `not_asked`                                       |
 * | `purge` with `request`        | any                | `open`, never asked                               |
 * | `before`                      | any                | `open`, asked                                     |
 * | `after`: wait, stop           | `open`             | `open`; this request deleted nobody               |
 * | `after`: retry, undecided     | `open`             | `open`; this request may have deleted the person  |
 * | `after`: done                 | `open`             | `confirmed`, which is final                       |
 * | `after`: rejected             | `open`             | `rejected`; final if an earlier request may have  |
 * |                               |                    | deleted the person. `confirmed` if it was so once |
 */
export class IdHistory {
  readonly answers: DecidingAnswer[] = [];
  readonly purges: PlacePurge[] = [];
  /** When somebody asked what places held of the person, and was shown it. */
  readonly shown: Pick<LineOf<'access'>, 'at' | 'rows' | 'ways' | 'places'>[] = [];
  /** The runs that were to delete the id, by their first lines. */
  readonly runs = new Set<LineOf<'begin'>>();
  /** The request that no answer has decided, or that is to come: then `sentAt` is null. */
  openRequest: { readonly sentAt: string | null } | undefined;
  /** When the newest deletion was asked for that was answered (ms since 1970), as far as lists said so. */
  #newestRequestedAt = Number.NEGATIVE_INFINITY;
  /** Number of requests since the last decision that the service may have carried out. */
  #requestCount = 0;
  /** True if a decision followed several: one without a clear answer may have deleted whom the next calls unknown. */
  #mayBeDeleted = false;

  /** The answer by which the service has decided. */
  get standingAnswer(): DecidingAnswer | undefined {
    return standingAnswerOf(this.answers);
  }

  get state(): (typeof ID_STATES)[number] {
    if (this.openRequest !== undefined) return 'open';
    if (this.standingAnswer !== undefined) return this.standingAnswer.outcome === 'done' ? 'confirmed' : 'rejected';
    if (this.purges.length > 0) return 'not_asked';
    return this.shown.length > 0 ? 'shown' : 'unknown';
  }

  /**
   * The answer to a row of a list, which asks for the deletion at `requestedAt` (ms since 1970). Undefined for a new
   * request: it asks later than the rows that were answered, and not before the answer. Any other row comes again, and
   * the person may have come back since.
   */
  answerTo(requestedAt: number | undefined): DecidingAnswer | undefined {
    const answer = this.standingAnswer;
    if (answer === undefined || !this.isFinal) return undefined;
    const isAnswered =
      requestedAt === undefined || requestedAt < Date.parse(answer.at) || requestedAt <= this.#newestRequestedAt;
    return isAnswered ? answer : undefined;
  }

  /** True for an answer after which the person is deleted, or may be. Else every row is a new request. */
  get isFinal(): boolean {
    return this.standingAnswer?.outcome === 'done' || (this.#mayBeDeleted && this.openRequest === undefined);
  }

  /**
   * From which of these places the people are erased, and kept out by the suppression list. `some`: people or rows were
   * found, and the purge of a place ended. `all`: besides, the last purge of each place ended, and reached everything.
   * Purges before `newListAt` do not count: their people may not be on the present list.
   */
  erasedFrom(places: readonly string[], newListAt: string): 'none' | 'some' | 'all' {
    const purges = this.purges.filter(({ removedAt }) => removedAt === null || removedAt > newListAt);
    if (!purges.some(({ hasFound, removedAt }) => hasFound && removedAt !== null)) return 'none';
    const lastPurges = places.map((place) => purges.findLast((purge) => purge.place === place));
    const isWhole = lastPurges.every((purge) => purge?.unreached === false && purge.removedAt !== null);
    return isWhole ? 'all' : 'some';
  }

  /** Takes the next line about the id, which `run` wrote. */
  add(line: LineOf<'purge' | 'before' | 'after' | 'access'>, run: LineOf<'begin'>): void {
    const { at } = line;
    if (line.kind !== 'access') this.runs.add(run);
    switch (line.kind) {
      case 'access':
        this.shown.push({ at, rows: line.rows, ways: line.ways, places: line.places });
        return;
      case 'purge':
        // If the run is killed before the request, that is still to come.
        if (line.request) this.openRequest ??= { sentAt: null };
        this.#beginPurge(line);
        return;
      case 'before':
        this.openRequest = { sentAt: at };
        this.#requestCount++;
        return;
      case 'after':
        // The service carries none out above its limit, or with a wrong token.
        if (line.outcome === 'wait' || line.outcome === 'stop') this.#requestCount--;
        if (line.outcome !== 'done' && line.outcome !== 'rejected') return;
        this.openRequest = undefined;
        this.#mayBeDeleted ||= this.#requestCount > 1;
        this.#requestCount = 0;
        this.answers.push({ at, outcome: line.outcome, code: line.code });
        if (line.requested_at === undefined) return;
        this.#newestRequestedAt = Math.max(this.#newestRequestedAt, Date.parse(line.requested_at));
    }
  }

  /**
   * Begins the purge of a place, or goes on with one that no line has finished: its run was killed, or lost a race for a
   * bucket. The largest count is that of the rows: a killed run may have removed some of them.
   */
  #beginPurge({ at, place, rows, found = false }: LineOf<'purge'>): void {
    const unfinished = this.#unfinishedPurge(place);
    if (unfinished === undefined)
      this.purges.push({ at, place, rows, hasFound: found, removedAt: null, unreached: false });
    else {
      unfinished.rows = Math.max(unfinished.rows, rows);
      unfinished.hasFound ||= found;
    }
  }

  /** Finishes also a purge of another run: it may have been killed, or have lost the race for a bucket. */
  endPurge({ place, at, unreached }: LineOf<'purged'>): void {
    const unfinished = this.#unfinishedPurge(place);
    if (unfinished === undefined) return;
    unfinished.removedAt = at;
    unfinished.unreached = unreached;
  }

  #unfinishedPurge(place: string): PlacePurge | undefined {
    return this.purges.find((purge) => purge.place === place && purge.removedAt === null);
  }
}

/** Whoever was deleted once is unknown to the service later, which then may reject the id: it stays deleted. */
export const standingAnswerOf = (answers: readonly DecidingAnswer[]): DecidingAnswer | undefined =>
  answers.findLast(({ outcome }) => outcome === 'done') ?? answers.at(-1);
