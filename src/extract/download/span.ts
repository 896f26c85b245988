import { addDays, type Day, daysBetween, earlierOf } from '../../base/days.ts';
import { configFailure } from '../../base/errors.ts';
import { todayUtc, todayWest } from '../plan/calendar.ts';
import { lastAsked, lengthOf, type Span } from '../plan/layout.ts';
import { type Asked, ask } from './ask.ts';
import type { Outcome } from './outcome.ts';
import type { Run } from './run.ts';

/** Fetches neighbouring days under a known end-day rule; in fewer days at a time where they are too many. */
export async function fetchSpan(run: Run, span: Span, inclusive: boolean): Promise<Outcome[]> {
  const wanted = lastAsked(span, inclusive);
  const to = run.known.askLimit === undefined ? wanted : earlierOf(wanted, run.known.askLimit);
  if (to < leastAsked(span, inclusive)) return [{ kind: 'dropped', span, message: 'it has not begun at the service' }];
  const asked = await ask(run, span.first, to, { through: span.last, single: lengthOf(span) === 1 });
  return answered(run, span, inclusive, to, asked);
}

/** The smallest `to_date` with which the first day of the span is still asked for. */
const leastAsked = (span: Span, inclusive: boolean): Day => (inclusive ? span.first : addDays(span.first, 1));

async function answered(run: Run, span: Span, inclusive: boolean, to: Day, asked: Asked): Promise<Outcome[]> {
  switch (asked.kind) {
    case 'rows':
      return [
        { kind: 'window', span, answer: asked, contains: earlierOf(span.last, inclusive ? to : addDays(to, -1)) },
      ];
    case 'gone':
      return withoutFirst(run, span, inclusive, asked.message);
    case 'too_big':
      return halves(run, span, inclusive);
    case 'invalid':
      return lowered(run, span, inclusive, to, asked.message);
  }
}

/** The service no longer has the first day; the others of the span are asked for without it. */
async function withoutFirst(run: Run, span: Span, inclusive: boolean, message: string): Promise<Outcome[]> {
  const gone: Outcome = { kind: 'gone', day: span.first, message };
  if (span.first === span.last) return [gone];
  return [gone, ...(await fetchSpan(run, { first: addDays(span.first, 1), last: span.last }, inclusive))];
}

async function halves(run: Run, span: Span, inclusive: boolean): Promise<Outcome[]> {
  const days = Math.ceil(lengthOf(span) / 2);
  run.known.maxWindowDays = Math.min(days, run.known.maxWindowDays ?? days);
  const middle = addDays(span.first, days - 1);
  return [
    ...(await fetchSpan(run, { first: span.first, last: middle }, inclusive)),
    ...(await fetchSpan(run, { first: addDays(middle, 1), last: span.last }, inclusive)),
  ];
}

/** A 400 for a range that reaches into the future somewhere: again through today in UTC, then in UTC-12 (S3). */
async function lowered(run: Run, span: Span, inclusive: boolean, to: Day, message: string): Promise<Outcome[]> {
  const limit = nextLimit(run.deps.clock.now(), to);
  if (limit === undefined) throw refused(span, message);
  const asked = limit < leastAsked(span, inclusive) ? undefined : await again(run, span, limit);
  if (asked === undefined) {
    // Only days that are not over everywhere get here: another run reads them.
    if (daysBetween(span.first, todayWest(run.deps.clock.now())) > 0) throw refused(span, message);
    return [{ kind: 'dropped', span, message }];
  }
  if (asked.kind === 'invalid') return lowered(run, span, inclusive, limit, asked.message);
  if (asked.kind === 'rows') run.known.askLimit = limit;
  return answered(run, span, inclusive, limit, asked);
}

const again = (run: Run, span: Span, to: Day): Promise<Asked> =>
  ask(run, span.first, to, { through: span.last, single: lengthOf(span) === 1 });

/**
 * The next earlier day to try as `to_date`, or undefined when none of the asked days lies in the future anywhere. Where
 * the end is not included, today in UTC ends on the day after it.
 */
export function nextLimit(now: number, to: Day): Day | undefined {
  const today = todayUtc(now);
  return [addDays(today, 1), today, todayWest(now)].find((limit) => limit < to);
}

export const refused = (span: Span, message: string) =>
  configFailure(`The service refuses the export of ${span.first}: ${message}`, { where: { window: span.first } });
