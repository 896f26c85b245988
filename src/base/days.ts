import { DAY_MS, HOUR_MS } from './clock.ts';
import { joinNames } from './text.ts';

/** A calendar day as `yyyy-MM-dd`, the form of the service and of all files. Compared as text. */
export type Day = string;

const DAY_FORM = /^\d{4}-\d{2}-\d{2}$/;

/** True for a day that exists in the calendar, written in full. */
export function isDay(text: string): boolean {
  if (!DAY_FORM.test(text) || text < '0001-01-01') return false;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().slice(0, 10) === text;
}

/** The day of an instant (ms, UTC) by a clock `offsetHours` ahead of UTC. */
export const dayAt = (ms: number, offsetHours = 0): Day =>
  new Date(ms + offsetHours * HOUR_MS).toISOString().slice(0, 10);

/** The first instant (ms, UTC) of a day. */
export const startOf = (day: Day): number => Date.parse(`${day}T00:00:00Z`);

export const addDays = (day: Day, count: number): Day => dayAt(startOf(day) + count * DAY_MS);

/** Whole days from `from` to `to`; negative when `to` is earlier. */
export const daysBetween = (from: Day, to: Day): number => (startOf(to) - startOf(from)) / DAY_MS;

/** Every day of [first, last], both included; empty when last is before first. */
export const daysOf = (first: Day, last: Day): Day[] =>
  Array.from({ length: Math.max(0, daysBetween(first, last) + 1) }, (_, index) => addDays(first, index));

export const laterOf = (a: Day, b: Day): Day => (a > b ? a : b);
export const earlierOf = (a: Day, b: Day): Day => (a < b ? a : b);

/** Spans of days that a message names at most. */
const MAX_NAMED_SPANS = 40;

/** Formats days, which are in order, for a message: `2026-01-01`, `2026-01-01 to 2026-01-03`, `2026-01-01, 2026-01-04`. */
export function formatDays(days: readonly Day[]): string {
  const spans: string[] = [];
  for (let i = 0; i < days.length; i++) {
    const first = days[i];
    while (i + 1 < days.length && days[i + 1] === addDays(days[i], 1)) i++;
    spans.push(first === days[i] ? first : `${first} to ${days[i]}`);
  }
  return joinNames(spans, MAX_NAMED_SPANS);
}
