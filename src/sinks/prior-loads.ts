import { type Day, daysOf } from '../base/days.ts';
import { configFailure, type Failure } from '../base/errors.ts';
import type { SpoolFile } from '../extract/window.ts';
import { MOST_SCANNED_NAMES } from '../schema/columns.ts';

/** Maximum number of stored event names, which are used for days that must be split. */
export const MOST_EVENT_NAMES = 10_000;

/** The event names of a window's files; undefined where a list of them is not there, or may lack some. */
export function eventNamesOf(files: readonly SpoolFile[]): string[] | undefined {
  const lists = files.map((file) => file.eventNames);
  if (lists.some((list) => list === undefined || list.length >= MOST_SCANNED_NAMES)) return undefined;
  return [...new Set(lists.flatMap((list) => list ?? []))];
}

/** Days that committed receipts cover. */
export function daysOfReceipts(
  receipts: Iterable<{ readonly covers_from: Day; readonly covers_to: Day | null }>,
): Set<Day> {
  return new Set([...receipts].flatMap((r) => (r.covers_to === null ? [] : daysOf(r.covers_from, r.covers_to))));
}

/** The failure for a configured time zone that is not that of the target's first load. `what`: `file` or `folder`. */
export function otherTimezone(
  place: string,
  what: string,
  { wanted, stored }: { readonly wanted: string | null; readonly stored: string | null },
): Failure {
  return configFailure(
    `timezone is ${wanted ?? 'not set'}, but ${place} was loaded with ${stored ?? 'none'}: keep it, or load into another ${what}.`,
  );
}
