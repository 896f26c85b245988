import { addDays, type Day, dayAt, daysOf, earlierOf, laterOf } from '../../src/base/days.ts';
import type { Action } from './actions.ts';
import { HOUR, START } from './common.ts';
import type { TestCase } from './test-case.ts';
import { overAt } from './truth.ts';

/** When each day was last read by a load that ended well: what the service had by then must be there. */
export class Reads {
  readonly #testCase: TestCase;
  readonly #at = new Map<Day, number>();

  constructor(testCase: TestCase) {
    this.#testCase = testCase;
  }

  /** A load that ended well. `cursor`: as it stood before; `began`: ms since 1970. */
  note(action: Action, cursor: Day | undefined, began: number): void {
    const { isSettled, lookback, settleHours } = this.#testCase;
    const first = this.#first(action, cursor);
    const settled = isSettled ? settleHours * HOUR : 0;
    const over = addDays(dayAt(began - settled, -12), -1);
    const last = action.to === undefined ? over : earlierOf(over, addDays(START, action.to));
    // Who reads a day once does not read one again that a run before has stored, even if that run did not end well.
    // A platform's read goes on where one before was broken off, if late rows are not missed.
    const isOnce =
      (isSettled || lookback === 0 || this.#testCase.target === 'airbyte') &&
      action.what !== 'refresh' &&
      action.from === undefined;
    for (const day of daysOf(first, last)) {
      const at = isOnce ? Math.min(began, overAt(day) + settled) : began;
      this.#at.set(day, Math.max(at, this.#at.get(day) ?? 0));
    }
  }

  #first(action: Action, cursor: Day | undefined): Day {
    if (action.from !== undefined) return addDays(START, action.from);
    if (action.what === 'refresh' || cursor === undefined) return START;
    const { isSettled, lookback } = this.#testCase;
    return laterOf(START, addDays(cursor, isSettled ? 0 : -lookback));
  }

  /** Since when nothing that the service has of a day may be missing; undefined: the day was not read yet. */
  of(day: Day, cursor: Day | undefined): number | undefined {
    const read = this.#at.get(day);
    const claimed = cursor !== undefined && day < cursor ? overAt(day) : undefined;
    return read === undefined ? claimed : Math.max(read, claimed ?? 0);
  }
}
