import { addDays, type Day } from '../../base/days.ts';
import type { ColumnScan } from '../../schema/scan.ts';
import { overThrough, todayUtc } from '../plan/calendar.ts';
import type { Span } from '../plan/layout.ts';
import { type Answered, type Asked, ask, discardAnswer, sentAtOf, totalRows } from './ask.ts';
import type { Outcome } from './outcome.ts';
import type { Run } from './run.ts';
import { fetchSpan, refused } from './span.ts';

/*
 * Whether an export contains its `to_date` (S2). For a day D, in this order, each export reused where it can be:
 *
 *   [D,D]              [D,D+1]    [D+1,D+1]       then                                     window of D
 *   a pair             -          -               inclusive, proved                        [D,D]
 *   no row, or a 400   no row     -               D is empty either way                    [D,D+1]
 *   no row, or a 400   rows       no row, a 400   exclusive, proved (D was over)           [D,D+1]
 *   no row, or a 400   rows       a pair          inclusive, proved                        [D,D+1]; settled: [D,D]
 *   rows, no pair      any        any             open: D+1 is asked the same way          [D,D+1]; settled: below
 *   D not over, rows   a 400      -               open: D+1 has not begun                  [D,D], covering nothing
 *   D after today in UTC, a 400   -               open: D has not begun                    none
 *
 * Where [D-1,D] had no row, [D,D] has none either and is not asked for (unless it may have to be handed on). A 400 says nothing of D having begun where a day
 * that had was refused alone, too.
 *
 * A pair is two rows at least an hour apart in one datetime column: an exclusive end leaves at most an instant of [D,D].
 * [D+1,D+1] is the first question of the next day anyway, so an inclusive service costs no export more than there are
 * windows, an exclusive one two more in all, and one that proves nothing two a day. While it is open the days share
 * their boundary: [D,D+1] contains D under both readings. An exclusive end is believed only of a D that was over
 * everywhere when [D,D] was sent; else the rows of [D,D+1] may have come in between.
 *
 * Settled deliveries and full refreshes hand each row on once, so there D waits for [D+1,D+1]. If the rule is open even
 * then, the counts decide: |[D,D+1]| <= |[D,D]| + |[D+1,D+1]| means that [D,D] is all of D under both readings.
 */

const PROOF_MS = 3_600_000;
const PROOF_COLUMNS = new Set(['df_server_datetime', 'df_correction_datetime', 'df_event_datetime']);

/** True when two rows are at least an hour apart in one datetime column. */
export function hasPair(columns: readonly ColumnScan[]): boolean {
  return columns.some(
    ({ source, first, last }) =>
      PROOF_COLUMNS.has(source) && first !== undefined && last !== undefined && msOf(last) - msOf(first) >= PROOF_MS,
  );
}

/** Milliseconds of an ISO text without a zone; micros are cut. */
const msOf = (text: string): number => Date.parse(`${text.slice(0, 23)}Z`);

/** [D,D], or when a longer answer was sent for that D lies in and that had no row. */
type Alone = Asked | { readonly kind: 'bare'; readonly sentAt: number };

/** Settles the rule, day by day, while it fetches the windows of these days. Used one day at a time, in order. */
export class EndRule {
  readonly #run: Run;
  /** [D+1,D+1] when it was asked for D already. */
  #ahead: { readonly day: Day; readonly asked: Alone } | undefined;
  /** The day before, when it could still prove an exclusive end. */
  #suspect: Day | undefined;
  /** A day that had begun was refused alone: that is no sign of one that has not. */
  #refusesAlone = false;

  constructor(run: Run) {
    this.#run = run;
  }

  /** The window of one day while the rule is open. */
  async fetchDay(day: Day): Promise<Outcome[]> {
    const alone = await this.#alone(day);
    if (alone.kind === 'gone') return [{ kind: 'gone', day, message: alone.message }];
    if (alone.kind === 'invalid') {
      if (day <= todayUtc(this.#run.deps.clock.now())) this.#refusesAlone = true;
      else if (!this.#refusesAlone) return [{ kind: 'dropped', span: only(day), message: alone.message }];
    }
    if (alone.kind === 'rows' && proves(alone)) return this.#inclusive(day, alone);
    if (this.#suspect === addDays(day, -1) && isNone(alone)) {
      await this.#discard(alone);
      return this.exclusive(day);
    }
    this.#suspect = undefined;
    return this.#withNext(day, alone);
  }

  /** [D,D], asked now or before. */
  async #alone(day: Day): Promise<Alone> {
    const ahead = this.#ahead;
    this.#ahead = undefined;
    if (ahead?.day === day) return ahead.asked;
    if (ahead !== undefined) await this.#discard(ahead.asked);
    return ask(this.#run, day, day, { through: day, single: true });
  }

  #inclusive(day: Day, answer: Answered): Outcome[] {
    this.#prove(true, day);
    return [{ kind: 'window', span: only(day), answer, contains: day }];
  }

  exclusive(day: Day): Promise<Outcome[]> {
    this.#prove(false, day);
    return fetchSpan(this.#run, only(day), false);
  }

  #prove(inclusive: boolean, day: Day): void {
    this.#run.known.inclusive = inclusive;
    this.#run.tally.inclusive = inclusive;
    this.#run.deps.logger.info(
      'rule.proved',
      `The export of ${day} proves that to_date is ${inclusive ? 'included' : 'not included'}.`,
      { window: day, to_date_inclusive: inclusive },
    );
  }

  async #withNext(day: Day, lone: Alone): Promise<Outcome[]> {
    const both = await ask(this.#run, day, addDays(day, 1), { through: day, single: true });
    if (both.kind !== 'rows') return this.#onlyAlone(day, lone, both);
    const suspicious = isNone(lone) && totalRows(both) > 0 && this.#wasOver(day, lone);
    if (this.#run.plan.settleFirst && totalRows(both) > 0) return this.#settle(day, lone, both, suspicious);
    await this.#discard(lone);
    if (suspicious) this.#suspect = day;
    if (totalRows(both) === 0 && !this.#run.plan.settleFirst) {
      this.#ahead = { day: addDays(day, 1), asked: { kind: 'bare', sentAt: sentAtOf(both) } };
    }
    return [windowOf(day, both)];
  }

  #wasOver(day: Day, lone: Alone): boolean {
    if (lone.kind === 'bare') return day <= overThrough(lone.sentAt);
    return day <= overThrough(lone.kind === 'rows' ? sentAtOf(lone) : this.#run.deps.clock.now());
  }

  /** [D,D+1] was refused: of a day that is over that is the user's to see, else D+1 has not begun. */
  async #onlyAlone(day: Day, lone: Alone, both: Exclude<Asked, Answered>): Promise<Outcome[]> {
    if (both.kind === 'gone') {
      await this.#discard(lone);
      return [{ kind: 'gone', day, message: both.message }];
    }
    if (day <= overThrough(this.#run.deps.clock.now())) throw refused(only(day), both.message);
    if (lone.kind !== 'rows') return [{ kind: 'dropped', span: only(day), message: both.message }];
    return [{ kind: 'window', span: only(day), answer: lone, contains: undefined }];
  }

  /** Before anything is handed on: [D+1,D+1] decides, or the counts do. */
  async #settle(day: Day, lone: Alone, both: Answered, suspicious: boolean): Promise<Outcome[]> {
    const next = addDays(day, 1);
    const after = await ask(this.#run, next, next, { through: next, single: true });
    this.#ahead = { day: next, asked: after };
    if (after.kind === 'rows' && proves(after)) {
      this.#prove(true, next);
      return this.#deliver(day, lone, both);
    }
    if (isNone(after) && suspicious) {
      this.#prove(false, day);
      await this.#discard(lone);
      return [windowOf(day, both)];
    }
    if (totalRows(both) <= countOf(lone) + countOf(after)) return this.#deliver(day, lone, both);
    await this.#discard(lone);
    this.#run.deps.logger.warn(
      'rule.open',
      `Whether to_date is included could not be proved with ${day}: rows of the next day may come twice; set to_date_inclusive.`,
      { window: day },
    );
    return [windowOf(day, both)];
  }

  /** [D,D] is all of D; where it was refused, [D,D+1] stands for it. */
  async #deliver(day: Day, lone: Alone, both: Answered): Promise<Outcome[]> {
    if (lone.kind !== 'rows') return [windowOf(day, both)];
    await discardAnswer(this.#run, both);
    return [{ kind: 'window', span: only(day), answer: lone, contains: day }];
  }

  /** An answer that was asked for ahead and fits the day's window under the rule, now that it is proved. */
  takeAhead(day: Day): Answered | undefined {
    const ahead = this.#ahead;
    if (ahead?.day !== day || ahead.asked.kind !== 'rows' || this.#run.known.inclusive !== true) return undefined;
    this.#ahead = undefined;
    return ahead.asked;
  }

  async close(): Promise<void> {
    if (this.#ahead !== undefined) await this.#discard(this.#ahead.asked);
    this.#ahead = undefined;
  }

  async #discard(alone: Alone): Promise<void> {
    if (alone.kind === 'rows') await discardAnswer(this.#run, alone);
  }
}

const only = (day: Day): Span => ({ first: day, last: day });

const windowOf = (day: Day, answer: Answered): Outcome => ({
  kind: 'window',
  span: only(day),
  answer,
  contains: day,
});

const proves = (answer: Answered): boolean => answer.parts.some((part) => hasPair(part.scan.columns));

/** No row at all; a 400 for [D,D] says as much (S2). */
const isNone = (asked: Alone): boolean =>
  asked.kind === 'invalid' || asked.kind === 'bare' || (asked.kind === 'rows' && totalRows(asked) === 0);

const countOf = (asked: Alone): number => (asked.kind === 'rows' ? totalRows(asked) : 0);
